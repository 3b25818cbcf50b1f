"""Unreadable records that are counted while no round closes: from the shares of a batch to the rows of the operator."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest

from streaming.groups import GroupConfig, QuarantineRow
from streaming.job.operator import PackedState, advance_key
from streaming.job.source.positions import INITIAL
from streaming.job.source.tasks import SourceTask
from streaming.offsets_log import LogRecord, UnreadableRecords
from streaming.records import partition_key, rows_of
from tests.job.source.world import World

_KEY = partition_key("log", 0)


def _quarantined(batches: Iterable[list[SourceTask]], junk: range) -> list[QuarantineRow]:
    """The rows of log partition 0, whose records at these offsets are of an unknown type."""
    state: PackedState | None = None
    rows: list[QuarantineRow] = []
    for tasks in batches:
        payloads = [payload for task in tasks for key, payload in task.rows if key == _KEY]
        for share in (share for task in tasks for share in task.log if share.partition == 0):
            assert share.windows is not None
            found = UnreadableRecords(0, share.windows, "log")
            for offset in range(max(share.start, junk.start), min(share.end, junk.stop)):
                found.unknown(LogRecord(offset, 1_000_000, b"k", b"v"), "99/0", "type 99 is not known")
            payloads += [payload for _, payload in rows_of(_KEY, found.inputs())]
        if payloads:
            state, more = advance_key(_KEY, payloads, state, GroupConfig(cluster="main"))
            rows += more.quarantine
    return rows


def _read(junk: range, *, silence: bool) -> list[QuarantineRow]:
    """Two rounds with 20 records between them; with silence, 10 of these are read by a batch without rounds."""
    world = World()
    world.round()
    ends = [INITIAL, world.planner.latest(INITIAL, None)]
    world.log(0, 10)
    if silence:
        world.now = 31.0
        ends.append(world.planner.latest(ends[-1], None))
    world.log(0, 10)
    for _ in range(2):
        world.round()
        ends.append(world.planner.latest(ends[-1], None))
    # (As after a restart, which plans the same.)
    planner = world.restart()
    return _quarantined([planner.tasks(*pair) for pair in pairwise(ends)], junk)


@pytest.mark.parametrize("junk", [range(1, 6), range(8, 14), range(12, 15)], ids=["before", "across", "after"])
def test_what_was_counted_before_a_batch_without_rounds_is_told_as_if_there_had_been_none(junk: range) -> None:
    uncut = _read(junk, silence=False)
    assert [(row.record_offset, row.records, row.last_record_offset) for row in uncut] == [
        (junk.start, len(junk), junk.stop - 1)
    ]
    assert _read(junk, silence=True) == uncut


def test_ends_are_sent_once_to_each_partition_that_may_have_been_read() -> None:
    world = World()
    world.round()
    start = world.planner.latest(INITIAL, None)
    world.log(0, 3)
    world.now = 31.0
    middle = world.planner.latest(start, None)
    world.round()
    end = world.planner.latest(middle, None)
    world.round()
    last = world.planner.latest(end, None)
    batches = [world.planner.tasks(*pair) for pair in ((start, middle), (middle, end), (end, last))]
    told = [sorted(key for task in tasks for key, _ in task.rows if key.startswith("p:")) for tasks in batches]
    assert told == [[], [partition_key("log", 0), partition_key("log", 1), partition_key("rounds", 0)], []]
