"""Rounds on a real broker whose answers come late: they close, and say how often they come."""

from __future__ import annotations

import logging
import time
from itertools import pairwise
from typing import Any

import pytest

from streaming.config import Settings, Thresholds
from streaming.events import decode_round
from streaming.probe import Probe
from streaming.probe.clients import Connections
from streaming.records import RoundClosed, RoundOpened
from tests.probe.witness import Cluster, read

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]

LATE_S = 0.5
"""How late each answer is: a round needs eight of them."""


class ImpatientProbe(Probe):
    """Gives a round up when no answer has come for less time than a round takes here."""

    LEAST_ROUND_S = 3.0


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Connections._send

    async def late(self: Connections, *asked: Any) -> Any:
        await self._manager._net.sleep(LATE_S)
        return await send(self, *asked)

    monkeypatch.setattr(Connections, "_send", late)


@pytest.mark.usefixtures("_slow")
def test_rounds_that_take_longer_than_any_answer_may_close_and_tell_their_interval(
    cluster: Cluster, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.commit("g", cluster.topic("orders", 1), [1])
    with caplog.at_level(logging.WARNING), ImpatientProbe(settings) as probe:
        took = []
        for _ in range(3):
            began = time.monotonic()
            probe.round()
            took.append(time.monotonic() - began)
    assert min(took) > ImpatientProbe.LEAST_ROUND_S
    assert sum("they come every" in record.getMessage() for record in caplog.records) == 1

    records = read(settings.kafka.bootstrap_servers, settings.probe.rounds_topic, 0, 0, 6)
    rounds = [(record.timestamp, decode_round(record.value)) for record in records]
    closed = [(at, each) for at, each in rounds if isinstance(each, RoundClosed)]
    opened = [each for _, each in rounds if isinstance(each, RoundOpened)]
    assert len(closed) == 3
    # The first round could not know; from then on every record says how long to wait.
    assert [each.interval_ms == settings.probe.interval_ms for each in opened] == [True, False, False]
    for (before, told), (after, _) in pairwise(closed):
        assert (after - before) / 1000 < Thresholds(silent_at_least_s=0).silent_after_s(told.interval_ms)
