"""A round of RocketMQ as one of any group: members as a membership record, queues as partitions, offsets as commits.

RocketMQ writes no record of a decision. The core makes one of what a round saw, so that lag, rates and balance find the
owners where they find those of any group; its partitions are numbered by unit (`rows.py`).

The room of lag judges by rounds and commits. A round sees how far an offset has come, not how often it was committed:
one that has moved since the round before counts as one commit at this round. Brokers are asked for committed offsets
before they are asked for the ends of the queues, so lag is never negative.

What no server has named for a day counts as gone; silence is no evidence. A server names whatever it tells of, whether
or not what it names answers. The probe counts brokers by the same rule (`known_brokers`), so that a group's members and
queues go when it would let go of the group.

What rounds go on showing is watched in elapsed time: the first round that does not show it forgets it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final
from zlib import crc32

import msgspec

from assignors import AssignorError, Group, Subscription, imbalance, imbalance_optimal
from streaming.groups.classic.state import Owned
from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, LagRules, some
from streaming.groups.rocketmq.state import RocketMQState, Routes, Watched
from streaming.groups.rocketmq.views import Views
from streaming.groups.rows import split, unit_of
from streaming.groups.seen.take_in import process_commits
from streaming.groups.state import GroupState
from streaming.records import (
    BROADCASTING,
    CONSUMER,
    OK,
    GroupObservation,
    Member,
    MembershipRecord,
    RocketMQObservation,
    SeenCommits,
    TopicObservation,
    count_of,
    pack_offsets,
)
from streaming.times import DAY_MS

_MOST_WATCHED: Final = 1_000
"""Parts of one finding that are kept from round to round: enough to judge by, and no finding takes the room of another.
More wrong ones never last while the first are there, so a detail says "at least"."""


class Watch:
    """What this round shows, and for how long rounds have shown it."""

    def __init__(self, before: Mapping[str, Watched], elapsed: int, now: int) -> None:
        """Begin a round.

        Args:
            before: What the round before has shown, as `kept` gave it.
            elapsed: Elapsed time of this round, ms.
            now: Its time, ms.
        """
        self._before, self._elapsed, self.time = before, elapsed, now
        self._now: dict[str, Watched] = {}

    def see(self, name: str) -> int:
        """Note that this round shows something; for how long all rounds have, ms; -1 at the first one.

        Args:
            name: What it is of (a finding), a blank, and which one of these.
        """
        watched = self._now.get(name)
        if watched is None:
            watched = self._before.get(name)
            if watched is None or watched.since > self._elapsed:
                watched = Watched(self._elapsed, 0)
            watched.rounds += 1
            self._now[name] = watched
        if watched.rounds > 1:
            return self._elapsed - watched.since
        return -1

    def is_known(self, name: str) -> bool:
        """Whether the round before has shown it."""
        return name in self._before

    def finding(self, name: str, least: int, parts: Iterable[str], detail: str) -> list[FindingAtRound]:
        """The finding, which is shown once anything has lasted for `least` ms; none where nothing is seen.

        Args:
            name: Its name.
            least: How long that is, ms.
            parts: Which of these the round shows; a single "" where there is only one.
            detail: Its detail.
        """
        longest = max((self.see(f"{name} {part}" if part else name) for part in parts), default=None)
        if longest is None:
            return []
        return [FindingAtRound(name, self.time - max(0, longest), detail, shown=longest >= least)]

    def listing(
        self, name: str, least: int, parts: Sequence[tuple[Sequence[str], str]], before: str, after: str = ""
    ) -> list[FindingAtRound]:
        """The finding with a detail that lists the first of what has lasted, and how many more there are.

        Args:
            name: Its name.
            least: As in `finding`.
            parts: What the round shows of it: which of these, of which the one that has lasted longest counts, and how
                people read it.
            before: The detail before the list.
            after: The detail after it.
        """
        last = [text for names, text in parts if max(self.see(f"{name} {part}") for part in names) >= least]
        # There is no room to watch more, so there may be more that last.
        text = before + some(last) + ("" if len(parts) <= _MOST_WATCHED else ", at least") + after
        return self.finding(name, least, chain.from_iterable(names for names, _ in parts), text)

    def kept(self) -> dict[str, Watched]:
        """What this round has shown, as the state keeps it."""
        counts = Counter[str]()
        kept = {}
        for name, watched in self._now.items():
            finding = name.partition(" ")[0]
            counts[finding] += 1
            if counts[finding] <= _MOST_WATCHED:
                kept[name] = watched
        return kept


_KNOWN_MS: Final = DAY_MS
"""A broker, or all name servers that know it, may be down for hours and come back with clients, topics and offsets."""

KEPT_BY_MEMBERS: Final = "kept_by_members"
"""Why the lag of a BROADCASTING group is not known."""

COMMITS_NOT_TOLD: Final = "commits_not_told"
"""Why the lag of queues is not known whose broker told their ends and not the committed offsets: those of an earlier
round against the ends of this one would be a lag that need not exist."""

_HOSTS = 3
"""Hosts of one client in a row: one is usual, two may be a client id that two processes use."""

# Sets and mappings have no order that means something.
_CONTENT = msgspec.msgpack.Encoder(order="sorted")


class RocketMQRound(GroupObservation, frozen=True, kw_only=True):
    """A round as an observation of any group, its topics by unit, with what clients see of the group.

    Attributes:
        views: What clients see.
        watch: For how long rounds have shown something.
        unchanged: For how long nothing has changed that clients decide by, nor what they hold, ms; -1 at the first
            round with these.
        unnamed: Brokers and units that no server has named for so long that they are gone.
    """

    views: Views
    watch: Watch
    unchanged: int
    unnamed: frozenset[str]


def read(state: GroupState, seen: RocketMQObservation, context: Context) -> RocketMQRound:
    """The round as an observation of any group."""
    mine = state.rocketmq = state.rocketmq or RocketMQState()
    watch, current = Watch(mine.watched, seen.elapsed_time, state.clock.now), state.classic.current
    assumed = {member.member_id: member for member in current.record.members} if current is not None else {}
    listed = mine.facts.lists if mine.facts is not None else {}
    known = listed.keys() | (state.partitions.keys() if "topics" not in seen.cut else ())
    # Each of these is of its own kind: whatever their number, all are watched.
    unnamed = frozenset(name for name in sorted(known - _named(seen)) if watch.see(f"unnamed:{name} ") >= _KNOWN_MS)
    listed = {name: clients for name, clients in listed.items() if name not in unnamed}
    views = Views(seen, context.config.allocation(context.group), assumed, listed)
    held = {client: units or {} for client, units in views.held.items()}
    topics = {client: sorted(of or ()) for client, of in views.subscriptions.items()}
    strategies = {client: runs.name for client, runs in views.runs.items()}
    unchanged = crc32(_CONTENT.encode((views.queues_by_server, views.lists, strategies, topics, held)))
    return RocketMQRound(
        views=views,
        watch=watch,
        unchanged=watch.see(f"unchanged {unchanged}"),
        unnamed=unnamed,
        round=seen.round,
        time=seen.time,
        log_partition=-1,
        log_position=0,
        state="Stable" if views.clients else "Empty",
        protocol_type="rocketmq",
        group_type="rocketmq",
        gone=seen.gone,
        held_since=None,
        topics=tuple(_topics(views)),
        idle=seen.idle,
        elapsed=seen.elapsed,
        closed=seen.closed,
        rested_since=seen.rested_since,
        rested_until=seen.rested_until,
        configured=seen.configured,
    )


def _named(seen: RocketMQObservation) -> set[str]:
    """Brokers and units that any server names."""
    named = {broker.name for broker in seen.brokers}
    for topic in seen.topics:
        brokers = {broker.name for route in topic.routes for broker in route.brokers}
        named |= brokers
        brokers.update(queues.broker for queues in topic.queues)
        named |= {unit_of(topic.topic, broker) for broker in brokers}
    return named


def _untold(views: Views) -> frozenset[str]:
    """Units whose committed offsets the round does not have, though the group does not keep them itself."""
    if views.message_model == BROADCASTING:
        return frozenset()
    return frozenset(
        unit_of(topic, queues.broker)
        for topic, seen in views.topics.items()
        for queues in seen.queues
        if queues.answer == OK and queues.committed is None
    )


def _topics(views: Views) -> Iterable[TopicObservation]:
    without = _untold(views)
    for topic, seen in sorted(views.topics.items()):
        for queues in seen.queues:
            unit = unit_of(topic, queues.broker)
            if queues.answer == OK and queues.max and unit not in without:
                yield TopicObservation(
                    topic=unit,
                    topic_id=None,
                    partitions=len(queues.max),
                    high_watermarks=pack_offsets(queues.max),
                    last_stable_offsets=pack_offsets(queues.max),
                    log_start_offsets=pack_offsets(queues.min),
                )


def take_commits(state: GroupState, seen: RocketMQRound, context: Context) -> None:
    """Take in the committed offsets of a round: those that have moved, appeared or gone since the round before.

    Nobody tells of offsets that have gone with their topic or broker, nor of those of a silent one. So they stay until
    no server has named the topic on that broker for a day.
    """
    for unit in seen.unnamed & state.partitions.keys():
        for known in state.partitions[unit].values():
            known.committed = -1
            known.forget_rounds()
    if seen.views.message_model == BROADCASTING:
        return  # members keep their offsets themselves
    offsets = {
        unit_of(topic, queues.broker): tuple(enumerate(queues.committed))
        for topic, of_topic in seen.views.topics.items()
        for queues in of_topic.queues
        if queues.committed is not None
    }
    process_commits(state, seen, SeenCommits(whole=False, offsets=offsets), context)


def lag_rules(seen: RocketMQRound) -> LagRules:
    """How lag is judged.

    A queue without a message has lag 0 also without a commit, as most topics of retries have none. Nobody can tell
    for one with messages and without a commit: where the group begins is for its member to decide when it takes the
    queue (`consumeFromWhere`), and RocketMQ itself says both: `mqadmin consumerProgress` (208) counts from 0, the
    broker's metrics count everything as consumed (`ConsumerLagCalculator`).
    """
    broadcasts = seen.views.message_model == BROADCASTING
    return LagRules(
        empty_counts=not broadcasts,
        kept_by_members=KEPT_BY_MEMBERS if broadcasts else None,
        untold=dict.fromkeys(_untold(seen.views), COMMITS_NOT_TOLD),
    )


def members_of(views: Views) -> tuple[Member, ...]:
    """The round's members, by id, with what each holds; what a member held before, where it does not answer."""
    return tuple(_member(views, client) for client in views.clients)


def _member(views: Views, client: str) -> Member:
    topics, held = views.subscriptions[client], views.held[client]
    units = set(held or ())
    for topic in topics or ():
        units.update(_units(topic, views.routes) or (topic,))
    hosts = sorted({address.rpartition(":")[0] for address in views.addresses_of(client)})
    return Member(
        member_id=client,
        group_instance_id=None,
        client_id=client,
        client_host=", ".join(hosts[:_HOSTS]),
        topics=None if topics is None else tuple(sorted(units)),
        assigned=None if held is None else tuple(held.items()),
        undecodable=None if held is not None else "it does not tell which queues it holds",
    )


def _units(topic: str, routes: Routes) -> list[str]:
    return [unit_of(topic, broker) for broker in routes.get(topic, ())]


def record_of(members: tuple[Member, ...], number: int, time: int, strategy: str | None) -> MembershipRecord:
    """A membership record of what a round saw.

    Args:
        members: The members.
        number: The round's number.
        time: Its time, ms.
        strategy: The strategy that most members run; None if unknown.
    """
    return MembershipRecord(
        record=number,
        record_time=time,
        protocol_type=CONSUMER,
        protocol=strategy if members else None,
        members=members,
        seen=True,
    )


def topics_of(member: Member) -> frozenset[str]:
    """Topics of a member; empty if unknown."""
    return frozenset(split(unit)[0] for unit in member.topics or ())


def held_queues(members: Sequence[Member]) -> Owned | None:
    """What members hold, by member and unit; None if it is unknown of one."""
    if any(member.assigned is None for member in members):
        return None
    return {member.member_id: dict(member.assigned or ()) for member in members}


def group_of(members: Sequence[Member], routes: Routes) -> Group:
    """The group as the measures need it: a topic of theirs is a unit, its partitions are the queues on that broker.

    Args:
        members: The members.
        routes: Readable queues by topic and broker; others cannot be assigned.
    """
    counts = {unit_of(topic, broker): count for topic, brokers in routes.items() for broker, count in brokers.items()}
    subscriptions = []
    for member in members:
        units = chain.from_iterable(_units(topic, routes) for topic in topics_of(member))
        subscriptions.append(Subscription(member.member_id, tuple(sorted(units))))
    return Group(tuple(subscriptions), counts)


def balance_of(members: Sequence[Member], routes: Routes) -> tuple[float | None, float | None]:
    """Imbalance of what members hold, and the lowest that any assignment of these queues could have."""
    counts = [count_of(member.assigned) for member in members]
    if not any(counts) or any(member.assigned is None for member in members):
        return None, None
    try:
        return imbalance(counts), imbalance_optimal(group_of(members, routes))
    except AssignorError:
        return imbalance(counts), None
