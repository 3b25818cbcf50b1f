"""How fast this machine maintains, as far as pieces so far have shown, and what fits into a time.

Work is counted in rows. Pure, without a clock: the caller measures.
"""

from __future__ import annotations

from dataclasses import replace

from streaming.maintain.table.plan import Limits

FILE_ROWS = 1_000
"""Opening a file takes as long as rewriting about this many rows: 0.8 to 2 ms, at 530,000 to 800,000 rows a second."""

# Rows rewritten in a second, before the first piece was timed: low, so that it is rather too short than too long.
_FIRST_GUESS = 100_000

# No piece has to be smaller than this, and only pieces of this size count for the speed: smaller ones say little.
_LEAST_ROWS = 50_000


class Speed:
    """The speed of compaction, learned from its pieces."""

    def __init__(self) -> None:
        """Begin with a guess."""
        self._rows_per_s: float = _FIRST_GUESS

    def note(self, rows: int, files: int, seconds: float) -> None:
        """Learn from a piece that read so many rows and files."""
        weight = rows + files * FILE_ROWS
        if weight >= _LEAST_ROWS:
            # Half of what is known already: one piece beside a busy batch says little about the next.
            self._rows_per_s = (self._rows_per_s + weight / max(seconds, 0.001)) / 2

    def seconds_of(self, weight: int) -> float:
        """How long so much work should take."""
        return weight / self._rows_per_s

    def limits_within(self, limits: Limits, *bounds: float | None) -> Limits:
        """The limits of pieces that should take no longer than each of these times in seconds; None is no bound."""
        known = [seconds for seconds in bounds if seconds is not None]
        if not known:
            return limits
        # Half of the time for rows, half for opening files.
        rows = max(_LEAST_ROWS, int(self._rows_per_s * min(known) / 2))
        return replace(
            limits,
            piece_rows=min(limits.piece_rows, rows),
            piece_files=min(limits.piece_files, rows // FILE_ROWS),
        )
