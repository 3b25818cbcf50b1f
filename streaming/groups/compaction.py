"""What the core makes of a stretch of the log out of which compaction has taken records.

Its present is not touched: the last record of each key is there. Of its past nothing is claimed:

- A round inside the stretch is not judged: no row of lag or health, no finding. What the probe itself saw at it,
  partition counts, is kept.
- A classic decision in it is complete in itself, and is judged; but what the group did right before is not known: no
  moves, nobody joined or left, and it may be the record of a static member's return.
- A decision of a group that the broker assigns is spread over many records, of which some may be newer than it: it
  gives no row of churn, and its members are shown as they are at the next round that is judged.
- What reaches over the stretch is given up: the bound on a rebalance's cost, the rounds that lag is judged by, the
  pause between the last commit before it and the first in it.

How a stretch is found: `streaming/offsets_log/log_cleaning.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from streaming.groups.modern import consumer_group
from streaming.groups.state import GroupState
from streaming.records import Compacted, GroupInput, GroupObservation

__all__ = ["goes_on_behind", "is_compacted", "leave", "take_in"]

_NEVER = -1


def take_in(state: GroupState, stretch: Compacted) -> None:
    """Take in that a stretch begins, or goes on: whatever is read from inside a stretch tells it again from there."""
    goes_on = is_compacted(state, stretch.first)
    state.compacted_until = max(state.compacted_until, stretch.until)
    if goes_on:
        return
    state.classic.cost = state.modern.pauses = None
    for partitions in state.partitions.values():
        for known in partitions.values():
            known.forget_rounds()
    if state.modern.group is not None:
        consumer_group.forget_before(state.modern.group)


def is_compacted(state: GroupState, position: int) -> bool:
    """Whether a log offset, or a round at a log position, lies in the stretch."""
    return position < state.compacted_until


def leave(state: GroupState, position: int) -> None:
    """Forget the stretch once it lies behind."""
    if position >= state.compacted_until:
        state.compacted_until = _NEVER


def goes_on_behind(state: GroupState, inputs: Iterable[GroupInput]) -> bool:
    """Whether records of the group in the stretch are still to come after these inputs, the newest that were taken."""
    if state.compacted_until < 0:
        return False
    taken = max((item.position for item in inputs if not isinstance(item, GroupObservation | Compacted)), default=-1)
    return taken + 1 < state.compacted_until
