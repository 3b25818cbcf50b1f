"""How long a group lets lag stand before it commits: its rhythm on one partition, out of its recent pauses.

A pause is the time for which something stood there to be read between one commit and the next, in steady time, which
outages do not add to. It does not count while nothing was there to read, nor where a round in between did not know the
lag, nor while the group works off a backlog: how fast a batch commits does not tell how long the job then rests.

The statistic is the **third-longest recent pause**. The longest would be ruled by one accident for as long as it is
remembered, a median by the many short pauses inside the runs of a nightly job. Two accidents (an outage of the
consumers, a weekend off) change nothing; what happens three times is the rhythm. Recent is what was lived (in pauses
that count) within ten times a pause's own length, a day at least; and three later pauses that are about as long take
its place. So a partition keeps three entries in a steady life, and a few more in a ragged one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.times import DAY_MS

__all__ = ["COMMITTED_ROUNDS", "Rhythm", "count_pause", "longest_wait"]

_ACCIDENTS = 2
"""Pauses that may be longer than the rhythm: the third-longest is it."""

# Of few pauses not so many can be taken for accidents: the longest counts below so many, the second-longest below the
# second number.
_FEW = 4
_ENOUGH = 8

# Below so many pauses the rhythm is not known: somebody who has committed twice by hand has none.
_LEAST = 3

# A wait is too long when one run was left out and the next is a fifth late, twice. With more a nightly job (23 to 26
# hours between its runs) would be found dead after its third day only; with less a single skipped run is an alarm.
_PATIENCE_PERCENT = 240

# Remembered for so many times its own length: a nightly job for a week and more, with the weekend in it.
_REMEMBERED = 10
_REMEMBERED_LEAST_MS = DAY_MS

# From four fifths on a pause is about as long as another: entries stay few where all are alike.
_ALIKE_PERCENT = 80

# Of lives whose pauses only ever become shorter no two are alike: here the shortest is forgotten.
_MOST_KEPT = 24

# A group met in the middle of a backlog commits without showing when it rests. It is given what a nightly job would
# get, instead of being trusted for ever.
_UNKNOWN_RHYTHM_MS = DAY_MS
COMMITTED_ROUNDS: Final = 5
"""Rounds with commits from which on a group is taken for one that goes on committing."""

# Numbers that an entry has in `Rhythm.pauses`.
_WIDTH = 2


class Rhythm(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Recent pauses of a group on one partition. Changed in place.

    Attributes:
        pauses: Length of each, ms, and what had been lived at its end, one after the other, oldest first.
        lived: Sum of all pauses that counted, ms.
        counted: How many counted, up to `_ENOUGH`.
        rounds: Rounds that brought commits, up to `COMMITTED_ROUNDS`.
    """

    pauses: list[int] = []
    lived: int = 0
    counted: int = 0
    rounds: int = 0


def count_pause(rhythm: Rhythm, length: int) -> None:
    """Take in a pause that has ended, ms."""
    pauses = rhythm.pauses
    rhythm.lived = lived = rhythm.lived + length
    if rhythm.counted < _ENOUGH:
        rhythm.counted += 1
    pauses.append(length)
    pauses.append(lived)
    if len(pauses) <= _WIDTH * (_ACCIDENTS + 1):
        return
    # By far most lives are steady: of the newest and three like it before, the oldest gives way.
    if 100 * min(length, pauses[-4], pauses[-6]) >= _ALIKE_PERCENT * pauses[-8]:
        del pauses[-8:-6]
        if len(pauses) == _WIDTH * (_ACCIDENTS + 1) or _is_recent(pauses[0], pauses[1], lived):
            return
    rhythm.pauses = _pruned(pauses, lived)


def longest_wait(rhythm: Rhythm) -> int | None:
    """For how long lag may stand without a commit before the group has stopped, ms; None where that is not known."""
    if rhythm.counted < _LEAST:
        known = rhythm.rounds >= COMMITTED_ROUNDS
        return _UNKNOWN_RHYTHM_MS * _PATIENCE_PERCENT // 100 if known else None
    accidents = 0 if rhythm.counted < _FEW else 1 if rhythm.counted < _ENOUGH else _ACCIDENTS
    return sorted(rhythm.pauses[::_WIDTH], reverse=True)[accidents] * _PATIENCE_PERCENT // 100


def _pruned(pauses: list[int], lived: int) -> list[int]:
    """The pauses that can still be among the three longest recent ones; the three newest always."""
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
