"""A consumer is asked for offsets with a limit, and a partition without a leader has a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher, OffsetSpec
from kafka.errors import KafkaError
from kafka.structs import OffsetAndTimestamp

from streaming.record_batches import ask_offsets

PLACES = [TopicPartition("evenkeel.events", partition) for partition in range(3)]


class Leaders:
    """kafka-python's own question for ends, with the answers of the leaders that there are."""

    def __init__(self, ends: Mapping[int, int]) -> None:
        self._ends = ends
        self.limits: list[int] = []

    def end_offsets(self, places: Sequence[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
        self.limits.append(timeout_ms)
        answers = {PLACES[partition]: OffsetAndTimestamp(end, -1, -1) for partition, end in self._ends.items()}
        asked = SimpleNamespace(_net=SimpleNamespace(run=lambda *_: answers), _fetch_offsets_by_times_async=None)
        found: dict[TopicPartition, int] = Fetcher.beginning_or_end_offset(asked, places, OffsetSpec.LATEST)
        return found


def test_an_offset_of_each_partition_is_asked_for_with_the_limit() -> None:
    leaders = Leaders({0: 5, 1: 6, 2: 7})
    assert ask_offsets(leaders.end_offsets, PLACES, 250) == dict(zip(PLACES, (5, 6, 7), strict=True))
    assert leaders.limits == [250]


def test_for_no_partition_nobody_is_asked() -> None:
    leaders = Leaders({})
    assert ask_offsets(leaders.end_offsets, [], 250) == {}
    assert leaders.limits == []


def test_a_partition_without_a_leader_is_named_in_an_error_of_kafkas() -> None:
    with pytest.raises(KafkaError, match=r"partition 1 of evenkeel\.events has no leader at the moment"):
        ask_offsets(Leaders({0: 5, 2: 7}).end_offsets, PLACES, 250)
