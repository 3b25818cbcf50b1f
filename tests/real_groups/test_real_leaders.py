"""Groups of real librdkafka and kafka-python members: their leaders' assignments equal our results.

Decisions are read from the broker's own `__consumer_offsets` and judged by the core, so the bytes that identify the
leader's library are real ones too. The long form, with Java's consumers and hundreds of generations, is
test_real_groups_soak.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from tests.real_groups.real_log import core_verdicts, offsets_log
from tests.real_groups.real_members import HASH_SEED, LIBRARIES, Joins, Member, StartMember, starter
from tests.real_groups.real_stories import Scaled, follow

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]

COUNTS = {"a": 5, "b": 3, "c-10": 4, "c-2": 11}
ALL = tuple(COUNTS)
SETTLED_S = 90.0

Wants = tuple[str | None, tuple[str, ...]]
"""Instance id and topics of a member."""

# What the first member wants, the second, and the third, which joins later; then the first leaves. In "static", "m!"
# comes after "m" by instance id, but its member id ("m!-...") comes before that of "m" ("m-...").
STORIES: dict[str, tuple[Wants, Wants, Wants]] = {
    "alike": ((None, ALL), (None, ALL), (None, ALL)),
    "different": ((None, ("a", "c-2")), (None, ("b", "c-10", "a")), (None, ALL)),
    "one topic": ((None, ("a",)), (None, ("a",)), (None, ("a",))),
    "static": ((None, ALL), ("m", ALL), ("m!", ALL)),
}
# kafka-python's own roundrobin raises on different subscriptions, so such a group never gets an assignment.
RUNS = [
    (library, strategy, story)
    for library, strategies in {
        "librdkafka": ("range", "roundrobin", "cooperative-sticky"),
        "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    }.items()
    for strategy in strategies
    for story in STORIES
    if (library, strategy, story) != ("kafka-python", "roundrobin", "different")
]


@pytest.mark.nightly
def test_every_generation_of_scaled_groups_is_what_a_candidate_of_its_library_computes(
    bootstrap: str, unique: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(f"{unique}-{topic}", count, 1) for topic, count in COUNTS.items()])
    admin.close()
    counts = {f"{unique}-{topic}": count for topic, count in COUNTS.items()}

    def joining(of_library: StartMember, strategy: str, group: str) -> Callable[[Wants], Member]:
        def start(wants: Wants) -> Member:
            instance, topics = wants
            asked = [f"{unique}-{topic}" for topic in topics]
            return of_library(Joins(bootstrap, group, strategy, asked, instance))

        return start

    groups: dict[str, Scaled[Wants]] = {}
    with offsets_log(bootstrap) as log, ExitStack() as processes:
        shared = processes.enter_context(LIBRARIES["kafka-python"]())
        for number, (library, strategy, story) in enumerate(RUNS):
            group = f"{unique}-{number}"
            # A leader of librdkafka's cooperative-sticky may crash: then no other group ends with it.
            own = library == "librdkafka"
            of_library = starter(processes.enter_context(LIBRARIES[library]()) if own else shared)
            *first, later = STORIES[story]
            groups[group] = Scaled(joining(of_library, strategy, group), first, later)
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
