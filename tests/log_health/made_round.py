"""A closed round, as the tests of this room make it."""

from __future__ import annotations

from streaming.records import ClosedRound

START = 1_767_225_600_000
SECOND = 1_000


def make_round(number: int, seconds: int, **changes: object) -> ClosedRound:
    fields: dict[str, object] = {
        "round": number,
        "time": START + seconds * SECOND,
        "closed_time": START + seconds * SECOND + 350,
        "interval_ms": 10 * SECOND,
        "probe": "probe-1",
        "cluster_id": "kafka-cluster-id",
        "groups": 4,
        "events": 9,
        "log_partitions": 50,
        "held_partitions": 1,
        "log_records": 1234,
    }
    return ClosedRound(**(fields | changes))  # type: ignore[arg-type]
