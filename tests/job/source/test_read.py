from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.errors import CorruptRecordError, KafkaConnectionError
from kafka.record.default_records import DefaultRecordBatch

from streaming.groups import GroupConfig, Rows, advance, encode_rows
from streaming.job.source.read import arrow_batches, task_rows
from streaming.job.source.settings import SourceSettings
from streaming.job.source.tasks import EventsShare, LogShare, SourceTask
from streaming.log_health import UnreadableState, advance_partition
from streaming.offsets_log import Compactor
from streaming.record_batches import FetchedBatch, FetchedRun, Gone, OffsetRange, columnar_records
from streaming.record_batches.batches import run_of
from streaming.records import (
    CommitWindow,
    Compacted,
    GroupObservation,
    LogGap,
    MembershipRecord,
    PartitionInput,
    QuarantinedRecord,
    decode_inputs,
    decode_partition_inputs,
    group_key,
    group_of,
    partition_key,
)
from streaming.tables import table_named, to_arrow
from tests.benchmarks.made_groups import group_value
from tests.examples import examples
from tests.job.source.fake_probe import commit_value
from tests.job.source.fake_reader import FakeReader, both
from tests.offsets_log import written
from tests.record_batches.encoded import forged, varint

SETTINGS = SourceSettings(cluster="test", kafka={}, offsets_topic="log", events_topic="events")


def read(reader: object, *shares: LogShare | EventsShare) -> list[tuple[str, bytes]]:
    log = tuple(share for share in shares if isinstance(share, LogShare))
    events = tuple(share for share in shares if isinstance(share, EventsShare))
    task = SourceTask(1, log, events, (("row", b"of the driver"),))
    rows = list(task_rows(task, SETTINGS, both(reader)))
    assert rows[0] == ("row", b"of the driver")
    return rows[1:]


def told(rows: list[tuple[str, bytes]], topic: str) -> list[PartitionInput]:
    key = partition_key(topic, 0)
    return [item for found, payload in rows if found == key for item in decode_partition_inputs(payload)]


def log_of(records: int) -> FakeReader:
    reader = FakeReader()
    for offset in range(records):
        reader.append("log", 0, commit_value(offset), written.offset_key("g", "t", offset % 3))
    return reader


def windows(rows: list[tuple[str, bytes]]) -> list[CommitWindow]:
    inputs = [item for key, payload in rows if key == group_key("g") for item in decode_inputs(payload)]
    return [item for item in inputs if isinstance(item, CommitWindow)]


def test_windows_are_parted_at_the_rounds_positions() -> None:
    rows = read(log_of(9), LogShare(0, 0, 9, known=True, boundaries=(6,)))
    assert sorted((w.partition, w.commits, w.last_record) for w in windows(rows)) == [
        (0, 1, 6),
        (0, 2, 3),
        (1, 1, 7),
        (1, 2, 4),
        (2, 1, 8),
        (2, 2, 5),
    ]


@pytest.mark.parametrize(("known", "gaps"), [(True, [(0, 4)]), (False, [])])
def test_deleted_records_are_a_gap_where_they_were_wanted(known: bool, gaps: list[tuple[int, int]]) -> None:
    reader = log_of(9)
    reader.deleted_below[TopicPartition("log", 0)] = 4
    rows = read(reader, LogShare(0, 0, 9, known, ()))
    assert [(g.from_offset, g.to_offset) for g in told(rows, "log") if isinstance(g, LogGap)] == gaps
    assert sum(window.commits for window in windows(rows)) == 5


@pytest.mark.parametrize(("known", "gaps"), [(True, [(2, 4)]), (False, [])])
def test_deleted_events_are_a_gap_once(known: bool, gaps: list[tuple[int, int]]) -> None:
    reader = FakeReader()
    for _ in range(6):
        reader.append("events", 0, b"junk")
    reader.deleted_below[TopicPartition("events", 0)] = 4
    rows = read(reader, EventsShare(0, 1 if known else 2, 2, 6, known, ()))
    inputs = told(rows, "events")
    assert [(g.from_offset, g.to_offset) for g in inputs if isinstance(g, LogGap)] == gaps
    assert [q.offset for q in inputs if isinstance(q, QuarantinedRecord)] == [4, 5]


class BrokenReader:
    """Returns one batch that breaks after its first record, and one whole batch."""

    def read(self, ranges: Iterable[OffsetRange]) -> Iterator[tuple[OffsetRange, FetchedBatch | Gone]]:
        (where,) = ranges
        good = log_of(5)
        batches = [batch for _, batch in good.read([OffsetRange("log", 0, 0, 5)]) if isinstance(batch, FetchedBatch)]

        def broken() -> Iterator[object]:
            yield from batches[0].records
            raise CorruptRecordError("its bytes end inside a record")

        yield where, FetchedBatch(0, 3, 7_000, broken())
        yield where, batches[4]

    read_runs = read


def test_a_batch_that_cannot_be_taken_apart_is_told_and_the_next_one_read() -> None:
    rows = read(BrokenReader(), LogShare(0, 0, 5, known=True, boundaries=()))
    assert sum(window.commits for window in windows(rows)) == 2
    (record,) = told(rows, "log")
    assert (record.offset, record.record_time) == (0, 7_000)
    assert "the record batch of offsets 0 to 3 cannot be taken apart" in record.reason


class _OneBatch:
    """A log of one batch."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_runs(self, ranges: Iterable[OffsetRange]) -> Iterator[tuple[OffsetRange, FetchedBatch]]:
        (where,) = ranges
        batch = DefaultRecordBatch(self._data)
        yield where, FetchedBatch(batch.base_offset, batch.last_offset, batch.max_timestamp, batch)

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 100)

    starts = ends


def junk_of_every_type() -> list[tuple[bytes, bytes]]:
    """A commit, a decision, records of modern groups, and one record that cannot be decoded."""
    members = written.group_value(
        3,
        [
            written.member(
                3,
                member_id="m",
                subscription=written.subscription(3, ["t"]),
                assignment=written.assignment(3, [("t", [0])]),
            )
        ],
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="m",
        timestamp=-(2**63),
    )
    return [
        (written.offset_key("g", "t", 0), written.offset_value(4, 5)),
        (written.group_key("g"), members),
        (written.offset_key("g", "t", 0), written.offset_value(4, 9)),
        (written.group_key("g"), members),
        *(
            (
                written.other_key(key_type, "modern", "m" if key_type in {5, 7, 8} else None),
                written.modern_value(key_type),
            )
            for key_type in (3, 5, 6, 7, 8)
        ),
        (written.offset_key("g", "t", 0), b"\0"),
    ]


# Base of the header and delta of a record; brokers accept the first pair as a record of today.
@pytest.mark.parametrize(
    ("base", "delta", "time"),
    [
        (-(2**63), 1_790_000_000_000 - 2**63, 1_790_000_000_000),
        (2**63 - 1, 1, -(2**63)),
        (2**63 - 1, 0, 2**63 - 1),
        (-(2**63), -1, 2**63 - 1),
    ],
)
def test_records_of_any_time_pass_through_to_rows_that_fit_their_tables(base: int, delta: int, time: int) -> None:
    records = junk_of_every_type()
    numbered = [(varint(delta), varint(n), key, value) for n, (key, value) in enumerate(records)]
    data = forged(numbered, base, last_delta=len(records) - 1)
    rows = read(_OneBatch(data), LogShare(0, 0, len(records), known=True, boundaries=()))
    (unreadable,) = told(rows, "log")
    assert (unreadable.offset, unreadable.record_time) == (len(records) - 1, time)
    assert {window.last_commit_time for window in windows(rows) if window.commits} == {time}
    made = [advance_partition(UnreadableState(), [unreadable], "c")[1]]
    for group, key_of_group in (("g", "t"), ("modern", None)):
        inputs = [item for key, payload in rows if key == group_key(group) for item in decode_inputs(payload)]
        assert len(inputs) > 3
        at_end = len(records)
        inputs += [GroupObservation(7, 1_790_000_000_000, 0, at_end, key_of_group, None, None, None, None, ())]
        made.append(advance(None, group, inputs, GroupConfig("c"))[1])
    for some in made:
        for table, found in zip(Rows.__struct_fields__, msgspec.msgpack.decode(encode_rows(some)), strict=True):
            assert to_arrow(table_named(table), found).num_rows == len(found)
    assert {row.record_time for row in made[0].quarantine} == {time}
    assert {row.record_time for row in made[1].rebalance_churn} == {time}


class _Run(_OneBatch):
    """The same as a run of batches."""

    def read_runs(self, ranges: Iterable[OffsetRange]) -> Iterator[tuple[OffsetRange, FetchedRun]]:  # type: ignore[override]
        (where,) = ranges
        yield where, run_of(memoryview(self._data), np.array([0, len(self._data)]))


@pytest.mark.parametrize("reader", [_OneBatch, _Run])
def test_records_of_one_batch_are_handed_over_when_they_are_many_bytes(
    reader: type[_OneBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    class Counted(Compactor):
        def __init__(self, *given: Any) -> None:
            made.append(len(made))
            super().__init__(*given)

    monkeypatch.setattr(columnar_records, "_FEW_RECORDS", 0)
    monkeypatch.setattr("streaming.job.source.read.Compactor", Counted)
    monkeypatch.setattr("streaming.job.source.read._HELD_BYTES", 1)
    value = written.group_value(3, [written.member(3, subscription=bytes(300_000))])
    data = forged([(varint(0), varint(n), written.group_key("g"), value) for n in range(12)], last_delta=11)
    rows = read(reader(data), LogShare(0, 0, 12, known=True, boundaries=()))
    inputs = [item for key, payload in rows if key == group_key("g") for item in decode_inputs(payload)]
    assert [item.record for item in inputs if isinstance(item, MembershipRecord)] == list(range(12))
    # 3.6 MB, weighed after each megabyte.
    assert len(made) >= 3


def test_filters_are_applied() -> None:
    settings = SETTINGS.model_copy(update={"filters": SETTINGS.filters.model_copy(update={"ignore_groups": ("g",)})})
    task = SourceTask(1, (LogShare(0, 0, 9, known=True, boundaries=()),), (), ())
    assert list(task_rows(task, settings, both(log_of(9)))) == []


def test_a_group_of_many_inputs_comes_in_several_rows() -> None:
    reader = FakeReader()
    for partition in range(12_000):
        reader.append("log", 0, commit_value(1), written.offset_key("g", "t" * 100, partition))
    rows = read(reader, LogShare(0, 0, 12_000, known=True, boundaries=()))
    assert max(len(payload) for _, payload in rows) < 600_000
    assert [group_of(key) for key, _ in rows] == ["g"] * 3
    assert len({window.partition for window in windows(rows)}) == 12_000


def test_arrow_batches_are_bounded() -> None:
    rows = [("key", b"x" * 1_000_000)] * 20
    sizes = [batch.num_rows for batch in arrow_batches(iter(rows))]
    assert sum(sizes) == 20
    assert max(sizes) == 9
    assert list(arrow_batches(iter([]))) == []


def cleaned_log() -> FakeReader:
    """Cleaned below 5: offsets 0 and 1 are gone; 5 has the same key as 2, so it cannot have been cleaned."""
    reader = FakeReader()
    for offset, (group, partition) in enumerate([("g", 0), ("g", 1), ("h", 0), ("g", 0), ("g", 1), ("h", 0), ("g", 0)]):
        reader.append("log", 0, commit_value(offset), written.offset_key(group, "t", partition))
    reader.compact("log", {0: 5}, tombstones=True)
    return reader


def stretches(rows: list[tuple[str, bytes]]) -> dict[str | None, list[Compacted]]:
    found: dict[str | None, list[Compacted]] = defaultdict(list)
    for key, payload in rows:
        inputs = decode_inputs(payload) if group_of(key) else []
        for item in inputs:
            if isinstance(item, Compacted):
                found[group_of(key)].append(item)
    return dict(found)


@pytest.mark.parametrize("end", [1, 2, 4, 6, 7])
def test_the_groups_in_a_compacted_stretch_are_told_wherever_the_share_ends(end: int) -> None:
    rows = read(cleaned_log(), LogShare(0, 0, end, known=False, boundaries=()))
    assert stretches(rows) == {"g": [Compacted(0, 5)], "h": [Compacted(0, 3)]}


def test_a_share_behind_a_compacted_stretch_tells_none() -> None:
    assert stretches(read(cleaned_log(), LogShare(0, 2, 7, known=True, boundaries=()))) == {}


class _AwayBehindTheShare(FakeReader):
    """The brokers do not answer requests for the log's end, except from `read_runs`, which waits for them."""

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:  # noqa: ARG002
        raise KafkaConnectionError


def test_brokers_that_are_away_while_the_end_of_a_stretch_is_looked_for_are_waited_for() -> None:
    reader = _AwayBehindTheShare()
    vars(reader).update(vars(cleaned_log()))
    assert stretches(read(reader, LogShare(0, 0, 2, known=False, boundaries=())))["g"] == [Compacted(0, 5)]


def in_another_process(reader: FakeReader) -> FakeReader:
    """The same topics for a reader that has read nothing of them yet."""
    other = FakeReader()
    vars(other).update(vars(reader))
    return other


def test_the_rest_of_a_compacted_stretch_is_read_once_and_not_by_every_batch() -> None:
    reader = FakeReader()
    for number in range(1_000):
        reader.append("log", 0, commit_value(number), written.offset_key("g", "t", number // 2))
    for number in (1, 1):
        reader.append("log", 0, commit_value(number), written.offset_key("h", "t", number))
    reader.compact("log", {0: 1_000}, tombstones=True)
    for start in range(0, 1_000, 10):
        rows = read(reader, LogShare(0, start, start + 10, known=True, boundaries=()))
        assert stretches(rows)["g"] == [Compacted(start, 1_000)]
    # The share, a record that shows that the end has not moved, and once the rest.
    assert reader.handed_on["log"] == 500 + 99 + 497


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_what_is_kept_of_where_a_stretch_ends_changes_no_answer(data: st.DataObject) -> None:
    reader = FakeReader()
    keys = data.draw(
        st.lists(st.sampled_from(["a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1"]), min_size=8, max_size=40)
    )
    for offset, (group, partition) in enumerate(keys):
        reader.append("log", 0, commit_value(offset), written.offset_key(group, "t", int(partition)))
    cleaned = start = 0
    while start < len(keys):
        # The log may be cleaned further at any time.
        cleaned = data.draw(st.integers(cleaned, len(keys)) if data.draw(st.booleans()) else st.just(cleaned))
        reader.compact("log", {0: cleaned}, tombstones=True)
        end = data.draw(st.integers(start + 1, min(len(keys), start + 6)))
        share = LogShare(0, start, end, known=True, boundaries=())
        assert stretches(read(reader, share)) == stretches(read(in_another_process(reader), share))
        start = end


def test_what_a_task_hands_over_in_parts_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = FakeReader()
    for number in range(60):
        reader.append(
            "log", 0, commit_value(100 - number if number == 40 else number), written.offset_key("g", "t", number % 3)
        )
        if number % 25 == 10:
            generation = group_value(number, "range", 0, ["t"], {"m": {"t": [0, 1, 2]}})
            reader.append("log", 0, generation, written.group_key("g"))
        if number % 13 == 5:
            reader.append("log", 0, b"\x00\x04", written.offset_key("g", "t", 1))
    share = LogShare(0, 0, 65, known=True, boundaries=(20, 50))
    whole = read(reader, share)
    monkeypatch.setattr("streaming.job.source.read._HELD_BYTES", 4_000)
    parts = read(reader, share)

    def answer(rows: list[tuple[str, bytes]]) -> tuple[Rows, list[PartitionInput]]:
        inputs = [item for key, payload in rows if key == group_key("g") for item in decode_inputs(payload)]
        inputs += [GroupObservation(at, 1_000 * at, 0, at, None, None, None, None, None, ()) for at in (20, 50, 65)]
        return advance(None, "g", inputs, GroupConfig("c"))[1], told(rows, "log")

    assert len(parts) > len(whole) + 3
    assert answer(parts) == answer(whole)
    assert {row.generation for row in answer(whole)[0].rebalance_churn} == {10, 35}


def test_a_stretch_that_is_read_while_the_cleaner_is_at_work_can_seem_to_end_too_early() -> None:
    # The case that docs/verdicts.md calls undetectable. In two segments, offsets 0 to 2 and 3 to 7, the commits of g at
    # 0 and 4 are replaced by 7, and those of h and i in between by later ones.
    def log() -> FakeReader:
        reader = FakeReader()
        keys = [("g", 0), ("h", 0), ("i", 0), ("h", 0), ("g", 0), ("h", 0), ("i", 0), ("g", 0), ("j", 0), ("j", 0)]
        for offset, (group, partition) in enumerate(keys):
            reader.append("log", 0, commit_value(offset), written.offset_key(group, "t", partition))
        return reader

    share = LogShare(0, 0, 10, known=False, boundaries=())
    at_work, done = log(), log()
    at_work.clean_in_front("log", 0, end=8, replaced=3)
    done.compact("log", {0: 8}, tombstones=True)
    early, late = read(at_work, share), read(done, share)
    # The second segment still has h twice, so the cleaner cannot have processed both, but it is under way.
    assert stretches(early) == {"h": [Compacted(0, 4)], "g": [Compacted(0, 5)]}
    ends = {"h": 6, "i": 7, "g": 8, "j": 9}
    assert stretches(late) == {group: [Compacted(0, end)] for group, end in ends.items()}
    # The present state is the same.
    newest = [max(w.last_record for w in windows(rows)) for rows in (early, late)]
    assert newest == [7, 7]
