"""Sticky groups of real librdkafka and kafka-python members, scaled up and down: what their leaders wrote is ours.

Decisions are read from the broker's own `__consumer_offsets` and judged by the core. The long form, with Java's
consumers and hundreds of generations, is test_real_groups_soak.py.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from real_log import core_verdicts, offsets_log, read_on
from real_members import HASH_SEED, STARTS, Joins, Member

from streaming.groups.inputs import MembershipRecord

pytestmark = pytest.mark.kafka

COUNTS = {"a": 5, "b": 3, "c": 4}
ALL = tuple(COUNTS)
# Topics of the first member, the second, and the third, which comes later; then the first leaves.
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


class _Scaled:
    """One group and how far its story has come: two members, three, two others."""

    def __init__(self, start: Callable[[tuple[str, ...]], Member], topics: tuple[tuple[str, ...], ...]) -> None:
        self.records: list[MembershipRecord] = []
        self._start = start
        self._later = topics[2]
        self.members = [start(topics[0]), start(topics[1])]
        self._wanted = [2, 3, 2]

    @property
    def done(self) -> bool:
        return not self._wanted

    def saw(self, record: MembershipRecord) -> None:
        self.records.append(record)
        if self.done or len(record.members) != self._wanted[0]:
            return
        self._wanted.pop(0)
        if len(self._wanted) == 2:
            self.members.append(self._start(self._later))
        elif len(self._wanted) == 1:
            self.members[0].leave()


def test_every_generation_of_scaled_groups_is_what_a_candidate_of_its_library_computes(
    bootstrap: str, unique: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(f"{unique}-{topic}", count, 1) for topic, count in COUNTS.items()])
    admin.close()
    counts = {f"{unique}-{topic}": count for topic, count in COUNTS.items()}

    def starter(library: str, strategy: str, group: str) -> Callable[[tuple[str, ...]], Member]:
        def start(topics: tuple[str, ...]) -> Member:
            asked = tuple(f"{unique}-{topic}" for topic in topics)
            return STARTS[library](Joins(bootstrap, group, strategy, asked))

        return start

    groups: dict[str, _Scaled] = {}
    with offsets_log(bootstrap) as log:
        for number, (library, strategy, story) in enumerate(RUNS):
            group = f"{unique}-{number}"
            groups[group] = _Scaled(starter(library, strategy, group), STORIES[story])
        deadline = time.monotonic() + SETTLED_S
        # A client that does not come to the end of its story (one in many was seen to) is its own matter: what it
        # wrote counts, and below enough of it is asked for.
        while any(not scaled.done for scaled in groups.values()) and time.monotonic() < deadline:
            for group, record in read_on(log):
                if group in groups:
                    groups[group].saw(record)
    members = [member for scaled in groups.values() for member in scaled.members]
    for member in members:
        member.leave()
    for member in members:
        assert member.left.wait(30)

    for scaled, (library, strategy, story) in zip(groups.values(), RUNS, strict=True):
        said: Counter[str] = Counter()
        for row in core_verdicts(scaled.records, counts):
            assert row.strategy == strategy
            if row.verdict == "valid_unverified":
                assert (library, row.reason) == ("kafka-python", HASH_SEED), row
            else:
                assert row.verdict == "identical", row
                assert (row.matched_library or "").partition(":")[0] == library
            said[row.verdict] += 1
        # Each group, so that no client and no story of one can be silent: its first two members, and a newcomer.
        assert said["identical"] >= 2, (library, strategy, story, said, len(scaled.records))
        assert len({len(record.members) for record in scaled.records}) >= 2, (library, strategy, story)
