"""How long a group that is behind will take to catch up, at its pace of the last minutes.

The pace is what the sum of its lag has lost between an earlier round and now, so what was produced meanwhile counts
against it. It is looked at over ten minutes where that is known, because a group that commits every minute or two seems
to stand still in between. This is arithmetic on the past and no forecast: nobody knows how the group goes on.

Time is that of the rounds (`RoundClock.now`) and not elapsed time, which stands still while rounds are missing: what a
group reads in an outage of the probe would look as if it had been read in three intervals.

The samples are a flat list: a number that stands for the partitions that the sums are of, then time in ms and lag of
each, the oldest first.
"""

from __future__ import annotations

from typing import Final

# How far back the pace is looked at, and how often a sample is kept for that: ten of them.
_SPAN_MS: Final = 600_000
_STEP_MS: Final = 60_000

# With less between two sums, the pace is that of a single poll.
_LEAST_MS: Final = 30_000


def drained(samples: list[int], partitions: int, now: int, lag: int) -> tuple[list[int], float | None]:
    """Add a round of a group that is behind.

    Args:
        samples: Those of earlier rounds, since the group fell behind.
        partitions: A number that stands for the partitions with a known lag. Sums of others are not compared.
        now: Time of the round, ms. A round whose time is not certain is not added.
        lag: Sum of the lag.

    Returns:
        The samples for the next round, and the seconds until the lag is gone at the present pace: None if it does not
        shrink, or is not known for long enough.
    """
    # After longer than that without a round, only the pace of a time long past would be known.
    if not samples or samples[0] != partitions or not 0 <= now - samples[-2] < _SPAN_MS:
        return [partitions, now, lag], None
    while len(samples) > 3 and now - samples[3] >= _SPAN_MS:
        del samples[1:3]
    passed, lost = now - samples[1], samples[2] - lag
    if now - samples[-2] >= _STEP_MS:
        samples += (now, lag)
    if passed < _LEAST_MS or lost <= 0:
        return samples, None
    return samples, round(lag * passed / lost / 1000, 1)


def shifted(samples: list[int], by: int) -> list[int]:
    """The samples after all times so far have turned out wrong by so many ms."""
    return [n + by if at % 2 else n for at, n in enumerate(samples)]
