"""Why a RocketMQ group decided again: what its clients decide by now and did not at the decision before.

Each cause is a difference between two `DecisionInputs`. Nobody says which of several changes moved a queue, so all of
them are listed, with what shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from streaming.groups import causes
from streaming.groups.causes import TopicChange, cause, of_members, of_topics
from streaming.groups.rocketmq.state import DecisionInputs, Routes
from streaming.groups.rows import Cause
from streaming.records import MembershipRecord


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
    staying = sorted(had & have)
    found = [
        *_of_members(before, after, had, have),
        *_of_brokers(before.routes, after.routes, frozenset(known)),
        *_of_queues(before.routes, after.routes),
        *_of_subscriptions(before, after, staying),
        *_of_strategies(before, after, staying),
        *_of_views(before, after, staying),
    ]
    return causes.causes_in_order(found or [_unseen(was, now)])


def _of_members(before: DecisionInputs, after: DecisionInputs, had: set[str], have: set[str]) -> Iterable[Cause]:
    joined, gone = sorted(have - had), sorted(had - have)
    frozen = [client for client in gone if client in before.silent or client in after.silent]
    left = [client for client in gone if client not in frozen]
    yield from of_members(causes.MEMBER_JOINED, joined, "on a broker's list of clients now")
    yield from of_members(causes.MEMBER_GONE, left, "on no broker's list any more: it left, or its connection ended")
    yield from of_members(
        causes.MEMBER_FROZEN,
        frozen,
        "had not answered before brokers took it off their lists (120 s after its last heartbeat)",
    )
    # (One that had not told its start time need not have started again.)
    told = had & have & before.started.keys() & after.started.keys()
    again = [client for client in sorted(told) if before.started[client] != after.started[client]]
    yield from of_members(causes.REJOINED, again, "has another start time under the same client id")


def _of_brokers(before: Routes, after: Routes, known: frozenset[str]) -> Iterable[Cause]:
    was, now = _brokers(before), _brokers(after)
    for broker in sorted(was - now):
        yield cause(causes.BROKER_DOWN, "in no route of the group's topics any more", before=broker)
    for broker in sorted(now - was):
        if broker in known:
            yield cause(causes.BROKER_UP, "in the routes of the group's topics again", after=broker)
        else:
            yield cause(causes.BROKER_ADDED, "in a route of the group's topics for the first time", after=broker)


def _of_queues(before: Routes, after: Routes) -> Iterable[Cause]:
    """Topics that have other queues on brokers that were there before and are there now."""
    both = _brokers(before) & _brokers(after)
    changes = []
    for topic in sorted(before.keys() | after.keys()):
        old = {broker: count for broker, count in before.get(topic, {}).items() if broker in both}
        new = {broker: count for broker, count in after.get(topic, {}).items() if broker in both}
        if old != new and topic in before and topic in after:
            changes.append(TopicChange(topic, _counts(old), _counts(new)))
    return of_topics(causes.PARTITIONS_CHANGED, changes, "name servers tell other readable queues of it")


def _brokers(routes: Routes) -> set[str]:
    return {broker for brokers in routes.values() for broker in brokers}


def _counts(brokers: Mapping[str, int]) -> str:
    return ", ".join(f"{broker} {count}" for broker, count in sorted(brokers.items())) or "0"


def _of_subscriptions(before: DecisionInputs, after: DecisionInputs, staying: list[str]) -> Iterable[Cause]:
    told = [client for client in staying if client in before.subscriptions and client in after.subscriptions]
    changes = causes.subscription_changes(
        {client: frozenset(before.subscriptions[client]) for client in told},
        {client: frozenset(after.subscriptions[client]) for client in told},
    )
    return of_topics(causes.SUBSCRIPTION_CHANGED, changes, "members that stayed subscribe to it now, or no longer")


def _of_strategies(before: DecisionInputs, after: DecisionInputs, staying: list[str]) -> Iterable[Cause]:
    changed: dict[tuple[str, str], list[str]] = {}
    for client in staying:
        old, new = before.strategies.get(client), after.strategies.get(client)
        if old is not None and new is not None and old != new:
            changed.setdefault((old, new), []).append(client)
    for (old, new), members in sorted(changed.items()):
        [found] = of_members(causes.STRATEGY_CHANGED, members, "runs another strategy than before")
        yield Cause(found.cause, found.evidence, found.count, found.members, None, old, new)


def _of_views(before: DecisionInputs, after: DecisionInputs, staying: list[str]) -> Iterable[Cause]:
    if before.poorer != after.poorer:
        evidence = (
            "name servers report different queues" if after.poorer else "name servers report the same queues again"
        )
        yield cause(
            causes.NAME_SERVER_DIFFERS, evidence, before=", ".join(before.poorer), after=", ".join(after.poorer)
        )
    # (Members tell the brokers of their topics that they are there: one that gets a topic, or loses it, has another
    # list for that reason.)
    routed = _brokers(before.routes) & _brokers(after.routes)
    both = before.lists.keys() & after.lists.keys() & routed
    entries = [(Counter(before.lists[broker]), Counter(after.lists[broker])) for broker in both]
    moved = [client for client in staying if any(old[client] != new[client] for old, new in entries)]
    yield from of_members(
        causes.MEMBER_LISTS_CHANGED, moved, "on other brokers' lists than before, so that clients see other groups"
    )


def _unseen(was: MembershipRecord, now: MembershipRecord) -> Cause:
    """No round has shown a change: clients that decided later than the others, or a change that came and went."""
    if {member.member_id for member in was.members} == {member.member_id for member in now.members}:
        evidence = "no view differs from the decision before: clients rebalance by themselves, every 20 s"
        return cause(causes.SETTLED, evidence)
    return cause(causes.UNKNOWN, "nothing that rounds have shown")
