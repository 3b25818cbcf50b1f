from __future__ import annotations

from assignors import Library, topics_without_metadata


def test_a_kafka_python_leader_may_not_know_the_other_members_topics() -> None:
    found = topics_without_metadata(Library("kafka-python", (2, 3)), ("a",), ("a", "b", "c"))

    assert found == {"b", "c"}


def test_every_other_leader_waits_for_them() -> None:
    for name in ("java", "librdkafka", "aiokafka", "sarama", "franz-go"):
        assert topics_without_metadata(Library(name), ("a",), ("a", "b")) == frozenset()
