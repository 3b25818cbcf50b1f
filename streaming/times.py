"""Days as the tables store them, and the time of a round as far as it can be trusted.

A broker whose clock is wrong for one round changes nothing.

Rounds carry two times (`GroupObservation`, `ClosedRound`). Elapsed time never jumps, and stands still in outages:
durations of the watching, such as heartbeats and pauses, are differences of it. But leaders decide, and records are
written, by the brokers' clocks. Anything compared with the time of a record needs a time from the same clocks, which
also runs during an outage.

So the round's own time is trusted as long as it advances together with elapsed time. When it has jumped, one round
cannot show whether a clock is wrong or there were no rounds for a while: that round is placed right behind the one
before. The next one decides: a wrong clock comes back; a time that does not come back was a real jump.

The first round that shows a group has nothing to compare its clock with. Until two rounds agree, the time since a
record was written is not known, and nothing is said that needs it to be long (`RoundClock.passed`). The time since
another round is known: both were read from the same clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

DAY_MS: Final = 86_400_000


def steady_s() -> float:
    """Seconds that only grow, also while the machine is suspended, as Python's own clock does not on Linux."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def day_of(time_ms: int) -> int:
    """Days since the epoch, UTC, of a time in ms; the value of Delta's DATE."""
    return time_ms // DAY_MS


def utc(time_ms: float) -> datetime:
    """A time in ms since the epoch as a point in time."""
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def utc_text(time_ms: int) -> str:
    """The same as people and programs read it: "2026-12-01T14:30:00Z"."""
    return f"{utc(time_ms):%Y-%m-%dT%H:%M:%SZ}"


def epoch_ms(moment: datetime) -> int:
    """A point in time as ms since the epoch, rounded."""
    return round(moment.timestamp() * 1000)


# Clocks that advance together, and a wrong one that has come and gone, leave less than this between the two times
# (three intervals at 20 s): small beside all that is measured by it (`metadata_grace`, rebalance timeouts).
_BESIDE_MS = 60_000


class RoundClock(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Offset between the brokers' time and elapsed time. Changed in place by `read_clock`.

    Attributes:
        ahead: Time of the rounds minus elapsed time, ms; None before the first round.
        sure: More than one round agrees.
        other: As `ahead`, of the newest round if that one has jumped; None if it has not.
        told: Time that the jumped round carried, ms; -1 if none has jumped.
        now: Time that the newest round is taken to have, ms; -1 before the first.
    """

    ahead: int | None = None
    sure: bool = False
    other: int | None = None
    told: int = -1
    now: int = -1

    @property
    def passed(self) -> int:
        """A time that has passed for certain by the clocks of records, ms: `now`, or -1 until two rounds agree."""
        if self.sure:
            return self.now
        return -1


@dataclass(frozen=True, slots=True)
class Shift:
    """A correction of times that were taken from a clock that is no longer trusted.

    Attributes:
        since: Times from this one on are corrected, ms.
        by: What to add to them, ms.
    """

    since: int
    by: int


def read_clock(clock: RoundClock, time: int, elapsed: int) -> Shift | None:
    """Take in the two times of a round, ms; afterwards `clock.now` is the round's time.

    Returns:
        The correction of times kept at earlier rounds, so that the distances between them stay; None where they are
        right as they are.
    """
    ahead = time - elapsed
    shift = None
    if clock.ahead is not None and clock.other is not None and _goes_on(clock.ahead, clock.other, ahead):
        # Forwards: there were no rounds for a while, and only the round after that was placed too early. Backwards, or
        # if the clock was wrong when the group was met: everything before was.
        forwards = clock.sure and clock.other > clock.ahead
        shift = Shift(clock.now, clock.told - clock.now) if forwards else Shift(0, clock.other - clock.ahead)
        clock.ahead, clock.sure = clock.other, True
    if clock.ahead is None or abs(ahead - clock.ahead) <= _BESIDE_MS:
        clock.sure = clock.ahead is not None
        clock.ahead, clock.other, clock.told, clock.now = ahead, None, -1, time
    else:
        # Later than the times kept at the rounds before, and no later than the next one.
        clock.other, clock.told, clock.now = ahead, time, clock.now + 1
    return shift


def _goes_on(believed: int, other: int, ahead: int) -> bool:
    """Whether a round has jumped at least as far as the one before it: a wrong clock would have come back."""
    if other > believed:
        return ahead >= other - _BESIDE_MS
    return ahead <= other + _BESIDE_MS
