from __future__ import annotations

from assignors import Group, Library, Subscription, topics_without_metadata, with_hidden_inputs


def test_a_kafka_python_leader_may_not_know_a_topic_be_it_its_own() -> None:
    assert topics_without_metadata(Library("kafka-python", (2, 3)), ("a", "b", "c")) == {"a", "b", "c"}


def test_every_other_leader_waits_for_them() -> None:
    for name in ("java", "librdkafka", "aiokafka", "sarama", "franz-go"):
        assert topics_without_metadata(Library(name), ("a", "b")) == frozenset()


def test_a_java_leader_may_remember_a_generation_as_high_as_a_record_can_hold() -> None:
    group = Group((Subscription("a", ("t",)),), {"t": 1})
    ((seen, reason),) = with_hidden_inputs("sticky", group, Library("java", (3, 0)))
    assert seen.remembered_generation == 2_147_483_647  # the largest int32
    assert reason is not None
    assert list(with_hidden_inputs("sticky", group, Library("java", (2, 8)))) == []
