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
from collections.abc import Iterator
from itertools import chain
from typing import Final

from streaming.groups.health.columns import FindingAtRound, some
from streaming.groups.rocketmq.decisions import SILENT
from streaming.groups.rocketmq.owners import (
    HELD_BY_NOBODY,
    OWNERS_MS,
    Watch,
    owner_findings,
    split_brain,
    texts_of,
    wrong_owners,
)
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.views import Views, is_retry
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


def rocketmq_findings(mine: RocketMQState, views: Views, now: int) -> list[FindingAtRound]:
    """The findings at a round.

    Args:
        mine: RocketMQ's part of the group's state; what is watched is brought up to this round.
        views: The round.
        now: Its time, ms.
    """
    elapsed = views.observation.elapsed_time
    watch = Watch(mine, elapsed, now)
    clustering = views.message_model != BROADCASTING
    differing = [*_lists(watch, views), *_routes(watch, views)]
    if clustering:
        differing += [*_duplicates(watch, views), *_strategies(watch, views)]
    found = [*differing, *_subscriptions(watch, views), *_silent(watch, views), *_silent_brokers(watch, views)]
    if clustering:
        is_calm = elapsed - mine.calm_since >= CALM_MS
        doubly, nobody = wrong_owners(views)
        owners = owner_findings(watch, views, doubly, nobody, OWNERS_MS if is_calm else RESTLESS_MS)
        views_differ = [one for one in differing if one.shown]
        found += [*owners, *split_brain(mine, owners, texts_of(doubly, nobody), views_differ, now)]
        found += _unlocked(watch, views)
        if not any(one.shown for one in owners if one.name == HELD_BY_NOBODY):
            found += _idle(watch, views)
    mine.watched = watch.now
    return found


def _lists(watch: Watch, views: Views) -> Iterator[FindingAtRound]:
    lasting = watch.follow(
        MEMBER_LISTS_DIFFER,
        SEEN_TWICE_MS,
        (
            (
                max(watch.see(f"{MEMBER_LISTS_DIFFER} {broker} {client}") for broker in brokers),
                f"{client[:200]} is not on the list of {some(brokers)}",
            )
            for client, brokers in views.missing.items()
        ),
    )
    left_out = {broker for brokers in views.missing.values() for broker in brokers}
    # A broker that has none of the group's topics has no list of it, either.
    lists = "; ".join(
        f"{broker} has {len(set(clients))}" for broker, clients in views.lists.items() if clients or broker in left_out
    )
    return lasting.told(f"{lasting.text}. Clients that ask there leave it out. Members: {lists[:300]}")


def _routes(watch: Watch, views: Views) -> Iterator[FindingAtRound]:
    lasting = watch.follow(
        ROUTE_DIFFERS,
        ROUTE_MS,
        (
            (watch.see(f"{ROUTE_DIFFERS} {topic} {server}"), _lacks(views, topic, server))
            for topic, servers in views.poorer.items()
            if views.subscribers.get(topic)
            for server in servers
        ),
    )
    return lasting.told(f"name servers report different queues: {lasting.text}")


def _lacks(views: Views, topic: str, server: str) -> str:
    known = {broker for broker, _ in views.queues_by_server[topic].get(server, ())}
    lacking = sorted(views.routes[topic].keys() - known)
    return f"{server} lacks {f'brokers {some(lacking)}' if lacking else 'queues'} of {topic[:200]}"


def _duplicates(watch: Watch, views: Views) -> Iterator[FindingAtRound]:
    lasting = watch.follow(
        DUPLICATE_CLIENT_ID,
        BROKEN_CONNECTION_MS,
        (
            (
                max(_both_last(watch, views, client, broker) for broker in brokers),
                f"{client[:200]} ({some(views.addresses_of(client))}) on {some(brokers)}",
            )
            for client, brokers in views.duplicates.items()
        ),
    )
    return lasting.told(
        "two clients with one id, each connected and alive: the broker lists the id twice, and nobody takes the share "
        f"of the second entry: {lasting.text}"
    )


def _both_last(watch: Watch, views: Views, client: str, broker: str) -> int:
    """For how long a broker has had the same two connections of a client, ms; -1 at the first round.

    A client that connects again and again always has two, never the same two.
    """
    addresses = views.connections_of(client, broker)[:_CONNECTIONS]
    if len(addresses) < 2:
        return watch.see(f"{DUPLICATE_CLIENT_ID} {broker} {client}")
    lasting = [watch.see(f"{DUPLICATE_CLIENT_ID} {broker} {address} {client}") for address in addresses]
    return sorted(lasting)[-2]


def _strategies(watch: Watch, views: Views) -> Iterator[FindingAtRound]:
    of: dict[str, list[str]] = {}
    for client, member in sorted(views.told.items()):
        if member.strategy is not None:
            of.setdefault(views.runs[client].name, []).append(client)
    if len(of) > 1 and views.judged_topics:
        text = some([f"{name} ({some(of[name])})" for name in sorted(of)])
        lasting = watch.follow(MIXED_STRATEGIES, SEEN_TWICE_MS, [(watch.see(MIXED_STRATEGIES), text)])
        yield from lasting.told(f"members run different strategies: {text}")


def _subscriptions(watch: Watch, views: Views) -> Iterator[FindingAtRound]:
    subscribed = views.facts.subscriptions
    if len(subscribed) < 2:
        return
    texts: list[str] = []
    topics_of = {client: frozenset(topics) for client, topics in sorted(subscribed.items())}
    for topic, count in sorted(Counter(chain.from_iterable(topics_of.values())).items()):
        if count < len(subscribed):
            is_told = len(texts) < _MOST_TOLD
            lacking = [client for client, topics in topics_of.items() if topic not in topics] if is_told else ()
            texts.append(f"{topic[:200]} ({count} of {len(subscribed)}, not {some(lacking)})")
            continue
        filters = {views.facts.expressions.get(client, {}).get(topic, "*") for client in subscribed}
        if len(filters) > 1:
            texts.append(f"{topic[:200]} by different filters ({some([text[:80] for text in sorted(filters)])})")
    models = {member.message_model for member in views.told.values()} - {None}
    if len(models) > 1:
        texts.append("CLUSTERING and BROADCASTING")
    if texts:
        lasting = watch.follow(SUBSCRIPTIONS_DIFFER, SEEN_TWICE_MS, [(watch.see(SUBSCRIPTIONS_DIFFER), "")])
        yield from lasting.told(f"members of one group must subscribe alike: {some(texts)}")


def _silent(watch: Watch, views: Views) -> Iterator[FindingAtRound]:
    if any(broker.consume_type == POP for broker in views.masters.values() if broker.clients):
        return  # a proxy does not pass the question on to its clients
    # One that is not asked has not answered for a while.
    silent = [
        member.client_id
        for member in views.observation.members
        if member.client_id in views.held
        and (member.answer == TIMEOUT or (member.answer == NOT_ASKED and watch.is_known(f"{SILENT}{member.client_id}")))
    ]
    held = {client: sum(map(len, (views.held[client] or {}).values())) for client in silent}
    lasting = watch.follow(
        NOT_ANSWERING,
        SILENT_MS,
        ((watch.see(f"{SILENT}{client}"), f"{client[:200]} ({counted(held[client], 'queue')})") for client in silent),
    )
    yield from lasting.told(f"members that brokers list do not answer; nobody else takes their queues: {lasting.text}")


def _silent_brokers(watch: Watch, views: Views) -> Iterator[FindingAtRound]:
    lasting = watch.follow(
        BROKER_NOT_ANSWERING,
        SILENT_MS,
        (
            (watch.see(f"{BROKER_NOT_ANSWERING} {broker}"), f"{broker[:200]} ({answer})")
            for broker, answer in views.not_answering.items()
        ),
    )
    unseen = f", nor whether {some(views.unseen)} are still there" if views.unseen else ""
    return lasting.told(
        f"brokers do not report the group's members: {lasting.text}. The lag of their queues is not known{unseen}"
    )


def _unlocked(watch: Watch, views: Views) -> Iterator[FindingAtRound]:
    lasting = watch.follow(
        ORDERLY_NOT_LOCKED,
        OWNERS_MS,
        (
            (
                watch.see(f"{ORDERLY_NOT_LOCKED} {client} {queue.topic}@{queue.broker} {queue.queue}"),
                f"{queue.topic[:200]}@{queue.broker[:100]} {queue.queue} ({client[:200]})",
            )
            for client, member in sorted(views.told.items())
            if member.orderly
            for queue in member.queues or ()
            if not (queue.locked or queue.dropped or is_retry(queue.topic))
        ),
    )
    return lasting.told(
        f"orderly members hold queues without the broker's lock, so they consume nothing: {lasting.text}"
    )


def _idle(watch: Watch, views: Views) -> Iterator[FindingAtRound]:
    topics = frozenset(views.judged_topics)
    idle = sorted(
        client
        for client in views.told
        if views.held[client] == {} and not topics.isdisjoint(views.subscribed_by(client) or ())
    )
    lasting = watch.follow(
        IDLE_MEMBERS, OWNERS_MS, ((watch.see(f"{IDLE_MEMBERS} {client}"), client) for client in idle)
    )
    queues = {topic: sum(views.routes[topic].values()) for topic in sorted(topics) if not is_retry(topic)}
    most = max(queues, key=lambda topic: queues[topic], default=None)
    why = "" if most is None else f", its largest topic has {queues[most]} queues for {len(views.clients)} members"
    return lasting.told(f"{len(idle)} of {len(views.clients)} members hold no queue{why}: {some(idle)}")
