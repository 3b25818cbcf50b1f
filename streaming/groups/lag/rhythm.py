"""A group's rhythm on one partition: how long it usually leaves lag before it commits, from its recent pauses.

A pause is the time between two commits during which there were records to read, in elapsed time, so outages of the
probe do not add to it. It does not count if a round in between did not know the lag, or while the group works off a
backlog: how often a batch job commits while it runs says nothing about how long it then rests.

The rhythm is the **third-longest recent pause**. The longest would follow a single accident for as long as it is
remembered, and a median would follow the many short pauses within the runs of a nightly job. Two accidents (an outage
of the consumers, a weekend off) change nothing; what happens three times is the rhythm. A pause is recent until ten
times its own length, at least a day, has passed in counted pauses, or until three later pauses of about the same length
replace it. So a partition keeps three entries if it commits regularly, and a few more if it does not.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.times import DAY_MS

__all__ = ["COMMITTED_ROUNDS", "Rhythm", "count_pause", "longest_wait"]

_ACCIDENTS = 2
"""Pauses that may be longer than the rhythm, which is the third-longest."""

# With fewer pauses, fewer of them can be accidents: below `_FEW` the rhythm is the longest, below `_ENOUGH` the
# second-longest.
_FEW = 4
_ENOUGH = 8

# With fewer pauses the rhythm is unknown: two commits by hand do not make one.
_LEAST = 3

# A wait longer than 2.4 times the rhythm is too long: two intervals, each a fifth longer than usual, with a run skipped
# in between. With a higher value, a nightly job (23 to 26 hours between runs) would be reported only after its third
# day; with a lower one, a single skipped run would raise an alarm.
_PATIENCE_PERCENT = 240

# How long a pause is remembered, in multiples of its length: more than a week for a nightly job, weekend included.
_REMEMBERED = 10
_REMEMBERED_LEAST_MS = DAY_MS

# Two pauses are about as long if one is at least this share of the other. This keeps the list short for regular pauses.
_ALIKE_PERCENT = 80

# Limit for pauses that only get shorter, so that none replaces another; the shortest is dropped.
_MOST_KEPT = 24

# A group first seen in the middle of a backlog commits without showing when it rests. It is treated like a nightly job
# rather than trusted forever.
_UNKNOWN_RHYTHM_MS = DAY_MS
COMMITTED_ROUNDS: Final = 5
"""Rounds with commits after which a group is assumed to commit regularly."""

# Integers per entry in `Rhythm.pauses`.
_WIDTH = 2


class Rhythm(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Recent pauses of a group on one partition. Changed in place.

    Attributes:
        pauses: For each pause its length and the value of `lived` at its end, both ms; flat, oldest first.
        lived: Sum of all counted pauses, ms.
        counted: Number of counted pauses, up to `_ENOUGH`.
        rounds: Number of rounds with commits, up to `COMMITTED_ROUNDS`.
    """

    pauses: list[int] = []
    lived: int = 0
    counted: int = 0
    rounds: int = 0


def count_pause(rhythm: Rhythm, length: int) -> None:
    """Add a finished pause of a length in ms."""
    pauses = rhythm.pauses
    rhythm.lived = lived = rhythm.lived + length
    if rhythm.counted < _ENOUGH:
        rhythm.counted += 1
    pauses.append(length)
    pauses.append(lived)
    if len(pauses) <= _WIDTH * (_ACCIDENTS + 1):
        return
    # The usual, regular case: the newest four pauses are alike, and the oldest of them is dropped.
    if 100 * min(length, pauses[-4], pauses[-6]) >= _ALIKE_PERCENT * pauses[-8]:
        del pauses[-8:-6]
        if len(pauses) == _WIDTH * (_ACCIDENTS + 1) or _is_recent(pauses[0], pauses[1], lived):
            return
    rhythm.pauses = _pruned(pauses, lived)


def longest_wait(rhythm: Rhythm) -> int | None:
    """How long there may be lag without a commit before the group counts as stopped, ms; None if unknown."""
    if rhythm.counted < _LEAST:
        known = rhythm.rounds >= COMMITTED_ROUNDS
        return _UNKNOWN_RHYTHM_MS * _PATIENCE_PERCENT // 100 if known else None
    accidents = 0 if rhythm.counted < _FEW else 1 if rhythm.counted < _ENOUGH else _ACCIDENTS
    return sorted(rhythm.pauses[::_WIDTH], reverse=True)[accidents] * _PATIENCE_PERCENT // 100


def _pruned(pauses: list[int], lived: int) -> list[int]:
    """The pauses that can still be among the three longest recent ones, and always the three newest."""
    kept: list[tuple[int, int]] = []
    entries = list(zip(pauses[::_WIDTH], pauses[1::_WIDTH], strict=True))
    for length, at in reversed(entries):
        if len(kept) > _ACCIDENTS:
            if not _is_recent(length, at, lived):
                continue
            if sum(100 * later >= _ALIKE_PERCENT * length for later, _ in kept) > _ACCIDENTS:
                continue
        kept.append((length, at))
    if len(kept) > _MOST_KEPT:
        kept.remove(min(kept[_ACCIDENTS + 1 :]))
    return [number for entry in reversed(kept) for number in entry]


def _is_recent(length: int, at: int, lived: int) -> bool:
    return lived - at <= max(_REMEMBERED_LEAST_MS, _REMEMBERED * length)
