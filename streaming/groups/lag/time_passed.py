"""How much time a group's round adds to what its partitions have waited, and what time it is."""

from __future__ import annotations

from streaming.groups.lag.trend import WINDOW
from streaming.groups.state import GroupState
from streaming.groups.topics import CountSeen, RacksSeen
from streaming.records import GroupObservation
from streaming.times import Shift, read_clock

__all__ = ["take_time"]

# A group that rounds did not show for longer than this many of its steps was not seen, as while its coordinator was
# away: nobody knows what held. The same number of intervals is what a pause between rounds counts at the most.
_COUNTED_STEPS = 3


def take_time(state: GroupState, observation: GroupObservation) -> tuple[int, int]:
    """Take in the time of a round, before anything else of it.

    Returns:
        Steady time since the group's round before, as far as it was seen, ms; and how many rounds this one stands for:
        one that tells a group as idle comes after many in which nothing moved.
    """
    shift = read_clock(state.clock, observation.time, observation.steady)
    if shift is not None:
        _move(state, shift)
    gap = observation.steady - state.steady if 0 <= state.steady <= observation.steady else 0
    seen = gap if state.rested or not state.step else min(gap, _COUNTED_STEPS * state.step)
    if gap and not state.rested:
        state.step = gap
    state.steady, state.rested = observation.steady, observation.idle
    return seen, WINDOW if observation.idle else 1


def _move(state: GroupState, shift: Shift) -> None:
    """Move the times of rounds that are kept, of rounds alone: those of records are the brokers' own."""

    def moved(time: int) -> int:
        return time + shift.by if time >= max(shift.since, 0) else time

    for topic in state.topics.values():
        topic.since, topic.renewed, topic.recreated = moved(topic.since), moved(topic.renewed), moved(topic.recreated)
        entries: list[CountSeen | RacksSeen] = [*topic.counts, *topic.racks]
        for seen in entries:
            seen.first, seen.last = moved(seen.first), moved(seen.last)
    if state.offset_events is not None:
        state.offset_events.deleted_at = moved(state.offset_events.deleted_at)
    if shift.by > 0:
        # (Of a since that is a record's the next round tells the earlier one again, and that counts.)
        state.findings = {name: moved(since) for name, since in state.findings.items()}
