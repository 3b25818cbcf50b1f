"""Findings about a RocketMQ group: views that differ, and queues that have not exactly one owner.

Around every change clients disagree for a while, and that is how RocketMQ works: no lock exists for concurrent
consumers. So a finding is about what rounds go on showing. How long that must be depends on how long the same can be
seen in a healthy group:

- Lists of members, subscriptions, strategies: two rounds. A client tells all brokers within milliseconds. These are
  shown before an owner is wrong, because the next rebalance, up to 20 s later, decides by them.
- Routes: a broker registers with each name server every 30 s.
- Client ids twice on a list: a broker keeps a connection without heartbeats for 120 s, and a Java client may have two
  to one broker right after its start (seen with 5.5.0). So it must be the same two connections for longer than that.
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
from streaming.groups.rocketmq.decisions import SILENT
from streaming.groups.rocketmq.round import RocketMQRound
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.verdicts import SETTLED_MS
from streaming.groups.rocketmq.views import Views, grouped, is_retry
from streaming.groups.rocketmq.watch import Watch, are_all, lasting
from streaming.records import BROADCASTING, NOT_ASKED, OK, POP, TIMEOUT
from streaming.terminal import counted

SPLIT_BRAIN: Final = "split_brain"
DOUBLY_HELD: Final = "doubly_held"
HELD_BY_NOBODY: Final = "held_by_nobody"

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
        nobody += [owned for owned in orphans if not may_leave_out(names) or _unread(views, owned)[0]]
    return doubly, nobody


def owner_findings(
    watch: Watch, views: Views, doubly: Sequence[_TopicQueue], nobody: Sequence[_TopicQueue], least: int
) -> list[FindingAtRound]:
    """The findings on queues that have had several owners, or none, for at least so many ms."""
    found = []
    for name, queues, detail_of in ((DOUBLY_HELD, doubly, _doubly_detail), (HELD_BY_NOBODY, nobody, _nobody_detail)):
        parts = [
            (watch.see(f"{name} {topic}@{broker} {number}"), (topic, (broker, number)))
            for topic, (broker, number) in queues
        ]
        last = lasting(parts, least)
        count = f"{'' if are_all(parts) else 'at least '}{counted(len(last), 'queue')} held"
        detail = f"{count} by {detail_of(views, last, are_all=are_all(parts))}"
        found += watch.finding(name, least, [lasted for lasted, _ in parts], detail)
    return found


def _doubly_detail(views: Views, queues: list[_TopicQueue], *, are_all: bool) -> str:  # noqa: ARG001
    texts = [f"{_text(owned)} by {some(views.holders[owned[0]][owned[1]])}" for owned in queues]
    return f"two or more members, which consume the same messages: {some(texts)}"


def _nobody_detail(views: Views, queues: list[_TopicQueue], *, are_all: bool) -> str:
    offsets = {owned: _unread(views, owned) for owned in queues}
    unread = [count for count, _ in offsets.values() if count]
    never = sum(is_never_consumed for _, is_never_consumed in offsets.values())
    which = "" if are_all else "of these "
    lag = f"{len(unread)} with {sum(unread):,} unread messages" if unread else "none with unread messages"
    more = f", {never:,} never consumed" if never else ""
    first = [_text(owned) for owned in sorted(queues, key=lambda owned: (-offsets[owned][0], owned))]
    return f"no member ({which}{lag}{more}): {some(first)}"


def _unread(views: Views, owned: _TopicQueue) -> tuple[int, bool]:
    """Messages of a queue that the group has not consumed, and whether it has no offset, as far as its broker tells."""
    topic, (broker, number) = owned
    for seen in views.topics[topic].queues:
        if seen.broker == broker and seen.answer == OK and number < len(seen.max):
            committed = -1 if seen.committed is None else seen.committed[number]
            unread = max(0, seen.max[number] - max(committed, seen.min[number], 0))
            return unread, committed < 0 and seen.committed is not None
    return 0, False


def split_brain(
    mine: RocketMQState,
    owners: Sequence[FindingAtRound],
    wrong: Sequence[str],
    differing: Sequence[FindingAtRound],
    now: int,
) -> Iterator[FindingAtRound]:
    """The finding `split_brain`: views that differ, and owners that are wrong because of it, lasting or flipping.

    Args:
        mine: RocketMQ's part of the group's state.
        owners: The findings on owners.
        wrong: What is wrong with owners at this round.
        differing: The findings on views that differ.
        now: Time of the round, ms.
    """
    mine.wrong = (mine.wrong << 1 | bool(wrong)) & ((1 << _LOOKS) - 1)
    if not differing:
        return
    since = min(one.since for one in differing)
    flipping = now - since >= OWNERS_MS and mine.wrong.bit_count() >= _FLIPS
    if flipping or any(one.shown for one in owners):
        what = some(wrong) if wrong else "queues change owners from one rebalance to the next"
        why = "; ".join(f"{one.name} ({one.detail})" for one in differing)
        yield FindingAtRound(SPLIT_BRAIN, since, f"{what}, because members see different groups: {why}"[:_LONGEST])


def texts_of(doubly: Sequence[_TopicQueue], nobody: Sequence[_TopicQueue]) -> list[str]:
    """What is wrong with these queues."""
    twice = [f"{_text(owned)} is held twice" for owned in doubly]
    return twice + [f"{_text(owned)} is held by nobody" for owned in nobody]


def _text(owned: _TopicQueue) -> str:
    topic, (broker, number) = owned
    return f"{topic[:200]}@{broker[:100]} {number}"


MEMBER_LISTS_DIFFER: Final = "member_lists_differ"
DUPLICATE_CLIENT_ID: Final = "duplicate_client_id"
MIXED_STRATEGIES: Final = "mixed_strategies"
SUBSCRIPTIONS_DIFFER: Final = "subscriptions_differ"
ROUTE_DIFFERS: Final = "route_differs"
NOT_ANSWERING: Final = "not_answering"
BROKER_NOT_ANSWERING: Final = "broker_not_answering"
ORDERLY_NOT_LOCKED: Final = "orderly_not_locked"
IDLE_MEMBERS: Final = "idle_members"

SEEN_TWICE_MS: Final = 5_000
"""For what a client tells everyone at once. Rounds may be a second apart, so two of them alone are not enough."""

ROUTE_MS: Final = 40_000
"""A broker registers with every name server each 30 s (`registerNameServerPeriod`)."""

SILENT_MS: Final = 15_000
"""A question waits 10 s for a client (`CONSUME_MSG_TIMEOUT`), so a second one has been asked. A broker has been asked
in two rounds."""


CALM_MS: Final = 50_000
"""Owners are blamed after `OWNERS_MS` only if no list and no route has changed for a poll of the route and a cycle."""

RESTLESS_MS: Final = 150_000
"""Where lists and routes keep changing, owners are wrong for longer: several changes may follow each other."""

BROKEN_CONNECTION_MS: Final = 150_000
"""`channelExpiredTimeout` (120 s), and what the broker's scan and rounds take: by then a broken one is gone."""


_CONNECTIONS: Final = 8
"""Connections of one client to one broker that are told apart: anybody can open thousands under one id."""


_MOST_TOLD: Final = 8
"""Topics that members subscribe to differently and of which the members are looked up. A detail names fewer."""


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
        owners = owner_findings(watch, views, doubly, nobody, OWNERS_MS if seen.calm >= CALM_MS else RESTLESS_MS)
        views_differ = [one for one in differing if one.shown]
        found += [*owners, *split_brain(mine, owners, texts_of(doubly, nobody), views_differ, watch.time)]
        found += _unlocked(watch, views)
        if not any(one.shown for one in owners if one.name == HELD_BY_NOBODY):
            found += _idle(watch, views)
    mine.watched = watch.kept()
    return found


def _lists(watch: Watch, views: Views) -> list[FindingAtRound]:
    parts = []
    for client, brokers in views.missing.items():
        lasted = max(watch.see(f"{MEMBER_LISTS_DIFFER} {broker} {client}") for broker in brokers)
        parts.append((lasted, f"{client[:200]} is not on the list of {some(brokers)}"))
    left_out = set(chain.from_iterable(views.missing.values()))
    # A broker that has none of the group's topics has no list of it, either.
    lists = {broker: set(clients) for broker, clients in views.lists.items() if clients or broker in left_out}
    counts = "; ".join(f"{broker} has {len(clients)}" for broker, clients in lists.items())
    after = f". Clients that ask there leave it out. Members: {counts[:300]}"
    return watch.listing(MEMBER_LISTS_DIFFER, SEEN_TWICE_MS, parts, "", after)


def _routes(watch: Watch, views: Views) -> list[FindingAtRound]:
    poorer = [(topic, server) for topic, servers in views.poorer.items() for server in servers]
    parts = [
        (watch.see(f"{ROUTE_DIFFERS} {topic} {server}"), _lacks(views, topic, server))
        for topic, server in poorer
        if topic in views.subscribers
    ]
    return watch.listing(ROUTE_DIFFERS, ROUTE_MS, parts, "name servers report different queues: ")


def _lacks(views: Views, topic: str, server: str) -> str:
    known = {broker for broker, _ in views.queues_by_server[topic].get(server, ())}
    lacking = sorted(views.routes[topic].keys() - known)
    return f"{server} lacks {f'brokers {some(lacking)}' if lacking else 'queues'} of {topic[:200]}"


def _duplicates(watch: Watch, views: Views) -> list[FindingAtRound]:
    parts = []
    for client, brokers in views.duplicates.items():
        lasted = max(_both_last(watch, views, client, broker) for broker in brokers)
        parts.append((lasted, f"{client[:200]} ({some(views.addresses_of(client))}) on {some(brokers)}"))
    what = (
        "two clients with one id, each connected and alive: the broker lists the id twice, and nobody takes the share "
        "of the second entry: "
    )
    return watch.listing(DUPLICATE_CLIENT_ID, BROKEN_CONNECTION_MS, parts, what)


def _both_last(watch: Watch, views: Views, client: str, broker: str) -> int:
    """For how long a broker has had the same two connections of a client, ms; -1 at the first round.

    A client that connects again and again always has two, never the same two.
    """
    addresses = views.connections_of(client, broker)[:_CONNECTIONS]
    if len(addresses) < 2:
        return watch.see(f"{DUPLICATE_CLIENT_ID} {broker} {client}")
    ages = [watch.see(f"{DUPLICATE_CLIENT_ID} {broker} {address} {client}") for address in addresses]
    return sorted(ages)[-2]


def _strategies(watch: Watch, views: Views) -> list[FindingAtRound]:
    of = grouped((name, client) for client, name in sorted(views.strategies.items()))
    if len(of) < 2 or not views.judged_topics:
        return []
    text = some([f"{name} ({some(clients)})" for name, clients in sorted(of.items())])
    lasted = watch.see(MIXED_STRATEGIES)
    return watch.finding(MIXED_STRATEGIES, SEEN_TWICE_MS, [lasted], f"members run different strategies: {text}")


def _subscriptions(watch: Watch, views: Views) -> list[FindingAtRound]:
    subscribed = {client: frozenset(topics) for client, topics in sorted(views.facts.subscriptions.items())}
    if len(subscribed) < 2:
        return []
    texts: list[str] = []
    for topic, count in sorted(Counter(chain.from_iterable(subscribed.values())).items()):
        if count < len(subscribed):
            is_told = len(texts) < _MOST_TOLD
            lacking = [client for client, topics in subscribed.items() if topic not in topics] if is_told else ()
            texts.append(f"{topic[:200]} ({count} of {len(subscribed)}, not {some(lacking)})")
            continue
        filters = {views.facts.expressions.get(client, {}).get(topic, "*") for client in subscribed}
        if len(filters) > 1:
            texts.append(f"{topic[:200]} by different filters ({some([text[:80] for text in sorted(filters)])})")
    models = {member.message_model for member in views.told.values()} - {None}
    if len(models) > 1:
        texts.append("CLUSTERING and BROADCASTING")
    lasted = [watch.see(SUBSCRIPTIONS_DIFFER)] if texts else []
    what = f"members of one group must subscribe alike: {some(texts)}"
    return watch.finding(SUBSCRIPTIONS_DIFFER, SEEN_TWICE_MS, lasted, what)


def _silent(watch: Watch, views: Views) -> list[FindingAtRound]:
    if any(broker.consume_type == POP for broker in views.masters.values() if broker.clients):
        return []  # a proxy does not pass the question on to its clients
    parts = []
    for member in views.observation.members:
        client, name = member.client_id, f"{SILENT}{member.client_id}"
        # One that is not asked has not answered for a while.
        is_silent = member.answer == TIMEOUT or (member.answer == NOT_ASKED and watch.is_known(name))
        if is_silent and client in views.held:
            count = sum(map(len, (views.held[client] or {}).values()))
            parts.append((watch.see(name), f"{client[:200]} ({counted(count, 'queue')})"))
    what = "members that brokers list do not answer; nobody else takes their queues: "
    return watch.listing(NOT_ANSWERING, SILENT_MS, parts, what)


def _silent_brokers(watch: Watch, views: Views) -> list[FindingAtRound]:
    parts = [
        (watch.see(f"{BROKER_NOT_ANSWERING} {broker}"), f"{broker[:200]} ({answer})")
        for broker, answer in views.not_answering.items()
    ]
    unseen = f", nor whether {some(views.unseen)} are still there" if views.unseen else ""
    after = f". The lag of their queues is not known{unseen}"
    return watch.listing(BROKER_NOT_ANSWERING, SILENT_MS, parts, "brokers do not report the group's members: ", after)


def _unlocked(watch: Watch, views: Views) -> list[FindingAtRound]:
    parts = []
    for client, member in sorted(views.told.items()):
        for queue in member.queues or ():
            if member.orderly and not (queue.locked or queue.dropped or is_retry(queue.topic)):
                lasted = watch.see(f"{ORDERLY_NOT_LOCKED} {client} {queue.topic}@{queue.broker} {queue.queue}")
                parts.append((lasted, f"{queue.topic[:200]}@{queue.broker[:100]} {queue.queue} ({client[:200]})"))
    what = "orderly members hold queues without the broker's lock, so they consume nothing: "
    return watch.listing(ORDERLY_NOT_LOCKED, OWNERS_MS, parts, what)


def _idle(watch: Watch, views: Views) -> list[FindingAtRound]:
    topics = frozenset(views.judged_topics)
    without = sorted(client for client in views.told if views.held[client] == {})
    idle = [client for client in without if not topics.isdisjoint(views.subscriptions[client] or ())]
    queues = {topic: sum(views.routes[topic].values()) for topic in sorted(topics) if not is_retry(topic)}
    most = max(queues, key=lambda topic: queues[topic], default=None)
    why = "" if most is None else f", its largest topic has {queues[most]} queues for {len(views.clients)} members"
    what = f"{len(idle)} of {len(views.clients)} members hold no queue{why}: {some(idle)}"
    return watch.finding(IDLE_MEMBERS, OWNERS_MS, [watch.see(f"{IDLE_MEMBERS} {client}") for client in idle], what)
