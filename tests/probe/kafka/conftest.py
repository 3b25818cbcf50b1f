"""Heads of rounds."""

from __future__ import annotations

import pytest

from streaming.probe.kafka.holds import BlockedPartition
from streaming.probe.kafka.look import RoundHead
from tests.probe.kafka.build import LOG, MakeHead


@pytest.fixture
def make_head() -> MakeHead:
    def make(
        number: int = 7, time: int = 1_000, holds: tuple[BlockedPartition | None, ...] = (None, None, None)
    ) -> RoundHead:
        return RoundHead("prod", "kafka-id", number, time, LOG, holds)

    return make
