"""Whether a group rebalances far more often than it used to.

The state keeps the times of the rebalances of the last ten minutes, and of those before them a count in which a
rebalance loses half of its weight in a day. So the group's own past decides what is much: a group that scales with its
load may rebalance every few minutes for ever. What happens during a storm does not count as the past, or a storm of
hours would become what is usual, and end as a finding while it goes on.

Everything follows from the times of the decisions in log order, and not from when a round looked.
"""

from __future__ import annotations

from math import log
from typing import Final

from streaming.groups.health.columns import FindingAtRound
from streaming.groups.health.state import Rebalances
from streaming.groups.state import GroupState
from streaming.times import DAY_MS

WINDOW_MS: Final = 600_000
"""Span in which rebalances are counted, ms."""

LEAST: Final = 6
"""Fewer rebalances within the span are no storm: a deployment of a few members one after the other makes as many."""

_TIMES_USUAL: Final = 5
"""A storm has more than this many times the usual number."""

# A group that is younger has no past to compare with.
_YOUNGEST_MS: Final = 3_600_000

# Times kept: a group can rebalance several times a second, and a finding need not tell 64 from more.
_MOST: Final = 64


def note(known: Rebalances, time: int) -> None:
    """Count a rebalance.

    Args:
        known: The group's rebalances.
        time: Time of its record, ms. One that is a little earlier than the newest counts as made at that time: a new
            coordinator's clock may be behind. With one that is far earlier a clock was wrong, so counting begins again.
    """
    if time < 0:
        return  # (no client and no broker writes such a time)
    newest = known.recent[-1] if known.recent else -1
    if known.first < 0 or time < newest - WINDOW_MS:
        known.first = known.counted_at = time
        known.recent, known.past, known.storm_since = [], 0.0, -1
    time = max(time, newest) if known.recent else time
    known.recent.append(time)
    while known.recent[0] <= time - WINDOW_MS or len(known.recent) > _MOST:
        _pass(known, known.recent.pop(0))
    if _is_many(known, len(known.recent), time):
        known.storm_since = known.recent[0] if known.storm_since < 0 else known.storm_since
    else:
        known.storm_since = -1


def count_rebalance(state: GroupState, time: int) -> None:
    """Count a decision of a group, which was made at a time in ms; see `note`."""
    state.rebalances = state.rebalances or Rebalances()
    note(state.rebalances, time)


def storm(known: Rebalances | None, now: int) -> FindingAtRound | None:
    """The finding `rebalance_storm` at a round; None if there is no storm.

    Args:
        known: The group's rebalances; None before the first.
        now: The round's time, ms.
    """
    if known is None or known.storm_since < 0:
        return None
    # (A record far ahead of the round has a wrong time.)
    number = sum(now - WINDOW_MS < time <= now + WINDOW_MS for time in known.recent)
    if number < LEAST:
        return None
    minutes = WINDOW_MS // 60_000
    many = f"{number} or more" if number >= _MOST else f"{number}"
    a_day = _usual(known, known.recent[-1]) * DAY_MS / WINDOW_MS
    detail = f"{many} rebalances in the last {minutes} minutes; usually about {a_day:.1f} a day"
    return FindingAtRound("rebalance_storm", known.storm_since, detail)


def _pass(known: Rebalances, time: int) -> None:
    if known.storm_since >= 0:
        return
    known.past = _halved(known, time) + 1
    known.counted_at = time


def _halved(known: Rebalances, time: int) -> float:
    return known.past * float(2.0 ** ((known.counted_at - time) / DAY_MS))


def _is_many(known: Rebalances, number: int, time: int) -> bool:
    old_enough = known.recent[0] - known.first >= _YOUNGEST_MS
    return number >= LEAST and old_enough and number > _TIMES_USUAL * _usual(known, time)


def _usual(known: Rebalances, time: int) -> float:
    """Rebalances within `WINDOW_MS`, as the group's past has them."""
    begun = known.recent[0] if known.storm_since < 0 else known.storm_since
    age = max(begun - known.first, _YOUNGEST_MS)
    # The sum of all weights that a rebalance a millisecond would have by now, since the first.
    weight = DAY_MS / log(2) * (1 - float(2.0 ** (-age / DAY_MS)))
    at = min(time, begun)
    return _halved(known, max(at, known.counted_at)) / weight * WINDOW_MS
