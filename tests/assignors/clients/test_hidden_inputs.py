from __future__ import annotations

from assignors import Library, topics_without_metadata


def test_a_kafka_python_leader_may_not_know_a_topic_be_it_its_own() -> None:
    assert topics_without_metadata(Library("kafka-python", (2, 3)), ("a", "b", "c")) == {"a", "b", "c"}


def test_every_other_leader_waits_for_them() -> None:
    for name in ("java", "librdkafka", "aiokafka", "sarama", "franz-go"):
        assert topics_without_metadata(Library(name), ("a", "b")) == frozenset()
