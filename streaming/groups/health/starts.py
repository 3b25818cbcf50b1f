"""Starts of findings after a clock turned out to be wrong.

Most findings give their start again at each round, from a record or from what else is kept of the rounds. Others are
known by their start alone: it is the time of the round that found them first, and moves with the rounds' times.
"""

from __future__ import annotations

import re
from typing import Final

from streaming.groups.state import GroupState
from streaming.times import Shift

# Findings that begin at the round that found them first. Names under which another start is kept (`kept_as`) have a
# space, which no finding's own name has.
_SINCE_A_ROUND: Final = frozenset({"topic_not_visible", "rewound", "data_lost"})

# How long rounds have watched a rebalance is kept in elapsed time, which no clock changes (`stuck_rebalance`).
# (Names with a topic in them end in other words.)
_IN_ELAPSED_TIME: Final = re.compile(r"\w+ watched since -?\d+")


def move_starts(state: GroupState, shift: Shift, present: int) -> None:
    """Correct the times since which something holds, after a clock jump.

    Args:
        state: The group's state.
        shift: The jump.
        present: Time of the newest round by the clock that is believed now, ms.
    """
    # Backwards, the clock was ahead, though perhaps not all the time. A start that is still to come is certainly its;
    # one that has passed may be right, and moving it would make a finding older than it is, perhaps a false alarm.
    least = max(shift.since, 0) if shift.by > 0 else present + 1

    def moved(time: int) -> int:
        return max(0, time + shift.by) if time >= least else time

    state.findings = {name: moved(since) if _moves(name, shift) else since for name, since in state.findings.items()}
    if state.uncommitted is not None:
        state.uncommitted.since = moved(state.uncommitted.since)


def _moves(name: str, shift: Shift) -> bool:
    if _IN_ELAPSED_TIME.fullmatch(name):
        return False
    # Where the next round gives a start again, the earlier one counts. So it may become later here, but not earlier:
    # the time of a record stays.
    return shift.by > 0 or name in _SINCE_A_ROUND or " " in name
