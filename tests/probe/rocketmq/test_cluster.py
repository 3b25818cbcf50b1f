"""What the log says of servers that cannot be asked."""

from __future__ import annotations

import pytest

from streaming.config import Filters
from streaming.demo.ports import free_port
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.rocketmq import Client

HOUR = 3_600_000


def test_a_server_that_cannot_be_asked_is_named_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    address = f"127.0.0.1:{free_port()}"
    said = []
    with Client() as client:
        cluster = RocketMQCluster(client, [address], Filters())
        for time in (0, 10_000, HOUR - 1, HOUR, HOUR + 10_000, 5_000):  # (The last clock goes back.)
            caplog.clear()
            with pytest.raises(RoundAbandonedError):
                cluster.observe_groups([], frozenset(), time, Deadline.after(30))
            said.append([record.getMessage() for record in caplog.records])
    named = [f"{address} cannot be asked: connection refused."]
    assert said == [named, [], [], named, [], named]
