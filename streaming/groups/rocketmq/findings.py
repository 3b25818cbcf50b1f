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
from itertools import chain
from typing import Final

from streaming.groups.health.columns import FindingAtRound, some
from streaming.groups.rocketmq.decisions import SILENT
from streaming.groups.rocketmq.owners import (
    HELD_BY_NOBODY,
    OWNERS_MS,
    owner_findings,
    split_brain,
    texts_of,
    wrong_owners,
)
from streaming.groups.rocketmq.round import RocketMQRound
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.views import Views, grouped, is_retry
from streaming.groups.rocketmq.watch import Watch
from streaming.records import BROADCASTING, NOT_ASKED, POP, TIMEOUT
from streaming.terminal import counted

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
