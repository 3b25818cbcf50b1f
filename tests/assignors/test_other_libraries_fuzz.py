"""kafka-python's own classes, and the plain rules of librdkafka, franz-go, sarama and aiokafka, compared with ours.

2,000 groups for each class and each rule; the environment variable CASES sets another number for the classes (20,000
in `make test-all`, a million in `make fuzz`), and 3,000 for the rules.
"""

from __future__ import annotations

import os
from random import Random
from types import SimpleNamespace

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from assignors import Assignment, CannotTell, Group, LeaderWouldFail, assign, from_topics, same
from tests.assignors.plain_rules import (
    franz_go_compare,
    goes_in_circles,
    librdkafka_compare,
    member_id_compare,
    plain_range,
    plain_roundrobin,
)
from tests.assignors.random_groups import random_group

CASES = int(os.environ.get("CASES", "2000"))


def kafka_python(assignor: type, group: Group) -> Assignment | Exception:
    """The result of an assignor class of the installed kafka-python, or its exception."""

    class Cluster:
        @staticmethod
        def partitions_for_topic(topic: str) -> set[int] | None:
            count = group.partitions_per_topic.get(topic)
            return set(range(count)) if count else None

    members = [
        SimpleNamespace(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=SimpleNamespace(topics=list(member.topics)),
        )
        for member in group.members
    ]
    try:
        made = assignor.assign(Cluster(), members)
    except Exception as error:  # noqa: BLE001 (any exception is a result)
        return error
    return from_topics(
        {
            member_id: [(topic, tuple(parts)) for topic, parts in (tuple(t) for t in _assigned(assignment)) if parts]
            for member_id, assignment in made.items()
        }
    )


def _assigned(assignment: object) -> list[tuple[str, list[int]]]:
    return [
        (entry.topic, entry.partitions) if hasattr(entry, "topic") else tuple(entry)
        for entry in assignment.assigned_partitions  # type: ignore[attr-defined]
    ]


@pytest.mark.timeout(0 if CASES > 20_000 else 300)
@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_every_random_group_gets_what_kafka_pythons_own_class_gives(strategy: str) -> None:
    # Imported here: the tests of this folder start without Kafka's client.

    assignor = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}[strategy]
    random = Random(f"kafka-python {strategy}")
    threw = 0
    for _ in range(CASES):
        group = random_group(random)
        theirs = kafka_python(assignor, group)
        if isinstance(theirs, Exception):
            assert isinstance(theirs, KeyError)
            threw += 1
            with pytest.raises(LeaderWouldFail):
                assign(strategy, group, "kafka-python:3.0.12")
        else:
            assert same(assign(strategy, group, "kafka-python:3.0.12"), theirs), group
    assert (threw > CASES // 10) == (strategy == "roundrobin")


def test_librdkafka_range_follows_its_plain_rules_or_cannot_tell() -> None:
    _compare("range", "librdkafka:2.16", lambda group: plain_range(group, librdkafka_compare, count_twice=False))


def test_librdkafka_roundrobin_follows_its_plain_rules_or_cannot_tell() -> None:
    _compare(
        "roundrobin",
        "librdkafka:2.16",
        lambda group: plain_roundrobin(group, librdkafka_compare, lambda topic, p: (topic.encode(), p)),
    )


def test_franz_go_range_follows_its_plain_rules() -> None:
    _compare("range", "franz-go", lambda group: plain_range(group, franz_go_compare, count_twice=True))


def test_franz_go_roundrobin_follows_its_plain_rules() -> None:
    _compare(
        "roundrobin",
        "franz-go",
        lambda group: plain_roundrobin(group, franz_go_compare, lambda topic, p: (topic.encode(), p)),
    )


def test_sarama_range_follows_its_plain_rules() -> None:
    _compare("range", "sarama:1.60.1", lambda group: plain_range(group, member_id_compare, count_twice=False))


def test_sarama_roundrobin_follows_its_plain_rules() -> None:
    _compare(
        "roundrobin",
        "sarama:1.60.1",
        lambda group: plain_roundrobin(group, member_id_compare, lambda topic, p: f"{topic}-{p}".encode()),
    )


def test_aiokafka_roundrobin_passes_members_over_where_kafka_python_fails() -> None:
    _compare(
        "roundrobin",
        "aiokafka",
        lambda group: plain_roundrobin(group, member_id_compare, lambda topic, p: (topic.encode(), p)),
    )


def _compare(strategy: str, library: str, plain: object, cases: int = min(CASES, 3_000)) -> None:
    random = Random(f"{library} {strategy}")
    told = 0
    for _ in range(cases):
        group = random_group(random)
        try:
            ours = assign(strategy, group, library)
        except CannotTell:
            # Only librdkafka's comparison of static with dynamic members can be cyclic, and only in these cases.
            assert library.startswith("librdkafka")
            assert goes_in_circles(group.members, librdkafka_compare)
            continue
        told += 1
        assert same(ours, plain(group)), group  # type: ignore[operator]
    assert told > cases * 0.6
