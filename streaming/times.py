"""Days as the tables have them, and the time of a round as far as it can be believed.

A broker whose clock is wrong for one round changes nothing.

Rounds carry two times (`Tick`, `ClosedRound`). `steady` never jumps, and stands still in outages: durations of the
watching, such as heartbeats and pauses, are differences of it. But leaders decide, and records are written, by the
brokers' clocks. What is compared with the time of a record needs a time of the same clocks, which goes on in an outage.

So the round's own time is believed as long as it runs beside the steady one. Where it has jumped, one round cannot tell
whether a clock is wrong or nobody looked for a while: that round is taken to be right behind the one before. The next
one tells: a wrong clock comes back, and what does not was a jump indeed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

__all__ = ["DAY_MS", "RoundClock", "Shift", "day_of", "read_clock"]

DAY_MS: Final = 86_400_000


def day_of(time_ms: int) -> int:
    """Days since the epoch, UTC, of a time in ms; what Delta's DATE is made of."""
    return time_ms // DAY_MS


# Clocks that run beside each other, and a wrong one that has come and gone, leave less than this between the two times
# (three intervals at 20 s); it is small beside all that is measured by it (`metadata_grace`, rebalance timeouts).
_BESIDE_MS = 60_000


class RoundClock(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Where the brokers' time stands beside the steady one. Changed in place by `read_clock`.

    Attributes:
        ahead: Time of the rounds minus steady time, ms; None before the first round.
        sure: More than one round agrees.
        other: The same of the newest round, where that one has jumped; None where it has not.
        told: Time that the round told which has jumped, ms; -1 where none has.
        now: Time that the newest round is taken to have, ms; -1 before the first.
    """

    ahead: int | None = None
    sure: bool = False
    other: int | None = None
    told: int = -1
    now: int = -1


@dataclass(frozen=True, slots=True)
class Shift:
    """Times that were kept by a clock that is no longer believed.

    Attributes:
        since: Times from this one on are meant, ms.
        by: What is to be added to them, ms.
    """

    since: int
    by: int


def read_clock(clock: RoundClock, time: int, steady: int) -> Shift | None:
    """Take in the two times of a round, ms; `clock.now` is what it is taken to be.

    Returns:
        How times that were kept at earlier rounds have to be moved, so that they lie as far apart as they did; None
        where they are right as they are.
    """
    ahead = time - steady
    shift = None
    if clock.ahead is not None and clock.other is not None and _goes_on(clock.ahead, clock.other, ahead):
        # Forwards: nobody looked for a while, and only the round after that was taken to be too early. Backwards, or
        # where the clock was wrong when the group was met: all before was.
        forwards = clock.sure and clock.other > clock.ahead
        shift = Shift(clock.now, clock.told - clock.now) if forwards else Shift(0, clock.other - clock.ahead)
        clock.ahead, clock.sure = clock.other, True
    if clock.ahead is None or abs(ahead - clock.ahead) <= _BESIDE_MS:
        clock.sure = clock.ahead is not None
        clock.ahead, clock.other, clock.told, clock.now = ahead, None, -1, time
    else:
        # (Later than what was kept at the rounds before, and no later than the next one.)
        clock.other, clock.told, clock.now = ahead, time, clock.now + 1
    return shift


def _goes_on(believed: int, other: int, ahead: int) -> bool:
    """Whether a round has jumped at least as far as the one before it: a wrong clock would have come back."""
    return ahead >= other - _BESIDE_MS if other > believed else ahead <= other + _BESIDE_MS
