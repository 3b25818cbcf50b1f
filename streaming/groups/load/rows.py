"""Rows of `member_load`: what each member carries, at each window's end; a closing row when it has left."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from streaming.groups.context import Context
from streaming.groups.load.balance import consumers_of, counts_of_held, held_by_members, load_of
from streaming.groups.load.rates import consumed_of, produced_of
from streaming.groups.load.state import LoadState
from streaming.groups.rows import MemberLoadRow
from streaming.groups.state import GroupState
from streaming.records import GroupObservation
from streaming.times import day_of


def write_member_load(state: GroupState, load: LoadState, observation: GroupObservation, context: Context) -> None:
    """Write the rows of a round that ends a window, and the closing rows of members that have left since the last one.

    Args:
        state: The group's state, including this round.
        load: Its load.
        observation: The round: it ends a window, or is the first with another assignment.
        context: Rows are written here.
    """
    end_member_load(load, consumers_of(state), observation, context)
    held = held_by_members(state) or ()
    # (Without a certain length there are no rates; rows that are open say so.)
    if load.since != observation.elapsed_time or not (held and (load.length or load.members)):
        return
    produced = counts_of_held(held, load, produced_of)
    consumed = counts_of_held(held, load, consumed_of)
    carried = [load_of(of, produced) for of in held]
    known = [count for count in carried if count is not None]
    total = sum(known) if len(known) == len(carried) else 0
    for of, count in zip(held, carried, strict=True):
        context.rows.member_load.append(
            MemberLoadRow(
                cluster=context.config.cluster,
                group_id=context.group,
                member_id=of.member.member_id,
                source=context.source,
                round=observation.round,
                round_time=observation.time,
                event_date=day_of(observation.time),
                ended=False,
                client_id=of.member.client_id,
                client_host=of.member.client_host,
                partitions=sum(map(len, of.partitions.values())),
                produced_per_second=_per_second(count, load.length),
                consumed_per_second=_per_second(load_of(of, consumed), load.length),
                share=count / total if load.length and total and count is not None else None,
            )
        )
    load.members = tuple([of.member.member_id for of in held])


def end_member_load(
    load: LoadState, staying: AbstractSet[str], observation: GroupObservation, context: Context
) -> None:
    """Write the closing rows of members that have an open row and are not among those that stay."""
    gone = [member_id for member_id in load.members if member_id not in staying]
    for member_id in gone:
        context.rows.member_load.append(
            MemberLoadRow(
                cluster=context.config.cluster,
                group_id=context.group,
                member_id=member_id,
                source=context.source,
                round=observation.round,
                round_time=observation.time,
                event_date=day_of(observation.time),
                ended=True,
                client_id=None,
                client_host=None,
                partitions=0,
                produced_per_second=None,
                consumed_per_second=None,
                share=None,
            )
        )
    if gone:
        load.members = tuple([member_id for member_id in load.members if member_id in staying])


def _per_second(count: int | None, length: int) -> float | None:
    return count * 1000 / length if count is not None and length else None
