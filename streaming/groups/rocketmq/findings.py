"""Findings about a RocketMQ group: views that differ, and queues that have not exactly one owner.

Around every change clients disagree for a while, and that is how RocketMQ works: no lock exists for concurrent
consumers. So a finding is about what rounds go on showing. How long that must be depends on how long the same can be
seen in a healthy group:

- Lists of members, subscriptions, strategies: two rounds. A client tells all brokers within milliseconds. These are
  shown before an owner is wrong, because the next rebalance, up to 20 s later, decides by them.
- Routes: a broker registers with each name server every 30 s.
- Client ids twice on a list: a broker keeps a connection without heartbeats for 120 s, and a Java client may have two
  to one broker right after its start (seen with 5.5.0). So it must be so for longer than that.
- Owners: a route reaches a client within 30 s, its next rebalance comes within 20 s. Where views change again before,
  this begins again, so then it takes `RESTLESS_MS`.

Everything is watched under a name of its own (`RocketMQState.watched`), in elapsed time, and forgotten at the first
round that does not show it. Owners that flip at each rebalance, because each decides by another view, are found by the
last rounds together, and only where a view that differs has been seen as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from streaming.groups.kind import FindingAtRound, some
from streaming.groups.rocketmq.allocation import Queue, may_leave_out, may_share
from streaming.groups.rocketmq.round import RocketMQRound, Watch
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.verdicts import SETTLED_MS
from streaming.groups.rocketmq.views import Views, grouped, is_retry
from streaming.records import BROADCASTING, NOT_ASKED, OK, POP, TIMEOUT
from streaming.terminal import counted

_HELD_BY_NOBODY: Final = "held_by_nobody"

OWNERS_MS: Final = SETTLED_MS

_LOOKS: Final = 16
"""Newest rounds that count for owners that flip."""

_FLIPS: Final = 3
"""So many of them with a wrong owner are no transient, where views have differed for as long."""

_LONGEST: Final = 1_000
"""Characters of the longest detail: it holds those of other findings."""

_TopicQueue = tuple[str, Queue]


def wrong_owners(views: Views) -> tuple[list[_TopicQueue], list[_TopicQueue]]:
    """Queues that have several owners at this round, and those that have none; each with its topic."""
    doubly: list[_TopicQueue] = []
    nobody: list[_TopicQueue] = []
    for topic in views.judged_topics:
        if views.is_mapped(topic):
            continue
        names = views.strategies_of(topic)
        if not may_share(names):
            # By their own word now: what a member held that does not answer may be somebody else's by now.
            holders = sorted(views.holders[topic].items())
            doubly += [(topic, queue) for queue, clients in holders if len(views.told.keys() & clients) > 1]
        # A member of which nobody knows what it holds now may hold them.
        if any(topic in (views.subscriptions[client] or {topic}) for client in views.unknown):
            continue
        # Left out by the configuration: no fault, unless something is there to read.
        orphans = [(topic, queue) for queue in views.orphans(topic)]
        nobody += [owned for owned in orphans if not may_leave_out(names) or _unread(views, *owned)]
    return doubly, nobody


def owner_findings(
    watch: Watch, views: Views, doubly: Sequence[_TopicQueue], nobody: Sequence[_TopicQueue], least: int
) -> list[FindingAtRound]:
    """The findings on queues that have had several owners, or none, for at least so many ms."""
    twice = [([_text(*owned)], f"{_text(*owned)} by {some(views.holders[owned[0]][owned[1]])}") for owned in doubly]
    unread = [([_text(*owned)], f"{_text(*owned)} ({_unread(views, *owned):,} unread)") for owned in nobody]
    return [
        *watch.listing("doubly_held", least, twice, "queues that two members hold, which consume the same messages: "),
        *watch.listing(_HELD_BY_NOBODY, least, unread, "queues that no member holds: "),
    ]


def _unread(views: Views, topic: str, queue: Queue) -> int:
    """Messages of a queue that the group has not consumed, as far as its broker tells."""
    broker, number = queue
    for seen in views.topics[topic].queues:
        if seen.broker == broker and seen.answer == OK and number < len(seen.max):
            committed = -1 if seen.committed is None else seen.committed[number]
            return max(0, seen.max[number] - max(committed, seen.min[number], 0))
    return 0


def _text(topic: str, queue: Queue) -> str:
    broker, number = queue
    return f"{topic[:200]}@{broker[:100]} {number}"


def split_brain(
    mine: RocketMQState, owners: Sequence[FindingAtRound], differing: Sequence[FindingAtRound], now: int
) -> Iterator[FindingAtRound]:
    """The finding `split_brain`: views that differ, and owners that are wrong because of it, lasting or flipping.

    Args:
        mine: RocketMQ's part of the group's state.
        owners: The findings on owners.
        differing: The findings on views that differ.
        now: Time of the round, ms.
    """
    mine.wrong = (mine.wrong << 1 | bool(owners)) & ((1 << _LOOKS) - 1)
    if not differing:
        return
    since = min(one.since for one in differing)
    flipping = now - since >= OWNERS_MS and mine.wrong.bit_count() >= _FLIPS
    lasting = [one.detail for one in owners if one.shown]
    if flipping or lasting:
        what = "; ".join(lasting) or "queues change owners from one rebalance to the next"
        why = "; ".join(f"{one.name} ({one.detail})" for one in differing)
        yield FindingAtRound("split_brain", since, f"{what}, because members see different groups: {why}"[:_LONGEST])


SEEN_TWICE_MS: Final = 5_000
"""For what a client tells everyone at once. Rounds may be a second apart, so two of them alone are not enough."""

ROUTE_MS: Final = 40_000
"""A broker registers with every name server each 30 s (`registerNameServerPeriod`)."""

SILENT_MS: Final = 15_000
"""A question waits 10 s for a client (`CONSUME_MSG_TIMEOUT`), so a second one has been asked. A broker has been asked
in two rounds."""


CALM_MS: Final = 50_000
"""Owners are blamed after `OWNERS_MS` only if nothing has changed for a poll of the route and a cycle."""

RESTLESS_MS: Final = 150_000
"""Where members and routes keep changing, owners are wrong for longer: several changes may follow each other."""

TWICE_ON_A_LIST_MS: Final = 150_000
"""`channelExpiredTimeout` (120 s), and what the broker's scan and rounds take: by then a broken one is gone."""


def rocketmq_findings(mine: RocketMQState, seen: RocketMQRound) -> list[FindingAtRound]:
    """The findings at a round.

    Args:
        mine: RocketMQ's part of the group's state; what is watched is brought up to this round.
        seen: The round.
    """
    watch, views = seen.watch, seen.views
    clustering = views.message_model != BROADCASTING
    differing = [*_lists(watch, views), *_routes(watch, views)]
    if clustering:
        differing += [*_duplicates(watch, views), *_strategies(watch, views)]
    found = [*differing, *_subscriptions(watch, views), *_silent(watch, views), *_silent_brokers(watch, views)]
    if clustering:
        doubly, nobody = wrong_owners(views)
        owners = owner_findings(watch, views, doubly, nobody, OWNERS_MS if seen.unchanged >= CALM_MS else RESTLESS_MS)
        views_differ = [one for one in differing if one.shown]
        found += [*owners, *split_brain(mine, owners, views_differ, watch.time)]
        found += _unlocked(watch, views)
        if not any(one.shown for one in owners if one.name == _HELD_BY_NOBODY):
            found += _idle(watch, views)
    mine.watched = watch.kept()
    return found


def _lists(watch: Watch, views: Views) -> list[FindingAtRound]:
    parts = [
        ([f"{broker} {client}" for broker in brokers], f"{client[:200]} is not on the list of {some(brokers)}")
        for client, brokers in views.missing.items()
    ]
    return watch.listing("member_lists_differ", SEEN_TWICE_MS, parts, "clients that ask there leave members out: ")


def _routes(watch: Watch, views: Views) -> list[FindingAtRound]:
    parts = [
        ([f"{topic} {server}"], _lacks(views, topic, server))
        for topic, servers in views.poorer.items()
        for server in servers
        if topic in views.subscribers
    ]
    return watch.listing("route_differs", ROUTE_MS, parts, "name servers report different queues: ")


def _lacks(views: Views, topic: str, server: str) -> str:
    known = {broker for broker, _ in views.queues_by_server[topic].get(server, ())}
    lacking = sorted(views.routes[topic].keys() - known)
    return f"{server} lacks {f'brokers {some(lacking)}' if lacking else 'queues'} of {topic[:200]}"


def _duplicates(watch: Watch, views: Views) -> list[FindingAtRound]:
    parts = [
        (
            [f"{broker} {client}" for broker in brokers],
            f"{client[:200]} ({some(views.addresses_of(client))}) on {some(brokers)}",
        )
        for client, brokers in views.duplicates.items()
    ]
    what = "brokers list a client id twice, and nobody takes the share of the second entry: "
    return watch.listing("duplicate_client_id", TWICE_ON_A_LIST_MS, parts, what)


def _strategies(watch: Watch, views: Views) -> list[FindingAtRound]:
    of = grouped((name, client) for client, name in sorted(views.strategies.items()))
    if len(of) < 2 or not views.judged_topics:
        return []
    text = some([f"{name} ({some(clients)})" for name, clients in sorted(of.items())])
    return watch.finding("mixed_strategies", SEEN_TWICE_MS, [""], f"members run different strategies: {text}")


def _subscriptions(watch: Watch, views: Views) -> list[FindingAtRound]:
    subscribed = Counter(chain.from_iterable(views.facts.subscriptions.values()))
    members = len(views.facts.subscriptions)
    texts = [f"{topic[:200]} ({count} of {members})" for topic, count in sorted(subscribed.items()) if count < members]
    filters = {
        (one.topic, one.expression or "*")
        for member in views.told.values()
        for one in member.subscriptions or ()
        if subscribed[one.topic] == members
    }
    of_topic = grouped(sorted(filters))
    texts += [f"{topic[:200]} by different filters" for topic, said in of_topic.items() if len(said) > 1]
    models = {member.message_model for member in views.told.values()} - {None}
    if len(models) > 1:
        texts.append("CLUSTERING and BROADCASTING")
    if not texts or members < 2:
        return []
    what = f"members of one group must subscribe alike: {some(texts)}"
    return watch.finding("subscriptions_differ", SEEN_TWICE_MS, [""], what)


def _silent(watch: Watch, views: Views) -> list[FindingAtRound]:
    if any(broker.consume_type == POP for broker in views.masters.values() if broker.clients):
        return []  # a proxy does not pass the question on to its clients
    parts = []
    for member in views.observation.members:
        client = member.client_id
        # One that is not asked has not answered for a while.
        is_silent = member.answer == TIMEOUT or (
            member.answer == NOT_ASKED and watch.is_known(f"not_answering {client}")
        )
        if is_silent and client in views.held:
            count = sum(map(len, (views.held[client] or {}).values()))
            parts.append(([client], f"{client[:200]} ({counted(count, 'queue')})"))
    what = "members that brokers list do not answer; nobody else takes their queues: "
    return watch.listing("not_answering", SILENT_MS, parts, what)


def _silent_brokers(watch: Watch, views: Views) -> list[FindingAtRound]:
    parts = [([broker], f"{broker[:200]} ({answer})") for broker, answer in views.not_answering.items()]
    unseen = f", nor whether {some(views.unseen)} are still there" if views.unseen else ""
    after = f". The lag of their queues is not known{unseen}"
    return watch.listing("broker_not_answering", SILENT_MS, parts, "brokers do not report the group's members: ", after)


def _unlocked(watch: Watch, views: Views) -> list[FindingAtRound]:
    parts = []
    for client, member in sorted(views.told.items()):
        for queue in member.queues or ():
            if member.orderly and not (queue.locked or queue.dropped or is_retry(queue.topic)):
                names = [f"{client} {queue.topic}@{queue.broker} {queue.queue}"]
                parts.append((names, f"{queue.topic[:200]}@{queue.broker[:100]} {queue.queue} ({client[:200]})"))
    what = "orderly members hold queues without the broker's lock, so they consume nothing: "
    return watch.listing("orderly_not_locked", OWNERS_MS, parts, what)


def _idle(watch: Watch, views: Views) -> list[FindingAtRound]:
    topics = frozenset(views.judged_topics)
    without = sorted(client for client in views.told if views.held[client] == {})
    idle = [client for client in without if not topics.isdisjoint(views.subscriptions[client] or ())]
    what = f"{len(idle)} of {len(views.clients)} members hold no queue: {some(idle)}"
    return watch.finding("idle_members", OWNERS_MS, idle, what)
