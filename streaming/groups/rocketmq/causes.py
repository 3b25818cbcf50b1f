"""Causes of a decision: what differs between two `DecisionInputs`.

Nobody says which of several changes moved a queue, so all of them are listed, with what shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from streaming.groups.causes import (
    BROKER_ADDED,
    BROKER_DOWN,
    BROKER_UP,
    MEMBER_FROZEN,
    MEMBER_GONE,
    MEMBER_JOINED,
    MEMBER_LISTS_CHANGED,
    NAME_SERVER_DIFFERS,
    PARTITIONS_CHANGED,
    REJOINED,
    SETTLED,
    STRATEGY_CHANGED,
    SUBSCRIPTION_CHANGED,
    UNKNOWN,
    TopicChange,
    cause,
    causes_in_order,
    of_members,
    of_topics,
    subscription_changes,
)
from streaming.groups.rocketmq.state import DecisionInputs, Routes
from streaming.groups.rocketmq.views import grouped
from streaming.groups.rows import Cause
from streaming.records import MembershipRecord

_Value = TypeVar("_Value")


def rocketmq_causes(
    before: DecisionInputs, after: DecisionInputs, was: MembershipRecord, now: MembershipRecord, known: Iterable[str]
) -> tuple[Cause, ...]:
    """The causes of a decision.

    Args:
        before: What clients decided by at the decision before.
        after: The same at this one.
        was: The decision before.
        now: This one.
        known: Brokers that routes of the group have had at any time.
    """
    had = {member.member_id for member in was.members}
    have = {member.member_id for member in now.members}
    found = [
        *_of_members(before, after, had, have),
        *_of_brokers(before.routes, after.routes, frozenset(known)),
        *_of_queues(before.routes, after.routes),
        *_of_those_who_stay(before, after, sorted(had & have)),
    ]
    if before.poorer != after.poorer:
        evidence = (
            "name servers report different queues" if after.poorer else "name servers report the same queues again"
        )
        found.append(
            cause(NAME_SERVER_DIFFERS, evidence, before=", ".join(before.poorer), after=", ".join(after.poorer))
        )
    return causes_in_order(found or [_unseen(had, have)])


def changed(before: Mapping[str, _Value], after: Mapping[str, _Value]) -> set[str]:
    """Keys that both have, with another value."""
    return {key for key, value in after.items() if before.get(key, value) != value}


def _of_members(before: DecisionInputs, after: DecisionInputs, had: set[str], have: set[str]) -> Iterable[Cause]:
    silent = {*before.silent, *after.silent}
    gone = sorted(had - have)
    yield from of_members(MEMBER_JOINED, sorted(have - had), "on a broker's list of clients now")
    yield from of_members(
        MEMBER_GONE,
        [client for client in gone if client not in silent],
        "on no broker's list any more: it left, or its connection ended",
    )
    yield from of_members(
        MEMBER_FROZEN,
        [client for client in gone if client in silent],
        "had not answered before brokers took it off their lists (120 s after its last heartbeat)",
    )


def _of_brokers(before: Routes, after: Routes, known: frozenset[str]) -> Iterable[Cause]:
    was, now = brokers_of(before), brokers_of(after)
    for broker in sorted(was - now):
        yield cause(BROKER_DOWN, "in no route of the group's topics any more", before=broker)
    for broker in sorted(now - was):
        if broker in known:
            yield cause(BROKER_UP, "in the routes of the group's topics again", after=broker)
        else:
            yield cause(BROKER_ADDED, "in a route of the group's topics for the first time", after=broker)


def _of_queues(before: Routes, after: Routes) -> Iterable[Cause]:
    """Topics that have other queues on brokers that were there before and are there now."""
    both = brokers_of(before) & brokers_of(after)
    changes = []
    for topic in before.keys() & after.keys():
        old, new = (
            ", ".join(f"{broker} {count}" for broker, count in sorted(routes[topic].items()) if broker in both)
            for routes in (before, after)
        )
        if old != new:
            changes.append(TopicChange(topic, old or "0", new or "0"))
    return of_topics(PARTITIONS_CHANGED, changes, "name servers tell other readable queues of it")


def brokers_of(routes: Routes) -> set[str]:
    """Brokers that any of the routes has."""
    return {broker for brokers in routes.values() for broker in brokers}


def _of_those_who_stay(before: DecisionInputs, after: DecisionInputs, staying: list[str]) -> Iterable[Cause]:
    # One that had not told its start time need not have started again.
    started = changed(before.started, after.started)
    again = [client for client in staying if client in started]
    yield from of_members(REJOINED, again, "has another start time under the same client id")
    told = [client for client in staying if client in before.subscriptions and client in after.subscriptions]
    changes = subscription_changes(
        {client: frozenset(before.subscriptions[client]) for client in told},
        {client: frozenset(after.subscriptions[client]) for client in told},
    )
    yield from of_topics(SUBSCRIPTION_CHANGED, changes, "members that stayed subscribe to it now, or no longer")
    others = changed(before.strategies, after.strategies)
    pairs = [(before.strategies[client], after.strategies[client], client) for client in staying if client in others]
    for (old, new), members in sorted(grouped(((old, new), client) for old, new, client in pairs).items()):
        [found] = of_members(STRATEGY_CHANGED, members, "runs another strategy than before")
        yield msgspec.structs.replace(found, before=old, after=new)
    # Members tell the brokers of their topics that they are there: one that gets a topic, or loses it, has another
    # list for that reason.
    routed = brokers_of(before.routes) & brokers_of(after.routes)
    both = before.lists.keys() & after.lists.keys() & routed
    entries = [(Counter(before.lists[broker]), Counter(after.lists[broker])) for broker in both]
    moved = [client for client in staying if any(old[client] != new[client] for old, new in entries)]
    yield from of_members(
        MEMBER_LISTS_CHANGED, moved, "on other brokers' lists than before, so that clients see other groups"
    )


def _unseen(had: set[str], have: set[str]) -> Cause:
    """No round has shown a change: clients that decided later than the others, or a change that came and went."""
    if had == have:
        evidence = "no view differs from the decision before: clients rebalance by themselves, every 20 s"
        return cause(SETTLED, evidence)
    return cause(UNKNOWN, "nothing that rounds have shown")
