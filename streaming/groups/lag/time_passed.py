"""The time that a round adds to its group's clocks."""

from __future__ import annotations

from streaming.groups.lag.trend import WINDOW
from streaming.groups.state import GroupState
from streaming.groups.topics import CountSeen, RacksSeen
from streaming.records import GroupObservation
from streaming.times import Shift, read_clock

__all__ = ["take_time"]

# A gap between a group's rounds counts for at most this many of its usual steps. In a longer gap, as while its
# coordinator is down, the group's state is unknown. A gap between rounds as such has the same limit, in intervals.
_COUNTED_STEPS = 3


def take_time(state: GroupState, observation: GroupObservation) -> tuple[int, int]:
    """Advance the group's clocks to a round; call this before processing anything else of the round.

    Returns:
        Elapsed time since the group's previous round, without the time in which it was not seen, ms; and how many
        rounds this one stands for: more than one for an idle group, which rounds skipped while nothing moved.
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
    """Shift the round times in the state after a clock jump. Record times stay: they are the brokers'."""

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
        # A start that is a record time moves too, but the next round finds the earlier one again and takes it.
        state.findings = {name: moved(since) for name, since in state.findings.items()}
