"""A closed round, as the tests of this room make it."""

from __future__ import annotations

from typing import Any

from streaming.records import ClosedRound, RoundClosed

START = 1_767_225_600_000
SECOND = 1_000


def make_round(
    number: int, seconds: int, *, elapsed: int = 0, closed_time: int | None = None, **changes: Any
) -> ClosedRound:
    """A closed round so many seconds after the start; changes are of its closing record."""
    time = START + seconds * SECOND
    given: dict[str, Any] = {
        "v": 1,
        "cluster": "test",
        "probe": "probe-1",
        "interval_ms": 10 * SECOND,
        "round": number,
        "time": time,
        "log": (5,) * 50,
        "log_end": (6, *(5,) * 49),
        "events": {},
        "groups": 4,
        "written": 9,
        "cluster_id": "kafka-cluster-id",
    }
    closed = RoundClosed(**(given | changes))
    return ClosedRound(closed, number, number + 1, time + 350, elapsed, 1234)
