"""Rows of `members` for modern groups, which wait for a round to name the topics.

The log has topic ids; names come with rounds. So a decision's rows are written at the next round, or at the group's end
if that comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from streaming.groups.context import Context
from streaming.groups.modern.group import ModernDecision
from streaming.groups.modern.rules import Names, names_at, topic_names
from streaming.groups.modern.types import TYPES
from streaming.groups.rows import MemberRow, MemberTasks, TopicAssignment, known
from streaming.groups.state import GroupState
from streaming.groups.verdicts import WAITING_MAX
from streaming.records import ModernMember, count_of


def columns_of(decision: ModernDecision, incarnation: int, context: Context) -> dict[str, Any]:
    """The columns that every row about a decision has."""
    return context.of_a_decision(
        decision.record, decision.log_partition, decision.record_time, incarnation, decision.epoch
    )


def write_modern_members(state: GroupState, context: Context, most: int = WAITING_MAX) -> None:
    """Write the member rows of the oldest decisions that have none, with the topic names that rounds have shown.

    Also writes rows for static members that have come back under another id: if the subscription is the same, the
    coordinator makes no decision then (`GroupMetadataManager.replaceMember`).
    """
    modern = state.modern
    unnamed = modern.waiting[len(modern.waiting) - modern.unnamed :][:most]
    modern.unnamed -= len(unnamed)
    for told in unnamed:
        decision: ModernDecision | None = told
        if not told.exact:
            # Where compaction left only a part of a decision, the next one shows its members.
            decision = as_it_is(state, told) if told is modern.waiting[-1] and state.members_known else None
        if decision is None:
            continue
        known = names_at(state, decision)
        rows = [_open_row(state, member, decision, known, context) for member in decision.members]
        context.rows.change_members(_last_rows(state, context), rows, decision.record, decision.record_time)
        # Only what closing rows need.
        modern.shown = msgspec.structs.replace(decision, targets={}, before=None, topics=None, tasks=None)
    _write_returned(state, context)


def _write_returned(state: GroupState, context: Context) -> None:
    last, modern = state.modern.shown, state.modern.group
    if last is None or modern is None or modern.epoch != last.epoch or not state.members_known:
        return  # the new epoch's decision will show the members
    now, of_type = modern.members, TYPES[modern.group_type]
    come = {member.instance_id: member for member in now.values() if member.instance_id is not None}
    members = list(last.members)
    for at, member in enumerate(last.members):
        new = come.get(member.instance_id or "") if member.member_id not in now else None
        if new is None:
            continue
        target = modern.targets.get(new.member_id)
        told = msgspec.structs.replace(
            of_type.subscribing(last, modern),
            record=new.record,
            record_time=new.record_time,
            targets={new.member_id: target.partitions} if target is not None else {},
        )
        row = _open_row(state, new, told, topic_names(state), context)
        context.rows.change_members([_member_row(state, member, last, context)], [row], new.record, new.record_time)
        members[at] = new
    if members != list(last.members):
        shown = of_type.subscribing(last, modern)
        state.modern.shown = msgspec.structs.replace(shown, members=tuple(members), tasks=None)


def as_it_is(state: GroupState, decision: ModernDecision) -> ModernDecision | None:
    """The decision with the current members and targets, for one whose records are not all there any more.

    None if the group has ended since, or has no members left.
    """
    group = state.modern.group
    if group is None or decision.became_empty or not group.members:
        return None
    return msgspec.structs.replace(
        TYPES[group.group_type].subscribing(decision, group),
        group_epoch=group.epoch,
        members=tuple(group.members.values()),
        undescribed=tuple(sorted(group.members.keys() ^ group.targets.keys())),
        targets={name: target.partitions for name, target in group.targets.items() if name in group.members},
    )


def standing_modern_members(state: GroupState, context: Context) -> list[MemberRow]:
    """The rows of those who are members, with their targets and the topic names as they are known now."""
    last, group = state.modern.shown, state.modern.group
    if last is None or group is None:
        return []
    told = msgspec.structs.replace(
        TYPES[group.group_type].subscribing(last, group),
        targets={name: target.partitions for name, target in group.targets.items()},
        topics=group.topics,
    )
    return [
        _open_row(state, member, told, names_at(state, told), context)
        for member in last.members
        if member.member_id in group.members
    ]


def close_modern_members(state: GroupState, offset: int, time: int, context: Context) -> None:
    """Write closing rows for the members of a modern group that has ended."""
    context.rows.change_members(_last_rows(state, context), (), offset, time)
    state.modern.shown = None


def _last_rows(state: GroupState, context: Context) -> list[MemberRow]:
    """Rows of the members that were last shown, without what they had."""
    last = state.modern.shown
    if last is None:
        return []
    return [_member_row(state, member, last, context) for member in last.members]


def _open_row(
    state: GroupState,
    member: ModernMember,
    decision: ModernDecision,
    names: Names,
    context: Context,
) -> MemberRow:
    target = decision.targets.get(member.member_id)
    shown: Sequence[TopicAssignment] | str = "no record of its target assignment has been read"
    if target is not None:
        shown = TYPES[decision.group_type].named_target(state, decision, target, names)
    count = None if target is None else count_of(target)
    if isinstance(shown, str):
        row = _member_row(state, member, decision, context, None, count, shown)
    else:
        row = _member_row(state, member, decision, context, tuple(shown), count)
    return msgspec.structs.replace(row, tasks=_tasks_of(decision, member.member_id))


def _tasks_of(decision: ModernDecision, member_id: str) -> tuple[MemberTasks, ...] | None:
    """The tasks of a member's target by kind and subtopology, in record order; None if its group has none."""
    if decision.tasks is None or member_id not in decision.targets:
        return None
    of_kinds = (
        ("active", decision.targets),
        ("standby", decision.tasks.standby),
        ("warmup", decision.tasks.warmup),
    )
    return tuple(
        [
            MemberTasks(kind, subtopology, numbers)
            for kind, targets in of_kinds
            for subtopology, numbers in targets.get(member_id, ())
        ]
    )


def _member_row(
    state: GroupState,
    member: ModernMember,
    decision: ModernDecision,
    context: Context,
    partitions: tuple[TopicAssignment, ...] | None = None,
    count: int | None = None,
    reason: str | None = None,
) -> MemberRow:
    incarnation = state.modern.incarnation if state.modern.incarnation is not None else decision.record
    return MemberRow(
        **columns_of(decision, incarnation, context),
        member_id=member.member_id,
        ended=False,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rack=member.rack,
        leader=False,
        subscription=decision.topics_of(member.member_id),
        partition_count=count,
        partitions=partitions,
        undecodable=reason,
        session_timeout_ms=None,
        rebalance_timeout_ms=known(member.rebalance_timeout),
    )
