"""What is read of the rounds topic, however old and however full of others it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndTimestamp

from streaming.config import ProbeSettings, Settings
from streaming.events import encode
from streaming.probe.deadline import Deadline
from streaming.probe.standby import Tail, tail
from streaming.records import Round, RoundOpened

PLACE = TopicPartition("evenkeel.rounds", 0)


class Record(msgspec.Struct, frozen=True):
    offset: int
    timestamp: int
    value: bytes | None


class Topic:
    """A consumer of the rounds topic; counts the records that it hands out."""

    def __init__(self, records: Iterable[tuple[int, bytes | None]], first: int = 0) -> None:
        self._records = [Record(first + n, time, value) for n, (time, value) in enumerate(records)]
        self._first, self._at, self.handed_out = first, first, 0

    def beginning_offsets(self, _: object, timeout_ms: int) -> dict[TopicPartition, int]:
        assert 0 < timeout_ms <= 5_000
        return {PLACE: self._first}

    def end_offsets(self, _: object, timeout_ms: int) -> dict[TopicPartition, int]:
        assert 0 < timeout_ms <= 5_000
        return {PLACE: self._first + len(self._records)}

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        assert 0 < timeout_ms <= 5_000
        found = next((each for each in self._records if each.timestamp >= times[PLACE]), None)
        return {PLACE: None if found is None else OffsetAndTimestamp(found.offset, found.timestamp, None)}

    def assign(self, _: object) -> None:
        pass

    def seek(self, _: object, offset: int) -> None:
        self._at = offset

    def position(self, _: object) -> int:
        return self._at

    def poll(self, **_: int) -> dict[TopicPartition, list[Record]]:
        begin = self._at - self._first
        found = self._records[begin : begin + 500]
        self._at += len(found)
        self.handed_out += len(found)
        return {PLACE: found}

    def close(self) -> None:
        pass


def opened(cluster: str = "prod", probe: str = "p") -> bytes:
    record: Round = RoundOpened(1, cluster, probe, 10_000)
    return encode(record)


def tail_of(monkeypatch: pytest.MonkeyPatch, topic: Topic) -> Tail:
    monkeypatch.setattr(tail, "open_consumer", lambda _: topic)
    return Tail(Settings(cluster="prod", probe=ProbeSettings()))


def test_of_a_year_of_rounds_only_the_last_minutes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic((10_000 * n, opened()) for n in range(60_000))
    newest = tail_of(monkeypatch, topic).newest(100_000, Deadline.after(60))
    assert [seen.offset for seen in newest.records] == list(range(59_989, 60_000))
    assert (newest.time, newest.end) == (10_000 * 59_999, 60_000)
    assert topic.handed_out <= 2 * 500


def test_of_many_records_in_a_moment_only_the_newest_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic((7, opened()) for _ in range(30_000))
    newest = tail_of(monkeypatch, topic).newest(100_000, Deadline.after(60))
    assert len(newest.records) == tail.MOST_RECORDS


def test_records_of_other_clusters_and_of_nobody_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [opened(), opened("another"), None, b"\xff\x00", b"[" * 9_000, b'{"type":"new","v":1}', opened()]
    newest = tail_of(monkeypatch, Topic((5, value) for value in values)).newest(100_000, Deadline.after(60))
    assert [seen.offset for seen in newest.records] == [0, 6]


def test_a_topic_without_records_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = tail_of(monkeypatch, Topic((), first=40)).newest(100_000, Deadline.after(60))
    assert (newest.records, newest.time, newest.end) == ((), None, 40)


def test_what_retention_has_taken_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(((5, opened()) for _ in range(10)), first=40)
    found = tail_of(monkeypatch, topic).read(0, 45, Deadline.after(60))
    assert [seen.offset for seen in found] == [40, 41, 42, 43, 44]
