"""What the schema of events and rounds takes, and what no probe can have written: by the bytes of records."""

from __future__ import annotations

import json

import pytest

from streaming.events import LogHold, Rejected, RoundClosed, decode_round

CLOSED: dict[str, object] = {
    "type": "closed",
    "v": 1,
    "cluster": "prod",
    "probe": "p",
    "interval_ms": 10_000,
    "round": 6,
    "time": 1_767_225_600_000,
    "log": [5, 7],
    "log_end": [5, 9],
    "events": {"0": [3, 8]},
    "groups": 2,
    "written": 5,
    "holds": [{"partition": 1, "since": 1_767_225_500_000, "groups": 2}],
    "resting": {"0": [3, 4]},
}


def record(**changes: object) -> bytes:
    return json.dumps(CLOSED | changes).encode()


def test_a_closing_record_is_read() -> None:
    closed = decode_round(record())
    assert isinstance(closed, RoundClosed)
    assert (closed.log, closed.log_end) == ((5, 7), (5, 9))
    assert closed.holds == (LogHold(1, 1_767_225_500_000, 2),)
    assert closed.resting == {"0": (3, 4)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"log": [5]}, "positions of 1 and ends of 2 log partitions"),
        ({"log": [5, 2**63]}, "a negative or impossible log position"),
        ({"log_end": [5, 2**70]}, "a negative or impossible log position"),
        ({"log_end": [5, -1]}, "a negative or impossible log position"),
        # What it holds back would be nothing, or less.
        ({"log_end": [5, 7]}, "a hold of log partition 1, which nothing holds back"),
        ({"log_end": [5, 3]}, "a hold of log partition 1, which nothing holds back"),
        ({"holds": [{"partition": 2, "since": 1, "groups": 2}]}, "a hold of log partition 2 with 2 groups"),
        ({"events": {"0": [8, 3]}}, "event positions 8 to 3 of partition '0'"),
        ({"events": {"9" * 5_000: [0, 1]}}, f"event positions 0 to 1 of partition '{'9' * 20}'"),
        ({"resting": {"0": [0, 2**70]}}, f"event positions 0 to {2**70} of partition '0'"),
        ({"resting": {"x": [0, 1]}}, "event positions 0 to 1 of partition 'x'"),
        ({"resting": {"-1": [0, 1]}}, "event positions 0 to 1 of partition '-1'"),
        ({"resting": {"1000000": [0, 1]}}, "event positions 0 to 1 of partition '1000000'"),
        # Python refuses to make a number of so many digits.
        ({"resting": {"9" * 5_000: [0, 1]}}, f"event positions 0 to 1 of partition '{'9' * 20}'"),
    ],
)
def test_a_closing_record_that_no_probe_can_have_written_is_rejected_with_its_reason(
    changes: dict[str, object], reason: str
) -> None:
    assert decode_round(record(**changes)) == Rejected(reason)
