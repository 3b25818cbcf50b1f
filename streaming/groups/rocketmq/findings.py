"""Findings about a RocketMQ group: views that differ, and queues that have not exactly one owner.

Around every change clients disagree for a while, and that is how RocketMQ works: no lock exists for concurrent
consumers. So a finding is about what rounds go on showing. How long that must be depends on how long the same can be
seen in a healthy group:

- Lists of members, subscriptions, strategies: two rounds. A client tells all brokers within milliseconds. These are
  told before an owner is wrong, because the next rebalance, up to 20 s later, decides by them.
- Routes: a broker registers with each name server every 30 s.
- Client ids twice on a list: a broker keeps a connection without heartbeats for 120 s, and a Java client may have two
  to one broker right after its start (seen with 5.5.0). So it must be the same two connections for longer than that.
- Owners: a route reaches a client within 30 s, its next rebalance comes within 20 s. Where views change again before,
  this begins again, so then it takes `RESTLESS_MS`.

Everything is watched under a name of its own (`RocketMQState.watched`), in elapsed time, and forgotten at the first
round that does not show it. Owners that flip at each rebalance, because each decides by another view, are told by the
last rounds together, and only where a view that differs has been seen as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from streaming.groups.health.columns import Found, some
from streaming.groups.rocketmq.allocation import BY_CONFIGURATION, Queue
from streaming.groups.rocketmq.decisions import SILENT
from streaming.groups.rocketmq.places import is_retry
from streaming.groups.rocketmq.state import RocketMQState, Watched
from streaming.groups.rocketmq.verdicts import SETTLED_MS
from streaming.groups.rocketmq.views import Views, queues_of
from streaming.records import BROADCASTING, NOT_ASKED, OK, POP, TIMEOUT, QueuesSeen

SPLIT_BRAIN: Final = "split_brain"
DOUBLY_HELD: Final = "doubly_held"
HELD_BY_NOBODY: Final = "held_by_nobody"
MEMBER_LISTS_DIFFER: Final = "member_lists_differ"
DUPLICATE_CLIENT_ID: Final = "duplicate_client_id"
MIXED_STRATEGIES: Final = "mixed_strategies"
SUBSCRIPTIONS_DIFFER: Final = "subscriptions_differ"
ROUTE_DIFFERS: Final = "route_differs"
NOT_ANSWERING: Final = "not_answering"
ORDERLY_NOT_LOCKED: Final = "orderly_not_locked"
IDLE_MEMBERS: Final = "idle_members"

SEEN_TWICE_MS: Final = 5_000
"""For what a client tells everyone at once. Rounds may be a second apart, so two of them alone are not enough."""

ROUTE_MS: Final = 40_000
"""A broker registers with every name server each 30 s (`registerNameServerPeriod`)."""

SILENT_MS: Final = 15_000
"""A question waits 10 s for a client (`CONSUME_MSG_TIMEOUT`), so a second one has been asked."""

OWNERS_MS: Final = SETTLED_MS

CALM_MS: Final = 50_000
"""Owners are blamed after `OWNERS_MS` only if no list and no route has changed for a poll of the route and a cycle."""

RESTLESS_MS: Final = 150_000
"""Where lists and routes keep changing, owners are wrong for longer: several changes may follow each other."""

BROKEN_CONNECTION_MS: Final = 150_000
"""`channelExpiredTimeout` (120 s), and what the broker's scan and rounds take: by then a broken one is gone."""

_MOST_WATCHED: Final = 2_000
"""Queues that are watched at once. More wrong ones are counted while the first are there."""

_CONNECTIONS: Final = 8
"""Connections of one client to one broker that are told apart: anybody can open thousands under one id."""

_LOOKS: Final = 16
"""Newest rounds that count for owners that flip."""

_FLIPS: Final = 3
"""So many of them with a wrong owner are no transient, where views have differed for as long."""

_LONGEST: Final = 1_000
"""Characters of the longest detail: it holds those of other findings."""


_Detail = Callable[[Sequence[tuple[str, Queue]]], str]


class _Watch:
    """What this round shows, and for how long rounds have shown it."""

    def __init__(self, mine: RocketMQState, elapsed: int) -> None:
        self._before, self._elapsed = mine.watched, elapsed
        self.now: dict[str, Watched] = {}

    def see(self, name: str) -> int:
        """Note that this round shows something; for how long all rounds have, ms; -1 at the first one."""
        watched = self.now.get(name) or self._before.get(name)
        if watched is None or watched.since > self._elapsed:
            self.now[name] = Watched(self._elapsed)
            return -1
        if name not in self.now:
            watched.rounds += 1
            self.now[name] = watched
        return self._elapsed - watched.since

    def has_room(self) -> bool:
        """Whether one more may be watched."""
        return len(self.now) < _MOST_WATCHED

    def is_known(self, name: str) -> bool:
        """Whether the round before has shown it."""
        return name in self._before

    def longest(self, prefixes: Sequence[str]) -> int:
        """For how long rounds have shown anything with such a name, ms; -1 if nothing."""
        return max(
            (self._elapsed - of.since for name, of in self.now.items() if name.startswith(tuple(prefixes))), default=-1
        )


def rocketmq_findings(mine: RocketMQState, views: Views, now: int) -> list[Found]:
    """The findings at a round.

    Args:
        mine: RocketMQ's part of the group's state; what is watched is brought up to this round.
        views: The round.
        now: Its time, ms.
    """
    elapsed = views.observation.elapsed_time
    watch = _Watch(mine, elapsed)
    clustering = views.message_model != BROADCASTING
    found: list[Found] = []
    differing = [*_lists(watch, views, now), *_routes(watch, views, now)]
    if clustering:
        differing += [*_duplicates(watch, views, now), *_strategies(watch, views, now)]
    found += differing
    found += _subscriptions(watch, views, now)
    found += _silent(watch, views, now)
    if clustering:
        is_calm = elapsed - mine.calm_since >= CALM_MS
        owners = _Owners(watch, views, now, OWNERS_MS if is_calm else RESTLESS_MS)
        found += owners.findings()
        found += _split(mine, watch, owners, [one for one in differing if one.shown], now)
        found += _unlocked(watch, views, now)
        if not any(one.shown for one in found if one.name == HELD_BY_NOBODY):
            found += _idle(watch, views, now)
    mine.watched = watch.now
    return found


def _found(name: str, lasted: int, least: int, detail: str, now: int) -> Found:
    """A finding that is shown once it has lasted for so long."""
    return Found(name, now - max(0, lasted), detail, shown=lasted >= least)


def _lists(watch: _Watch, views: Views, now: int) -> Iterator[Found]:
    lasted, texts = -1, []
    for client, brokers in views.missing.items():
        longest = max(watch.see(f"{MEMBER_LISTS_DIFFER} {broker} {client}") for broker in brokers)
        lasted = max(lasted, longest)
        if longest >= SEEN_TWICE_MS:
            texts.append(f"{client[:200]} is not on the list of {some(brokers)}")
    if views.missing:
        left_out = {broker for brokers in views.missing.values() for broker in brokers}
        # (A broker that has none of the group's topics has no list of it, either.)
        lists = "; ".join(
            f"{broker} has {len(set(clients))}"
            for broker, clients in views.lists.items()
            if clients or broker in left_out
        )
        detail = f"{some(texts)}. Clients that ask there leave it out. Members: {lists[:300]}"
        yield _found(MEMBER_LISTS_DIFFER, lasted, SEEN_TWICE_MS, detail, now)


def _routes(watch: _Watch, views: Views, now: int) -> Iterator[Found]:
    lasted, texts = -1, []
    for topic, servers in views.poorer.items():
        if not views.subscribers.get(topic):
            continue
        for server in servers:
            longest = watch.see(f"{ROUTE_DIFFERS} {topic} {server}")
            lasted = max(lasted, longest)
            if longest >= ROUTE_MS:
                known = {broker for broker, _ in views.queues_by_server[topic].get(server, ())}
                lacking = sorted(views.routes[topic].keys() - known)
                texts.append(f"{server} lacks {f'brokers {some(lacking)}' if lacking else 'queues'} of {topic[:200]}")
    if lasted >= 0 or texts:
        detail = f"name servers tell different queues: {some(texts)}"
        yield _found(ROUTE_DIFFERS, lasted, ROUTE_MS, detail, now)


def _duplicates(watch: _Watch, views: Views, now: int) -> Iterator[Found]:
    lasted, texts = -1, []
    for client, brokers in views.duplicates.items():
        longest = max(_both_last(watch, views, client, broker) for broker in brokers)
        lasted = max(lasted, longest)
        if longest >= BROKEN_CONNECTION_MS:
            texts.append(f"{client[:200]} ({some(views.addresses_of(client))}) on {some(brokers)}")
    if views.duplicates:
        detail = (
            "two clients with one id, each connected and alive: the broker lists the id twice, and nobody takes the "
            f"share of the second entry: {some(texts)}"
        )
        yield _found(DUPLICATE_CLIENT_ID, lasted, BROKEN_CONNECTION_MS, detail, now)


def _both_last(watch: _Watch, views: Views, client: str, broker: str) -> int:
    """For how long a broker has had the same two connections of a client, ms; -1 at the first round.

    A client that connects again and again always has two, never the same two.
    """
    addresses = views.connections_of(client, broker)[:_CONNECTIONS]
    if len(addresses) < 2 or not watch.has_room():
        return watch.see(f"{DUPLICATE_CLIENT_ID} {broker} {client}")
    lasting = [watch.see(f"{DUPLICATE_CLIENT_ID} {broker} {address} {client}") for address in addresses]
    return sorted(lasting)[-2]


def _strategies(watch: _Watch, views: Views, now: int) -> Iterator[Found]:
    of: dict[str, list[str]] = {}
    for client, member in sorted(views.told.items()):
        if member.strategy is not None:
            of.setdefault(views.runs[client].name, []).append(client)
    if len(of) > 1 and views.judged_topics:
        lasted = watch.see(MIXED_STRATEGIES)
        detail = f"members run different strategies: {some([f'{name} ({some(of[name])})' for name in sorted(of)])}"
        yield _found(MIXED_STRATEGIES, lasted, SEEN_TWICE_MS, detail, now)


def _subscriptions(watch: _Watch, views: Views, now: int) -> Iterator[Found]:
    subscribed = views.facts.subscriptions
    if len(subscribed) < 2:
        return
    texts = []
    every = sorted({topic for topics in subscribed.values() for topic in topics})
    for topic in every:
        lacking = sorted(client for client, topics in subscribed.items() if topic not in topics)
        if lacking:
            texts.append(f"{topic[:200]} ({len(subscribed) - len(lacking)} of {len(subscribed)}, not {some(lacking)})")
            continue
        filters = {views.facts.expressions.get(client, {}).get(topic, "*") for client in subscribed}
        if len(filters) > 1:
            texts.append(f"{topic[:200]} by different filters ({some([text[:80] for text in sorted(filters)])})")
    models = {member.message_model for member in views.told.values()} - {None}
    if len(models) > 1:
        texts.append("CLUSTERING and BROADCASTING")
    if texts:
        lasted = watch.see(SUBSCRIPTIONS_DIFFER)
        detail = f"members of one group must subscribe alike: {some(texts)}"
        yield _found(SUBSCRIPTIONS_DIFFER, lasted, SEEN_TWICE_MS, detail, now)


def _silent(watch: _Watch, views: Views, now: int) -> Iterator[Found]:
    if any(broker.consume_type == POP for broker in views.masters.values() if broker.clients):
        return  # a proxy does not pass the question on to its clients
    lasted, texts = -1, []
    for member in views.observation.members:
        name = f"{SILENT}{member.client_id}"
        # Not asked because it has not answered for a while.
        goes_on = member.answer == NOT_ASKED and watch.is_known(name)
        if (member.answer != TIMEOUT and not goes_on) or member.client_id not in views.clients:
            continue
        longest = watch.see(name)
        lasted = max(lasted, longest)
        if longest >= SILENT_MS:
            held = sum(map(len, (views.held[member.client_id] or {}).values()))
            texts.append(f"{member.client_id[:200]} ({held} queues)")
    if lasted >= 0 or texts:
        detail = f"members that brokers list do not answer; nobody else takes their queues: {some(texts)}"
        yield _found(NOT_ANSWERING, lasted, SILENT_MS, detail, now)


def _unlocked(watch: _Watch, views: Views, now: int) -> Iterator[Found]:
    lasted, texts = -1, []
    for client, member in sorted(views.told.items()):
        if not member.orderly:
            continue
        for queue in member.queues or ():
            if queue.locked or queue.dropped or is_retry(queue.topic):
                continue
            name = f"{ORDERLY_NOT_LOCKED} {client} {queue.topic}@{queue.broker} {queue.queue}"
            longest = watch.see(name) if watch.has_room() else -1
            lasted = max(lasted, longest)
            if longest >= OWNERS_MS:
                texts.append(f"{queue.topic[:200]}@{queue.broker[:100]} {queue.queue} ({client[:200]})")
    if lasted >= 0 or texts:
        detail = f"orderly members hold queues without the broker's lock, so they consume nothing: {some(texts)}"
        yield _found(ORDERLY_NOT_LOCKED, lasted, OWNERS_MS, detail, now)


def _idle(watch: _Watch, views: Views, now: int) -> Iterator[Found]:
    topics = views.judged_topics
    idle = [
        client
        for client in views.told
        if views.held[client] == {} and any(client in views.subscribers[topic] for topic in topics)
    ]
    if not idle or not topics:
        return
    lasted = max(watch.see(f"{IDLE_MEMBERS} {client}") for client in idle)
    queues = {topic: sum(views.routes[topic].values()) for topic in topics if not is_retry(topic)}
    most = max(queues, key=lambda topic: queues[topic], default=None)
    why = "" if most is None else f", its largest topic has {queues[most]} queues for {len(views.clients)} members"
    detail = f"{len(idle)} of {len(views.clients)} members hold no queue{why}: {some(sorted(idle))}"
    yield _found(IDLE_MEMBERS, lasted, OWNERS_MS, detail, now)


class _Owners:
    """Queues that have several owners or none at this round, and since when."""

    def __init__(self, watch: _Watch, views: Views, now: int, least: int) -> None:
        self._watch, self._views, self._now, self._least = watch, views, now, least
        self.doubly: list[tuple[str, Queue]] = []
        self.nobody: list[tuple[str, Queue]] = []
        for topic in views.judged_topics:
            if not views.is_mapped(topic):
                self._topic(topic)

    @property
    def least(self) -> int:
        """For how long an owner must have been wrong, ms."""
        return self._least

    @property
    def is_wrong(self) -> bool:
        """Whether any queue has not exactly one owner."""
        return bool(self.doubly or self.nobody)

    def _topic(self, topic: str) -> None:
        views = self._views
        holders, subscribed = views.holders[topic], views.subscribers[topic]
        names = {views.runs[client].name for client in subscribed if client in views.runs}
        if not names & BY_CONFIGURATION:
            self.doubly += [(topic, queue) for queue, of in sorted(holders.items()) if len(of) > 1]
        # A member of which nobody knows what it holds may hold them.
        if any(views.held[client] is None for client in views.clients):
            return
        orphans = [queue for queue in queues_of(views.routes[topic]) if queue not in holders]
        if any("MACHINE_ROOM" in name or name in BY_CONFIGURATION for name in names):
            # Left out by the configuration: no fault, unless something is there to read.
            orphans = [queue for queue in orphans if self._unread(topic, queue)]
        self.nobody += [(topic, queue) for queue in orphans]

    def findings(self) -> Iterator[Found]:
        """The findings on queues that have been so for long enough."""
        yield from self._of(DOUBLY_HELD, self.doubly, self._doubly_detail)
        yield from self._of(HELD_BY_NOBODY, self.nobody, self._nobody_detail)

    def _of(self, name: str, queues: Sequence[tuple[str, Queue]], detail: _Detail) -> Iterator[Found]:
        lasted, lasting = -1, []
        for topic, (broker, number) in queues:
            if not self._watch.has_room():
                break
            longest = self._watch.see(f"{name} {topic}@{broker} {number}")
            lasted = max(lasted, longest)
            if longest >= self._least:
                lasting.append((topic, (broker, number)))
        if queues:
            yield _found(name, lasted, self._least, detail(lasting), self._now)

    def _doubly_detail(self, queues: Sequence[tuple[str, Queue]]) -> str:
        texts = [
            f"{_text(topic, queue)} by {some(self._views.holders[topic].get(queue, ()))}" for topic, queue in queues
        ]
        return f"{_count(len(queues))} by two or more members, which consume the same messages: {some(texts)}"

    def _nobody_detail(self, queues: Sequence[tuple[str, Queue]]) -> str:
        unread = {of: self._unread(*of) for of in queues}
        never = sum(self._committed(*of) is None for of in queues)
        lag = sum(count or 0 for count in unread.values())
        behind = [of for of in queues if unread[of]]
        parts = [f"{len(behind)} with {lag:,} unread messages" if behind else "none with unread messages"]
        if never:
            parts.append(f"{never} never consumed")
        first = [_text(*of) for of in sorted(queues, key=lambda of: (-(unread[of] or 0), of))]
        return f"{_count(len(queues))} by no member ({', '.join(parts)}): {some(first)}"

    def _unread(self, topic: str, queue: Queue) -> int | None:
        """Messages of a queue that the group has not consumed; None if unknown."""
        seen = self._offsets(topic, queue)
        if seen is None:
            return None
        committed = seen.committed[queue[1]] if seen.committed is not None else -1
        end, start = seen.max[queue[1]], seen.min[queue[1]]
        return None if end < 0 else max(0, end - max(committed, start, 0))

    def _committed(self, topic: str, queue: Queue) -> int | None:
        seen = self._offsets(topic, queue)
        if seen is None or seen.committed is None:
            return 0  # nobody knows
        return seen.committed[queue[1]] if seen.committed[queue[1]] >= 0 else None

    def _offsets(self, topic: str, queue: Queue) -> QueuesSeen | None:
        for seen in self._views.topics[topic].queues:
            if seen.broker == queue[0] and seen.answer == OK and queue[1] < len(seen.max):
                return seen
        return None


def _split(
    mine: RocketMQState, watch: _Watch, owners: _Owners, differing: Sequence[Found], now: int
) -> Iterator[Found]:
    """The finding `split_brain`: views that differ, and owners that are wrong because of it, lasting or flipping."""
    mine.wrong = (mine.wrong << 1 | owners.is_wrong) & ((1 << _LOOKS) - 1)
    if not differing:
        return
    since = min(one.since for one in differing)
    lasting = watch.longest((f"{DOUBLY_HELD} ", f"{HELD_BY_NOBODY} ")) >= owners.least
    flipping = now - since >= OWNERS_MS and mine.wrong.bit_count() >= _FLIPS
    if lasting or flipping:
        wrong = [
            *(f"{_text(*of)} is held twice" for of in owners.doubly),
            *(f"{_text(*of)} is held by nobody" for of in owners.nobody),
        ]
        what = some(wrong) if wrong else "queues change owners from one rebalance to the next"
        why = "; ".join(f"{one.name} ({one.detail})" for one in differing)
        yield Found(SPLIT_BRAIN, since, f"{what}, because members see different groups: {why}"[:_LONGEST])


def _text(topic: str, queue: Queue) -> str:
    return f"{topic[:200]}@{queue[0][:100]} {queue[1]}"


def _count(number: int) -> str:
    return "1 queue held" if number == 1 else f"{number} queues held"
