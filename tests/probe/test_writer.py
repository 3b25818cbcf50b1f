"""What `RoundWriter` writes, with a producer that only collects."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from streaming.config import KafkaSettings, ProbeSettings
from streaming.events import MAX_RECORD_BYTES, GroupEvent, RocketMQGroupEvent, decode_event
from streaming.probe.deadline import Deadline
from streaming.probe.writer import Opened, RoundWriter
from streaming.records import OK, GroupObservation, MemberSeen, QueuesSeen, RocketMQObservation, TopicSeen
from tests.probe.kafka.build import topic


@dataclass
class CollectingProducer:
    """Takes what Kafka's own producer would: records up to its `max_request_size`."""

    records: list[tuple[bytes, bytes]] = field(default_factory=list)

    def send(self, topic: str, value: bytes, key: bytes, timestamp_ms: int) -> SimpleNamespace:  # noqa: ARG002
        assert len(key) + len(value) < MAX_RECORD_BYTES - 1_000
        self.records.append((key, value))
        record = SimpleNamespace(partition=0, offset=len(self.records) - 1)
        return SimpleNamespace(is_done=True, get=lambda _: record)

    def flush(self, seconds: float) -> None:
        """Everything is written already."""


def group_event(group: str, partitions: int) -> GroupEvent:
    seen = GroupObservation(
        7, 1_000, 0, 5, "Stable", "consumer", "classic", None, None, (topic("t", [9] * partitions),)
    )
    return GroupEvent(1, "prod", group, seen)


def test_a_group_that_no_record_can_hold_loses_its_topics_and_the_others_keep_theirs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    producer = CollectingProducer()
    monkeypatch.setattr("streaming.probe.writer.open_producer", lambda _: producer)
    writer = RoundWriter("prod", ProbeSettings(), KafkaSettings(), "probe-1")
    events = [group_event("g" * 32_000, 1_048_000), group_event("orders", 2)]
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            written = writer.write(Opened(7, 1_000), events, Deadline.after(5))
    assert (written.groups, written.events, written.positions) == (2, 2, {"0": (2, 4)})
    large, small = (decode_event(value) for _, value in producer.records[2:])
    assert isinstance(large, GroupEvent)
    assert (large.saw.state, large.saw.topics) == ("Stable", ())
    assert small == events[1]
    [warning] = caplog.messages
    assert "too many partitions for one record (33 MB)" in warning


@pytest.mark.parametrize(
    ("queues", "cut", "topics"), [(120_000, ("queues",), 12), (5, ("members", "topics"), 0)], ids=["queues", "topics"]
)
def test_a_rocketmq_group_that_no_record_can_hold_is_cut_and_says_so(
    monkeypatch: pytest.MonkeyPatch, queues: int, cut: tuple[str, ...], topics: int
) -> None:
    producer = CollectingProducer()
    monkeypatch.setattr("streaming.probe.writer.open_producer", lambda _: producer)
    writer = RoundWriter("prod", ProbeSettings(), KafkaSettings(), "probe-1")
    of_broker = QueuesSeen("broker-a", OK, *[tuple(range(10**15, 10**15 + queues))] * 3)
    name = "t" if topics else "t" * 3_000_000
    seen = [TopicSeen(f"{name}{number}", (), (of_broker,)) for number in range(12)]
    saw = RocketMQObservation(7, 1_000, None, (), (MemberSeen("m@1", OK),), tuple(seen))
    writer.write(Opened(7, 1_000), [RocketMQGroupEvent(1, "prod", "orders", saw)], Deadline.after(5))
    [(_, value)] = producer.records
    event = decode_event(value)
    assert isinstance(event, RocketMQGroupEvent)
    assert (event.saw.cut, len(event.saw.topics)) == (cut, topics)
