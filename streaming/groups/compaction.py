"""How the core handles a stretch of the log that Kafka has compacted.

The last record of each key remains, so the present state is complete. The history is not, so nothing is claimed about
it:

- A round inside the stretch is not judged: it gets no row in `lag` or `group_health`, and no findings. The partition
  counts that the probe saw are kept.
- A classic decision is complete in one record and is judged. What preceded it is unknown: its row shows no moves and
  nobody who joined or left, and it may be the record of a static member's return.
- A KIP-848 decision is spread over many records, and some of those that remain may be newer than it. It gets no churn
  row, and its members are shown as they are at the next judged round.
- Anything that spans the start of the stretch is dropped: the bounds on a rebalance's cost, rebalances that wait for a
  round, the rounds by which lag is judged, the present window of the rates, and the pause between the last commit
  before it and the first inside.

`streaming/offsets_log/log_cleaning.py` finds the stretches.
"""

from __future__ import annotations

from collections.abc import Iterable

from streaming.groups.context import Context
from streaming.groups.load.rates import void_window
from streaming.groups.modern import consumer_group
from streaming.groups.state import GroupState
from streaming.records import Compacted, GroupInput, GroupObservation, RocketMQObservation

_NEVER = -1


def take_in(state: GroupState, stretch: Compacted, context: Context) -> None:  # noqa: ARG001
    """Note that a stretch begins or continues: each read from inside a stretch reports it again from there."""
    goes_on = is_compacted(state, stretch.first)
    state.compacted_until = max(state.compacted_until, stretch.until)
    if goes_on:
        return
    state.classic.cost = state.classic.rounds = state.classic.in_force = state.modern.pauses = None
    state.stopped = []
    void_window(state.load)
    for partitions in state.partitions.values():
        for known in partitions.values():
            known.forget_rounds()
    if state.modern.group is not None:
        consumer_group.forget_before(state.modern.group)


def is_compacted(state: GroupState, position: int) -> bool:
    """Whether a log offset, or the log position of a round, lies in the stretch."""
    return position < state.compacted_until


def leave(state: GroupState, position: int) -> None:
    """Forget the stretch once this position is beyond it."""
    if position >= state.compacted_until:
        state.compacted_until = _NEVER


def goes_on_behind(state: GroupState, inputs: Iterable[GroupInput]) -> bool:
    """Whether more of the group's records in the stretch may follow these inputs, the newest ones processed."""
    if state.compacted_until < 0:
        return False
    others = GroupObservation | RocketMQObservation | Compacted
    taken = max((item.position for item in inputs if not isinstance(item, others)), default=-1)
    return taken + 1 < state.compacted_until
