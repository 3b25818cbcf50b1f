"""Lag of one partition from round to round, as input for its status.

Everything is counted in rounds with commits, not in all rounds, so that no status of a partition with lag improves just
because time passes. The one value in clock time, `waited`, only grows until the next commit.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.groups.lag.rhythm import COMMITTED_ROUNDS, Rhythm, count_pause

__all__ = ["MARKER", "WINDOW", "Trend", "look", "look_away"]

WINDOW: Final = 10
"""Number of rounds to look back on. With fewer, a slow poll looks like trouble; with more, trouble is reported late.
Ten is Burrow's default, and spans a minute and a half with rounds every 10 s."""

MARKER: Final = 1
"""Lag of this many offsets may be a transaction marker, which has an offset but cannot be consumed. It follows the last
record of a transaction, so a group that commits what it has read can stay one behind forever (an exactly-once pipeline
with nothing to do)."""

# Mask for the steps between these rounds, one bit each.
_STEPS = (1 << (WINDOW - 1)) - 1


class Trend(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Lag of one partition over recent rounds. Changed in place by `look` and `look_away`.

    Attributes:
        lag: Lag at the newest round; -1 if that round did not know it.
        committed: Committed offset at the newest round with commits; -1 before the first.
        left: Lag at that round, which the last commit left.
        end: High watermark at that round.
        waited: Elapsed time since that round during which there were records to read, ms.
        rounds: Number of rounds in that time, up to `WINDOW`.
        whole: All rounds since then knew the lag.
        stood: Number of consecutive rounds with commits that did not move the offset and left lag.
        high: Offset from which the committed one went back; -1 if it did not, or has caught up again.
        below: Rounds with commits since it went back.
        run: Number of consecutive rounds with commits in which the lag did not shrink.
        grew: One bit for each of the newest `WINDOW` - 1 of them, the newest in the lowest bit: whether the lag grew.
        run_lag: Lag at the first of them.
        run_end: High watermark at the first of them.
    """

    lag: int = -1
    committed: int = -1
    left: int = 0
    end: int = 0
    waited: int = 0
    rounds: int = 0
    whole: bool = False
    stood: int = 0
    high: int = -1
    below: int = 0
    run: int = 0
    grew: int = 0
    run_lag: int = 0
    run_end: int = 0


def look(
    trend: Trend, rhythm: Rhythm, committed: int, lag: int, end: int, passed: int, rounds: int, *, commits: bool
) -> None:
    """Add a round that knows the lag.

    Args:
        trend: The partition's trend.
        rhythm: The partition's rhythm.
        committed: Committed offset.
        lag: Records that can still be read.
        end: High watermark.
        passed: Elapsed time since the previous round, ms.
        rounds: How many rounds this one stands for; more than one if the group was idle.
        commits: The group has committed since the previous round that knew the lag.
    """
    # A lag of one that the last commit already left may be a marker that is never read.
    if trend.lag > MARKER or (trend.lag == MARKER and trend.left != MARKER):
        trend.waited += passed
        if trend.rounds < WINDOW:
            trend.rounds += rounds
    trend.lag = lag
    if commits:
        _take_commits(trend, rhythm, committed, lag, end, passed, rounds)


def look_away(trend: Trend) -> None:
    """Add a round that does not know the lag; the time up to the next round does not count."""
    trend.lag = -1
    trend.whole = False


def _take_commits(trend: Trend, rhythm: Rhythm, committed: int, lag: int, end: int, passed: int, rounds: int) -> None:
    moved = committed != trend.committed
    left = trend.left
    if rhythm.rounds < COMMITTED_ROUNDS:
        rhythm.rounds += 1
    # In an idle group, commits that repeat the offset end no pause: they may be from any time since the last round.
    if trend.whole and (moved or (trend.waited and rounds == 1)):
        # If more was left than has arrived since, and lag shrinks, the group is working off a backlog.
        arrived = end - trend.end
        pause = trend.waited or passed  # records read at once waited for less than a round
        if pause and (lag >= left or left <= MARKER or left <= arrived):
            count_pause(rhythm, pause)
    if committed < trend.committed:
        trend.high = max(trend.high, trend.committed)
        trend.below = 0
    elif trend.high >= 0:
        trend.below += 1
        if committed >= trend.high or trend.below >= WINDOW:
            trend.high = -1
    trend.stood = trend.stood + 1 if not moved and lag > MARKER else 0
    if trend.run and lag >= left and lag > MARKER:
        trend.run += 1
        trend.grew = (trend.grew << 1 | (lag > left)) & _STEPS
    else:
        trend.run, trend.grew, trend.run_lag, trend.run_end = 1 if lag > MARKER else 0, 0, lag, end
    trend.committed, trend.left, trend.end = committed, lag, end
    trend.waited, trend.rounds, trend.whole = 0, 0, True
