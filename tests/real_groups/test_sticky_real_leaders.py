"""Sticky groups of real librdkafka and kafka-python members, scaled up and down: leaders' assignments equal ours.

Decisions are read from the broker's own `__consumer_offsets` and judged by the core. The long form, with Java's
consumers and hundreds of generations, is test_real_groups_soak.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from tests.real_groups.real_log import core_verdicts, offsets_log
from tests.real_groups.real_members import (
    HASH_SEED,
    Joins,
    LibrdkafkaMembers,
    Member,
    StartMember,
    librdkafka_starter,
    start_kafka_python,
)
from tests.real_groups.real_stories import Scaled, follow

pytestmark = pytest.mark.kafka

COUNTS = {"a": 5, "b": 3, "c": 4}
ALL = tuple(COUNTS)
# Topics of the first member, the second, and the third, which joins later; then the first leaves.
STORIES = {"alike": (ALL, ALL, ALL), "different": (("a", "b"), ("b", "c"), ALL), "one topic": (("a",),) * 3}
RUNS = [
    (library, strategy, story)
    for library, strategy in (
        ("librdkafka", "cooperative-sticky"),
        ("kafka-python", "sticky"),
        ("kafka-python", "cooperative-sticky"),
    )
    for story in STORIES
]
SETTLED_S = 60


def test_every_generation_of_scaled_groups_is_what_a_candidate_of_its_library_computes(
    bootstrap: str, unique: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(f"{unique}-{topic}", count, 1) for topic, count in COUNTS.items()])
    admin.close()
    counts = {f"{unique}-{topic}": count for topic, count in COUNTS.items()}

    def starter(of_library: StartMember, strategy: str, group: str) -> Callable[[tuple[str, ...]], Member]:
        def start(topics: tuple[str, ...]) -> Member:
            return of_library(Joins(bootstrap, group, strategy, [f"{unique}-{topic}" for topic in topics]))

        return start

    groups: dict[str, Scaled[tuple[str, ...]]] = {}
    with offsets_log(bootstrap) as log, ExitStack() as processes:
        for number, (library, strategy, story) in enumerate(RUNS):
            group = f"{unique}-{number}"
            of_library = start_kafka_python
            if library == "librdkafka":
                # (One process per group, so that a crashing leader ends no other group.)
                of_library = librdkafka_starter(processes.enter_context(LibrdkafkaMembers()))
            *first, later = STORIES[story]
            groups[group] = Scaled(starter(of_library, strategy, group), first, later)
        # A client may not finish its story (one in many was seen to), which is its own problem: its records still
        # count, and a minimum is checked below.
        follow(log, groups, SETTLED_S)

    for scaled, (library, strategy, story) in zip(groups.values(), RUNS, strict=True):
        said: Counter[str] = Counter()
        for row in core_verdicts(scaled.records, counts):
            assert row.strategy == strategy
            if row.verdict == "unverified":
                assert (library, row.reason) == ("kafka-python", HASH_SEED), row
            else:
                assert row.verdict == "identical", row
                assert (row.matching_library or "").partition(":")[0] == library
            said[row.verdict] += 1
        # Each group needs records with two and with three members, so that no client or story goes untested.
        assert said["identical"] >= 2, (library, strategy, story, said, len(scaled.records))
        assert len({len(record.members) for record in scaled.records}) >= 2, (library, strategy, story)
