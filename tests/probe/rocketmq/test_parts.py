"""What servers of RocketMQ answer, as parts of an event."""

from __future__ import annotations

import json
from typing import Any

from streaming.probe.rocketmq import parts
from streaming.records import RouteBroker
from streaming.rocketmq import Frame, codes


def _route(*queues: tuple[str, int]) -> Frame:
    data: dict[str, Any] = {
        "brokerDatas": [{"brokerName": name, "brokerAddrs": {"0": "127.0.0.1:1"}} for name, _ in queues],
        "queueDatas": [
            {"brokerName": name, "readQueueNums": count, "writeQueueNums": 4, "perm": 6} for name, count in queues
        ],
    }
    return Frame(codes.SUCCESS, 1, body=json.dumps(data).encode())


def test_a_broker_with_an_impossible_number_of_queues_hides_no_other() -> None:
    cut: set[str] = set()
    seen = parts.route_seen("n:1", _route(("forged", 2**40), ("broker-a", 4), ("broker-b", 8)), cut)
    assert seen.brokers == (RouteBroker("broker-a", 4, 4, 6, True), RouteBroker("broker-b", 8, 4, 6, True))
    assert cut == {"topics"}


def test_brokers_beyond_the_most_queues_of_a_topic_are_left_out_and_those_that_fit_stay() -> None:
    cut: set[str] = set()
    most = parts.MOST_QUEUES_OF_TOPIC
    each = parts.MOST_QUEUES
    named = [(f"broker-{number:02}", each) for number in range(most // each)]
    seen = parts.route_seen("n:1", _route(*named, ("one-too-many", 1)), cut)
    assert [broker.name for broker in seen.brokers] == [name for name, _ in named]
    assert cut == {"topics"}
