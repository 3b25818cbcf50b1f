"""What the probe could not decode of other topics, on its way to `quarantine`."""

from __future__ import annotations

from msgspec.structs import replace

from streaming.job.source.plan import Batch
from streaming.job.source.positions import Positions
from streaming.job.source.tasks import ready_rows
from streaming.log_health import UnreadableState, advance_partition
from streaming.offsets_log import LogRecord, UnreadableRecords, Windows
from streaming.records import ClosedRound, decode_partition_inputs, partition_key
from tests.job.source.made_rounds import LOG, closed

TOPIC = "__share_group_state"


def closing(number: int, *offsets: int) -> ClosedRound:
    """A closed round whose probe could not decode these records of a partition."""
    unreadable = UnreadableRecords(3, Windows(), TOPIC)
    for offset in offsets:
        unreadable.reject(LogRecord(offset, 1_767_225_600_000, b"\0\0", b"junk"), "not a record")
    record = replace(closed(number, LOG), unreadable=tuple(unreadable.inputs()))
    return ClosedRound(record, number, number + 1, 2_000, number * 1_000, 0)


def test_each_record_that_the_probe_told_has_its_row_once() -> None:
    state, rows = UnreadableState(), []
    for rounds in ((closing(7, 40, 41), closing(9)), (closing(11, 50),)):
        for key, payload in ready_rows("rounds", Positions(), Batch(Positions(), rounds), None):
            if key == partition_key(TOPIC, 3):
                state, found = advance_partition(state, decode_partition_inputs(payload), "test")
                rows += found.quarantine
    assert [(row.topic, row.partition, row.record_offset, row.reason, row.value) for row in rows] == [
        (TOPIC, 3, offset, "not a record", b"junk") for offset in (40, 41, 50)
    ]
