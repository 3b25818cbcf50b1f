"""Rows of `member_load`: what each member carries, at each window's end; a closing row when it has left."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from streaming.groups.context import Context
from streaming.groups.kind import Kind, OwningMember
from streaming.groups.load.balance import counts_of_held, load_of
from streaming.groups.load.rates import consumed_of, produced_of
from streaming.groups.load.state import LoadState
from streaming.groups.rows import MemberLoadRow
from streaming.groups.state import GroupState
from streaming.records import GroupObservation
from streaming.times import day_of


def write_member_load(
    state: GroupState, load: LoadState, observation: GroupObservation, context: Context, kind: Kind
) -> None:
    """Write the rows of a round that ends a window, and the closing rows of members that have left since the last one.

    Args:
        state: The group's state, including this round.
        load: Its load.
        observation: The round: it ends a window, or is the first with another assignment.
        context: Rows are written here.
        kind: The group's kind.
    """
    end_member_load(load, kind.consumers(state), observation, context)
    held = (kind.held(state) if state.members_known else None) or ()
    # Without a certain length there are no rates; rows that are open say so.
    if load.since != observation.elapsed_time or not (held and (load.length or load.members)):
        return
    produced = counts_of_held(held, load, produced_of)
    consumed = counts_of_held(held, load, consumed_of)
    carried = [load_of(of, produced) for of in held]
    known = [count for count in carried if count is not None]
    total = sum(known) if len(known) == len(carried) else 0
    context.rows.member_load.extend(
        _row(
            of.member.member_id,
            observation,
            context,
            of.member,
            sum(map(len, of.partitions.values())),
            _per_second(count, load.length),
            _per_second(load_of(of, consumed), load.length),
            count / total if load.length and total and count is not None else None,
        )
        for of, count in zip(held, carried, strict=True)
    )
    load.members = tuple([of.member.member_id for of in held])


def end_member_load(
    load: LoadState, staying: AbstractSet[str], observation: GroupObservation, context: Context
) -> None:
    """Write the closing rows of members that have an open row and are not among those that stay."""
    gone = [member_id for member_id in load.members if member_id not in staying]
    context.rows.member_load.extend(_row(member_id, observation, context) for member_id in gone)
    if gone:
        load.members = tuple([member_id for member_id in load.members if member_id in staying])


def _row(
    member_id: str,
    observation: GroupObservation,
    context: Context,
    member: OwningMember | None = None,
    partitions: int = 0,
    produced: float | None = None,
    consumed: float | None = None,
    share: float | None = None,
) -> MemberLoadRow:
    """A member's row; its closing row where no member is given."""
    return MemberLoadRow(
        cluster=context.config.cluster,
        group_id=context.group,
        member_id=member_id,
        source=context.source,
        round=observation.round,
        round_time=observation.time,
        event_date=day_of(observation.time),
        ended=member is None,
        client_id=member.client_id if member is not None else None,
        client_host=member.client_host if member is not None else None,
        partitions=partitions,
        produced_per_second=produced,
        consumed_per_second=consumed,
        share=share,
    )


def _per_second(count: int | None, length: int) -> float | None:
    return count * 1000 / length if count is not None and length else None
