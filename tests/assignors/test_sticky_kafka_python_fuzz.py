"""kafka-python's own sticky classes, with this process's hash seed, compared with ours: the same, or CannotTell.

1,000 decisions per strategy; the environment variable CASES sets another number: 20,000 in `make test-all`, a million
in `make fuzz`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignors import Assignment, CannotTell, Group, LeaderWouldFail, assign, from_topics, same
from tests.assignors.sticky_chains import chain
from tests.examples import examples
from tests.oracle.java_assignors import Case

CASES = int(os.environ.get("CASES", "1000"))
LIBRARY = "kafka-python:3.0.12"


@pytest.mark.timeout(0 if CASES > 20_000 else 300)
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_every_decision_in_a_chain_is_that_of_kafka_pythons_own_class(strategy: str) -> None:
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    random = Random(f"kafka-python {strategy}")
    done = told = 0

    def decide(case: Case) -> Assignment | None:
        nonlocal done, told
        done += 1
        try:
            ours: Assignment | Exception = assign(strategy, case.group, LIBRARY)
        except CannotTell:
            return None
        except LeaderWouldFail as error:
            ours = error
        theirs = kafka_python(strategy, case.group)
        assert isinstance(ours, Exception) == isinstance(theirs, Exception), case
        if isinstance(ours, Exception) or isinstance(theirs, Exception):
            return None
        assert same(ours, theirs), case
        told += 1
        return ours

    while done < CASES:
        for _ in chain(random, strategy, decide, tidy=random.random() < 0.3, kafka_python=True):
            pass
    assert told > done * 0.8


def test_topics_that_nobody_subscribes_to_change_the_order() -> None:
    random = Random("other topics")
    told = 0

    def decide(case: Case) -> Assignment | None:
        nonlocal told
        group = Group(case.group.members, case.group.partitions_per_topic, other_topics_known=True)
        try:
            ours = assign("sticky", group, LIBRARY)
        except (CannotTell, LeaderWouldFail):
            return None
        theirs = kafka_python("sticky", case.group, others=("foreign",))
        assert not isinstance(theirs, Exception)
        assert same(ours, theirs), case
        told += 1
        return ours

    chains = examples(120)
    for _ in range(chains):
        for _ in chain(random, "sticky", decide, tidy=True, kafka_python=True):
            pass
    assert told > 5 * chains


def kafka_python(strategy: str, group: Group, *, others: Iterable[str] = ()) -> Assignment | Exception:
    """The result of the installed kafka-python's class, or its exception."""
    # Imported here: the tests of this folder start without Kafka's client.

    assignor = {"sticky": StickyPartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}[strategy]()
    counts = {topic: count for topic, count in group.partitions_per_topic.items() if count}
    subscribed = {topic for member in group.members for topic in member.topics}
    known = {topic: count for topic, count in counts.items() if topic in subscribed} | dict.fromkeys(others, 2)
    cluster = SimpleNamespace(
        topics=lambda: set(known),
        partitions_for_topic=lambda topic: set(range(known[topic])) if topic in known else None,
    )
    owned = ConsumerProtocolSubscription.TopicPartition
    members = [
        SimpleNamespace(
            member_id=member.member_id,
            metadata=SimpleNamespace(
                topics=list(member.topics),
                user_data=member.user_data,
                owned_partitions=[owned(topic=topic, partitions=list(parts)) for topic, parts in member.owned],
                generation_id=-1 if member.generation is None else member.generation,
            ),
        )
        for member in group.members
    ]
    try:
        made = assignor.assign(cluster, members)
    except Exception as error:  # noqa: BLE001 (any exception is a result)
        return error
    return from_topics(
        {
            member_id: [(topic, tuple(partitions)) for topic, partitions in map(_entry, of.assigned_partitions)]
            for member_id, of in made.items()
        }
    )


def _entry(entry: Any) -> tuple[str, list[int]]:
    return (entry.topic, entry.partitions) if hasattr(entry, "topic") else tuple(entry)
