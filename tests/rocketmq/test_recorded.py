"""Answers of real clusters of older and newer releases (`record.py`), read by the same code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assignors.rocketmq import MessageQueue, allocate_all
from streaming.config import Filters
from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.rocketmq import decode_line
from tests.rocketmq.recorded import Recorded

_DATA = sorted(Path(__file__).with_name("data").glob("*.jsonl"))
_IDS = [path.stem for path in _DATA]


@pytest.mark.parametrize("path", _DATA, ids=_IDS)
def test_a_round_of_a_recorded_cluster_shows_members_strategies_and_queues(path: Path) -> None:
    with Recorded(path) as client:
        look = RocketMQCluster(client, ["127.0.0.1:9876"], Filters()).observe_groups(
            [], frozenset(), 1_000, Deadline.after(60)
        )
    assert (list(look.groups), look.whole) == (["checkout"], True)
    seen = look.groups["checkout"]
    ids = tuple(f"10.0.0.{number}@{number}" for number in (1, 2, 3))
    release = f"V{path.stem.replace('.', '_')}"
    assert [(broker.name, broker.clients) for broker in seen.brokers] == [("broker-a", ids), ("broker-b", ids)]
    expected = allocate_all(
        "AVG", [MessageQueue("orders", f"broker-{name}", queue) for name in "ab" for queue in range(4)], ids
    )
    for member in seen.members:
        assert (member.answer, member.language, member.version) == ("ok", "JAVA", release)
        assert (member.consume_type, member.message_model, member.orderly) == ("push", "CLUSTERING", False)
        assert member.strategy == "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
        held = [(one.topic, one.broker, one.queue) for one in member.queues or () if one.topic == "orders"]
        assert held == list(map(tuple, expected[member.client_id]))  # type: ignore[arg-type]
    topics = {one.topic: one for one in seen.topics}
    assert sorted(topics) == ["%RETRY%checkout", "orders"]
    assert [(queues.broker, queues.max) for queues in topics["orders"].queues] == [
        ("broker-a", (3, 3, 3, 3)),
        ("broker-b", (3, 3, 3, 3)),
    ]
    assert seen.cut == ()


@pytest.mark.parametrize("path", _DATA, ids=_IDS)
def test_every_recorded_frame_prints_with_its_body_as_json(path: Path) -> None:
    for line in path.read_text(encoding="ascii").splitlines():
        assert isinstance(decode_line(json.loads(line))["body"], dict)
