"""Decisions of a RocketMQ group: when what its members hold has changed, and what the change did.

There is no record that says who owns what. A decision is the observation that first showed what members hold now. At
every change some clients have rebalanced and others not yet, for a second or for as long as their views are old, so a
change counts once two rounds in a row have shown the same. Where it never comes to rest it counts after three cycles of
20 s, as it is then. A change that goes back before that was none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from assignors import Assignment, AssignorError, moves, optimal_moves
from streaming.groups.classic.membership import write_members
from streaming.groups.classic.state import ClassicDecision, Owned
from streaming.groups.context import Context, of_record
from streaming.groups.health.activity import count_rebalance
from streaming.groups.rocketmq.causes import brokers_of, changed, rocketmq_causes
from streaming.groups.rocketmq.round import (
    RocketMQRound,
    balance_of,
    group_of,
    held_queues,
    members_of,
    record_of,
    topics_of,
)
from streaming.groups.rocketmq.state import DecisionInputs, RocketMQState, Settling
from streaming.groups.rocketmq.verdicts import give_up
from streaming.groups.rocketmq.views import Views
from streaming.groups.rows import ROCKETMQ, ChurnRow
from streaming.groups.state import GroupState
from streaming.records import Member, MembershipRecord
from streaming.times import day_of

CYCLE_MS: Final = 20_000
"""`rocketmq.client.rebalance.waitInterval`: each client rebalances at least this often (4.0 to 5.5)."""

LONGEST_CHANGE_MS: Final = 3 * CYCLE_MS
"""A change that has not come to rest by now counts as it is: each client has rebalanced twice since it began."""

_MOST_BROKERS: Final = 500
"""Broker names that are remembered: those of pods may be new with every deployment. With fewer, a broker of a large
cluster that comes back would be called new."""

PROTOCOL_TYPE: Final = "rocketmq"


_Told = TypeVar("_Told")


def follow(state: GroupState, mine: RocketMQState, seen: RocketMQRound, context: Context) -> None:
    """Take in a round's members and owners, and write a decision's rows once they have come to rest.

    Args:
        state: The group's state; its clock has the round's time.
        mine: The part of it that is RocketMQ's.
        seen: The round.
        context: Rows are written here.
    """
    views, settling, current = seen.views, mine.settling, state.classic.current
    members = members_of(views)
    is_new = bool(members) if current is None else _differs(current.record.members, members, mine, views)
    if not is_new:
        mine.settling = None
        return
    is_settled = settling is not None and _key(settling.members) == _key(members)
    if settling is None or not is_settled:
        now = seen.elapsed_time
        settling = mine.settling = Settling(
            members=members,
            round=seen.round,
            time=state.clock.now,
            began=now if settling is None else settling.began,
            silent=_silent(mine) if settling is None else settling.silent,
            after=mine.seen_at,
            until=max(seen.closed, state.clock.now),
        )
        is_settled = now - settling.began >= LONGEST_CHANGE_MS
    if is_settled:
        mine.settling = None
        give_up(state, mine, seen, context)
        _decide(state, mine, settling, views, context)


def _key(members: Sequence[Member]) -> tuple[object, ...]:
    """What makes a decision another one: who is there, what each holds, what each subscribes to."""
    return tuple((member.member_id, member.assigned, topics_of(member)) for member in members)


def _differs(before: Sequence[Member], after: Sequence[Member], mine: RocketMQState, views: Views) -> bool:
    known = mine.facts or DecisionInputs()
    # A client id that two processes use tells of one or the other, whichever is asked.
    started_again = changed(known.started, views.facts.started) - views.duplicates.keys()
    return _key(before) != _key(after) or bool(started_again or changed(known.strategies, views.strategies))


def _decide(state: GroupState, mine: RocketMQState, settled: Settling, views: Views, context: Context) -> None:
    members, current = settled.members, state.classic.current
    record = record_of(members, settled.round, settled.time, views.strategy)
    facts, have, had, was = _facts(mine, settled, views), held_queues(members), None, None
    if current is None:
        kind, incarnation = "created", context.config.incarnations.of(context.group, record.record)
    else:
        kind, incarnation = "rebalance" if members else "became_empty", current.incarnation
        was = current.record
        had = held_queues(was.members)
        count_rebalance(state, record.record_time)
    row = _churn_row(record, was, kind, incarnation, have, context)
    moved, least = _moves(had, have, members, facts)
    context.rows.rebalance_churn.append(
        msgspec.structs.replace(
            row,
            partitions_moved=moved,
            partitions_moved_optimal=least,
            causes=() if was is None else rocketmq_causes(mine.facts or facts, facts, was, record, mine.brokers),
            # Where the clock was ahead at the look before, nobody knows when that was by the present clock.
            decided_time_min=settled.after if 0 <= settled.after <= settled.until else None,
            decided_time_max=settled.until,
        )
    )
    write_members(state, record, incarnation, context)
    classic = state.classic
    classic.current, classic.verdict = ClassicDecision(record, kind, incarnation), None
    classic.waiting = [msgspec.structs.replace(classic.current, before=had)]
    classic.balance = balance_of(members, facts.routes)
    if not members:
        state.uncommitted = None
    mine.facts = facts
    routed = brokers_of(facts.routes)
    earlier = [broker for broker in mine.brokers if broker not in routed]
    mine.brokers = (*earlier, *sorted(routed))[-_MOST_BROKERS:]


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
    names = [name for name, watched in mine.watched.items() if watched.rounds > 1]
    return tuple(sorted(name.removeprefix(SILENT) for name in names if name.startswith(SILENT)))


def _moves(
    had: Owned | None, have: Owned | None, members: Sequence[Member], facts: DecisionInputs
) -> tuple[int | None, int | None]:
    """Queues that changed hands, and the fewest moves that could have balanced the group; None where unknown."""
    if had is None:
        return None, None
    before: Assignment = {member: dict(units) for member, units in had.items()}
    after: Assignment = {member: dict(units) for member, units in (have or {}).items()}
    try:
        with of_record(0):
            least = optimal_moves(before, group_of(members, facts.routes)) if members else None
        return (None if have is None else moves(before, after)), least
    except AssignorError:
        return None, None


def _churn_row(
    record: MembershipRecord,
    before: MembershipRecord | None,
    kind: str,
    incarnation: int,
    owned: Owned | None,
    context: Context,
) -> ChurnRow:
    had = {member.member_id for member in before.members} if before is not None else set()
    have = {member.member_id for member in record.members}
    queues = {(unit, n) for units in (owned or {}).values() for unit, numbers in units.items() for n in numbers}
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
