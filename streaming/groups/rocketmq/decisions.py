"""Decisions of a RocketMQ group: when what its members hold has changed, and what the change did.

There is no record that says who owns what. A decision is the observation that first showed what members hold now. At
every change some clients have rebalanced and others not yet, for a second or for as long as their views are old, so a
change counts once two rounds in a row have shown the same. Where it never comes to rest it counts after three cycles of
20 s, as it is then. A change that goes back before that was none.

A cause is a difference between two `DecisionInputs`. Nobody says which of several changes moved a queue, so all of
them are listed, with what shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from assignors import Assignment, AssignorError, moves, optimal_moves
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
from streaming.groups.classic.membership import write_members
from streaming.groups.classic.state import ClassicDecision, Owned
from streaming.groups.context import Context, of_record
from streaming.groups.health.activity import count_rebalance
from streaming.groups.rocketmq.membership import (
    balance_of,
    group_of,
    held_queues,
    members_of,
    record_of,
    topics_of,
)
from streaming.groups.rocketmq.state import DecisionInputs, RocketMQState, Routes, Settling, Unjudged
from streaming.groups.rocketmq.verdicts import give_up
from streaming.groups.rocketmq.views import Views
from streaming.groups.rows import ROCKETMQ, Cause, ChurnRow
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, Member, MembershipRecord
from streaming.times import day_of


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
    return causes_in_order(found or [_unseen(was, now)])


def _of_members(before: DecisionInputs, after: DecisionInputs, had: set[str], have: set[str]) -> Iterable[Cause]:
    joined, gone = sorted(have - had), sorted(had - have)
    frozen = [client for client in gone if client in before.silent or client in after.silent]
    left = [client for client in gone if client not in frozen]
    yield from of_members(MEMBER_JOINED, joined, "on a broker's list of clients now")
    yield from of_members(MEMBER_GONE, left, "on no broker's list any more: it left, or its connection ended")
    yield from of_members(
        MEMBER_FROZEN,
        frozen,
        "had not answered before brokers took it off their lists (120 s after its last heartbeat)",
    )
    # One that had not told its start time need not have started again.
    told = had & have & before.started.keys() & after.started.keys()
    again = [client for client in sorted(told) if before.started[client] != after.started[client]]
    yield from of_members(REJOINED, again, "has another start time under the same client id")


def _of_brokers(before: Routes, after: Routes, known: frozenset[str]) -> Iterable[Cause]:
    was, now = _brokers(before), _brokers(after)
    for broker in sorted(was - now):
        yield cause(BROKER_DOWN, "in no route of the group's topics any more", before=broker)
    for broker in sorted(now - was):
        if broker in known:
            yield cause(BROKER_UP, "in the routes of the group's topics again", after=broker)
        else:
            yield cause(BROKER_ADDED, "in a route of the group's topics for the first time", after=broker)


def _of_queues(before: Routes, after: Routes) -> Iterable[Cause]:
    """Topics that have other queues on brokers that were there before and are there now."""
    both = _brokers(before) & _brokers(after)
    changes = []
    for topic in sorted(before.keys() | after.keys()):
        old = {broker: count for broker, count in before.get(topic, {}).items() if broker in both}
        new = {broker: count for broker, count in after.get(topic, {}).items() if broker in both}
        if old != new and topic in before and topic in after:
            changes.append(TopicChange(topic, _counts(old), _counts(new)))
    return of_topics(PARTITIONS_CHANGED, changes, "name servers tell other readable queues of it")


def _brokers(routes: Routes) -> set[str]:
    return {broker for brokers in routes.values() for broker in brokers}


def _counts(brokers: Mapping[str, int]) -> str:
    return ", ".join(f"{broker} {count}" for broker, count in sorted(brokers.items())) or "0"


def _of_subscriptions(before: DecisionInputs, after: DecisionInputs, staying: list[str]) -> Iterable[Cause]:
    told = [client for client in staying if client in before.subscriptions and client in after.subscriptions]
    changes = subscription_changes(
        {client: frozenset(before.subscriptions[client]) for client in told},
        {client: frozenset(after.subscriptions[client]) for client in told},
    )
    return of_topics(SUBSCRIPTION_CHANGED, changes, "members that stayed subscribe to it now, or no longer")


def _of_strategies(before: DecisionInputs, after: DecisionInputs, staying: list[str]) -> Iterable[Cause]:
    changed: dict[tuple[str, str], list[str]] = {}
    for client in staying:
        old, new = before.strategies.get(client), after.strategies.get(client)
        if old is not None and new is not None and old != new:
            changed.setdefault((old, new), []).append(client)
    for (old, new), members in sorted(changed.items()):
        [found] = of_members(STRATEGY_CHANGED, members, "runs another strategy than before")
        yield Cause(found.cause, found.evidence, found.count, found.members, None, old, new)


def _of_views(before: DecisionInputs, after: DecisionInputs, staying: list[str]) -> Iterable[Cause]:
    if before.poorer != after.poorer:
        evidence = (
            "name servers report different queues" if after.poorer else "name servers report the same queues again"
        )
        yield cause(NAME_SERVER_DIFFERS, evidence, before=", ".join(before.poorer), after=", ".join(after.poorer))
    # Members tell the brokers of their topics that they are there: one that gets a topic, or loses it, has another
    # list for that reason.
    routed = _brokers(before.routes) & _brokers(after.routes)
    both = before.lists.keys() & after.lists.keys() & routed
    entries = [(Counter(before.lists[broker]), Counter(after.lists[broker])) for broker in both]
    moved = [client for client in staying if any(old[client] != new[client] for old, new in entries)]
    yield from of_members(
        MEMBER_LISTS_CHANGED, moved, "on other brokers' lists than before, so that clients see other groups"
    )


def _unseen(was: MembershipRecord, now: MembershipRecord) -> Cause:
    """No round has shown a change: clients that decided later than the others, or a change that came and went."""
    if {member.member_id for member in was.members} == {member.member_id for member in now.members}:
        evidence = "no view differs from the decision before: clients rebalance by themselves, every 20 s"
        return cause(SETTLED, evidence)
    return cause(UNKNOWN, "nothing that rounds have shown")


CYCLE_MS: Final = 20_000
"""`rocketmq.client.rebalance.waitInterval`: each client rebalances at least this often (4.0 to 5.5)."""

LONGEST_CHANGE_MS: Final = 3 * CYCLE_MS
"""A change that has not come to rest by now counts as it is: each client has rebalanced twice since it began."""

_MOST_BROKERS: Final = 500
"""Broker names that are remembered: those of pods may be new with every deployment. With fewer, a broker of a large
cluster that comes back would be called new."""

PROTOCOL_TYPE: Final = "rocketmq"


_Told = TypeVar("_Told")


def follow(
    state: GroupState, mine: RocketMQState, views: Views, observation: GroupObservation, context: Context
) -> None:
    """Take in a round's members and owners, and write a decision's rows once they have come to rest.

    Args:
        state: The group's state; its clock has the round's time.
        mine: The part of it that is RocketMQ's.
        views: The round.
        observation: The round as any group's.
        context: Rows are written here.
    """
    members, now = members_of(views), observation.elapsed_time
    current = state.classic.current
    if current is not None and mine.facts is not None and not _differs(current.record.members, members, mine, views):
        mine.settling = None
        return
    if current is None and not members:
        mine.settling = None
        return
    settling = mine.settling
    began = now if settling is None else settling.began
    silent = _silent(mine) if settling is None else settling.silent
    if settling is None or _key(settling.members) != _key(members):
        settling = mine.settling = Settling(
            members=members,
            round=observation.round,
            time=state.clock.now,
            began=began,
            silent=silent,
            after=mine.seen_at,
            until=max(observation.closed, state.clock.now),
        )
        is_settled = now - began >= LONGEST_CHANGE_MS
    else:
        is_settled = True
    if is_settled:
        mine.settling = None
        give_up(state, mine, observation, context)
        _decide(state, mine, settling, views, context)


def _key(members: Sequence[Member]) -> tuple[object, ...]:
    """What makes a decision another one: who is there, what each holds, what each subscribes to."""
    return tuple((member.member_id, member.assigned, topics_of(member)) for member in members)


def _differs(before: Sequence[Member], after: Sequence[Member], mine: RocketMQState, views: Views) -> bool:
    if _key(before) != _key(after):
        return True
    facts = mine.facts or DecisionInputs()
    if any(
        views.runs[client].name != facts.strategies.get(client, views.runs[client].name)
        for client, member in views.told.items()
        if member.strategy is not None
    ):
        return True
    # A client id that two processes use tells of one or the other, whichever is asked.
    return any(
        started != facts.started.get(client, started)
        for client, started in views.facts.started.items()
        if client not in views.duplicates
    )


def _decide(state: GroupState, mine: RocketMQState, settled: Settling, views: Views, context: Context) -> None:
    members = settled.members
    current = state.classic.current
    before = current.record if current is not None else None
    record = record_of(members, settled.round, settled.time, views.strategy)
    first = before is None
    if mine.incarnation < 0:
        mine.incarnation = context.config.incarnations.of(context.group, record.record)
    kind = "created" if first else "became_empty" if not members else "rebalance"
    facts = _facts(mine, settled, views)
    was = held_queues(before.members) if before is not None else None
    after = held_queues(members)
    moved, least = _moves(was, after, members, facts)
    causes = (
        () if mine.facts is None or before is None else rocketmq_causes(mine.facts, facts, before, record, mine.brokers)
    )
    row = _churn_row(record, before, kind, mine.incarnation, after, context)
    context.rows.rebalance_churn.append(
        msgspec.structs.replace(
            row,
            partitions_moved=moved,
            partitions_moved_optimal=least,
            causes=causes,
            # Where the clock was ahead at the look before, nobody knows when that was by the present clock.
            decided_time_min=settled.after if 0 <= settled.after <= settled.until else None,
            decided_time_max=settled.until,
        )
    )
    write_members(state, record, mine.incarnation, context)
    state.classic.current = ClassicDecision(record, kind, mine.incarnation)
    state.classic.balance = balance_of(members, facts.routes)
    if not members:
        state.uncommitted = None
    if not first:
        count_rebalance(state, record.record_time)
    mine.facts = facts
    routed = {broker for of in facts.routes.values() for broker in of}
    earlier = [broker for broker in mine.brokers if broker not in routed]
    mine.brokers = (*earlier, *sorted(routed))[-_MOST_BROKERS:]
    mine.unjudged = Unjudged(was, least, kind)


def _facts(mine: RocketMQState, settled: Settling, views: Views) -> DecisionInputs:
    """The facts at a decision; of members that do not answer, those at the decision before."""
    now, before = views.facts, mine.facts or DecisionInputs()
    untold = [client for client in views.clients if client not in views.told]

    def kept(new: Mapping[str, _Told], old: Mapping[str, _Told]) -> dict[str, _Told]:
        return {client: old[client] for client in untold if client in old} | dict(new)

    last = {
        name: clients
        for name, clients in before.lists.items()
        if name not in now.lists and not frozenset(views.unseen).isdisjoint(clients)
    }
    return msgspec.structs.replace(
        now,
        lists=dict(sorted({**last, **now.lists}.items())),
        strategies=kept(now.strategies, before.strategies),
        subscriptions=kept(now.subscriptions, before.subscriptions),
        expressions=kept(now.expressions, before.expressions),
        started=kept(now.started, before.started),
        silent=tuple(sorted({*settled.silent, *_silent(mine)})),
    )


SILENT: Final = "not_answering "
"""Prefix of the names under which `watched` keeps since when a client does not answer."""


def _silent(mine: RocketMQState) -> tuple[str, ...]:
    # One that has just ended is on lists for a moment, too.
    return tuple(
        sorted(
            name.removeprefix(SILENT)
            for name, watched in mine.watched.items()
            if name.startswith(SILENT) and watched.rounds > 1
        )
    )


def _moves(
    was: Owned | None, after: Owned | None, members: Sequence[Member], facts: DecisionInputs
) -> tuple[int | None, int | None]:
    """Queues that changed hands, and the fewest moves that could have balanced the group; None where unknown."""
    if was is None:
        return None, None
    try:
        had: Assignment = {member: dict(units) for member, units in was.items()}
        have: Assignment = {member: dict(units) for member, units in (after or {}).items()}
        with of_record(0):
            least = optimal_moves(had, group_of(members, facts.routes)) if members else None
        return (None if after is None else moves(had, have)), least
    except AssignorError:
        return None, None


def _churn_row(
    record: MembershipRecord,
    before: MembershipRecord | None,
    kind: str,
    incarnation: int,
    after: Owned | None,
    context: Context,
) -> ChurnRow:
    had = {member.member_id for member in before.members} if before is not None else set()
    have = {member.member_id for member in record.members}
    queues = {(unit, n) for units in (after or {}).values() for unit, numbers in units.items() for n in numbers}
    return ChurnRow(
        cluster=context.config.cluster,
        group_id=context.group,
        decision=record.record,
        source=ROCKETMQ,
        log_partition=None,
        record_time=record.record_time,
        event_date=day_of(record.record_time),
        revision=1,
        kind=kind,
        incarnation=incarnation,
        generation=None,
        previous_generation=None,
        generations_skipped=None,
        follows=None,
        protocol_type=PROTOCOL_TYPE,
        strategy=record.protocol,
        leader=None,
        members=len(record.members),
        partitions=len(queues),
        joined=None if before is None else tuple(sorted(have - had)),
        left=tuple(sorted(had - have)),
        replaced=(),
        partitions_moved=None,
        partitions_moved_optimal=None,
        partitions_pending_handover=0,
        join_completed_time=None,
        unassigned_partition_seconds_min=None,
        unassigned_partition_seconds_max=None,
    )
