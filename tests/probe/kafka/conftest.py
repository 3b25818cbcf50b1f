"""Heads of rounds."""

from __future__ import annotations

import pytest

from streaming.config import Filters
from streaming.probe.kafka.cluster import KafkaCluster
from streaming.probe.kafka.holds import BlockedPartition
from streaming.probe.kafka.look import RoundHead
from tests.probe.kafka.build import LOG, Answers, MakeCluster, MakeHead


@pytest.fixture
def make_head() -> MakeHead:
    def make(
        number: int = 7, time: int = 1_000, holds: tuple[BlockedPartition | None, ...] = (None, None, None)
    ) -> RoundHead:
        return RoundHead("prod", "kafka-id", number, time, LOG, holds)

    return make


@pytest.fixture
def make_cluster(monkeypatch: pytest.MonkeyPatch) -> MakeCluster:
    def make(answers: Answers, filters: Filters | None = None, *, reads_log: bool = True) -> KafkaCluster:
        monkeypatch.setattr("streaming.probe.kafka.cluster.Requests", lambda _: answers)
        return KafkaCluster(object(), "__consumer_offsets", filters or Filters(), reads_log=reads_log)

    return make
