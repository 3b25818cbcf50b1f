"""Lag of one partition from round to round: what its judgement looks back on.

Everything is counted in rounds that brought commits, not in rounds that passed: nothing that is said of a partition
with lag gets better for the reason that time goes by. What goes by the clock, for how long lag has stood without a
commit, only grows (`waited`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.groups.lag.rhythm import COMMITTED_ROUNDS, Rhythm, count_pause

__all__ = ["MARKER", "WINDOW", "Trend", "look", "look_away"]

WINDOW: Final = 10
"""Rounds that are looked back on. Fewer, and a slow poll looks like trouble; more, and trouble is told late. Ten is
what Burrow keeps by default, and at 10 s rounds is a minute and a half."""

MARKER: Final = 1
"""Offsets hold what a group cannot consume: after the last record of a transaction stands its marker, and a group that
commits what it has read stays one behind for good (exactly-once pipelines that have nothing to do)."""

# Steps between as many rounds as are looked back on, a bit each.
_STEPS = (1 << (WINDOW - 1)) - 1


class Trend(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """What rounds have shown of one partition. Changed in place by `look` and `look_away`.

    Attributes:
        lag: At the newest round; -1 where that did not know it.
        committed: Committed offset at the newest round with commits; -1 before the first.
        left: Lag at that round: what the last commit left.
        end: High watermark at that round.
        waited: Steady time since that round in which there was something to read, ms.
        rounds: Rounds of that, up to `WINDOW`.
        whole: Every round since that one knew the lag.
        stood: Rounds with commits in a row that left the offset where it was, and the group behind.
        high: Offset that the committed one went back from; -1 where it has not, or is there again.
        below: Rounds with commits since then.
        run: Rounds with commits in a row in which the lag has not shrunk.
        grew: A bit for each of the newest `WINDOW` - 1 of them, the newest lowest: whether it grew.
        run_lag: Lag at the first of them.
        run_end: High watermark there.
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
    """Take in a round that knows the lag.

    Args:
        trend: Of the partition.
        rhythm: Of the partition.
        committed: Committed offset.
        lag: Records that can still be read.
        end: High watermark.
        passed: Steady time since the round before, ms.
        rounds: How many rounds this one stands for: more than one where the group rested.
        commits: The group has committed since the round before that knew the lag.
    """
    # (Lag that is the one record that the last commit left may be a marker that nobody will ever read.)
    if trend.lag > MARKER or (trend.lag == MARKER and trend.left != MARKER):
        trend.waited += passed
        if trend.rounds < WINDOW:
            trend.rounds += rounds
    trend.lag = lag
    if commits:
        _take_commits(trend, rhythm, committed, lag, end, passed, rounds)


def look_away(trend: Trend) -> None:
    """Take in a round that does not know the lag: the time up to the next one counts for nothing."""
    trend.lag = -1
    trend.whole = False


def _take_commits(trend: Trend, rhythm: Rhythm, committed: int, lag: int, end: int, passed: int, rounds: int) -> None:
    moved = committed != trend.committed
    left = trend.left
    if rhythm.rounds < COMMITTED_ROUNDS:
        rhythm.rounds += 1
    # (A group that rests is not woken by commits that repeat the offset: they came at any time since the round before.)
    if trend.whole and (moved or (trend.waited and rounds == 1)):
        # Where more was left than has arrived since, and it becomes less, the group works off a backlog.
        arrived = end - trend.end
        pause = trend.waited or passed  # (what was read at once stood there for less than a round)
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
