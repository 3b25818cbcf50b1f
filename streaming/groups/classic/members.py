"""Rows of `members`: each member of a decision with its partitions, and closing rows for members that left."""

from __future__ import annotations

from streaming.groups.context import Context
from streaming.groups.rows import LOG, MemberRow, TopicAssignment, partition_column
from streaming.groups.state import GroupState
from streaming.records import Member, MembershipRecord
from streaming.times import day_of

__all__ = ["close_members", "write_members"]


def write_members(
    state: GroupState,
    record: MembershipRecord,
    incarnation: int,
    context: Context,
) -> None:
    """Write a row for every member of a decision, and a closing row for each previous member that is gone."""
    last = state.classic.current
    if last is not None and not state.classic.members_ended:
        staying = {m.member_id for m in record.members}
        ended = (record.record, record.record_time)
        context.rows.members.extend(
            _member_row(member, last.record, last.incarnation, context, ended=ended)
            for member in last.record.members
            if member.member_id not in staying
        )
    context.rows.members.extend(_member_row(m, record, incarnation, context, ended=None) for m in record.members)
    state.classic.members_ended = not record.members


def close_members(state: GroupState, offset: int, record_time: int, context: Context) -> None:
    """Write a closing row for every member of a group whose membership has ended."""
    if state.classic.current is not None and not state.classic.members_ended:
        current = state.classic.current
        context.rows.members.extend(
            _member_row(m, current.record, current.incarnation, context, ended=(offset, record_time))
            for m in current.record.members
        )
    state.classic.members_ended = True


def _member_row(
    member: Member,
    record: MembershipRecord,
    incarnation: int,
    context: Context,
    *,
    ended: tuple[int, int] | None,
) -> MemberRow:
    assigned = member.assigned if ended is None else ()
    offset, time = ended if ended is not None else (record.record, record.record_time)
    return MemberRow(
        cluster=context.config.cluster,
        group_id=context.group,
        decision=offset,
        member_id=member.member_id,
        source=LOG,
        log_partition=partition_column(record.log_partition),
        record_time=time,
        event_date=day_of(time),
        ended=ended is not None,
        incarnation=incarnation,
        generation=record.generation,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rack=member.rack or None,
        leader=member.member_id == record.leader,
        subscription=member.topics,
        partition_count=None if assigned is None else sum(len(p) for _, p in assigned),
        partitions=None if assigned is None else tuple(TopicAssignment(t, p) for t, p in assigned),
        undecodable=member.undecodable,
    )
