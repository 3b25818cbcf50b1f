"""Groups of real librdkafka and kafka-python members: their leaders' assignments equal our results.

Decisions are read from the broker's own `__consumer_offsets` and judged by the core, so the bytes that identify the
leader's library are real ones too. The long form, with Java's consumers and hundreds of generations, is
test_real_groups_soak.py.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.records import MembershipRecord
from tests.real_groups.real_log import core_verdicts, offsets_log, read_on
from tests.real_groups.real_members import Joins, LibrdkafkaMembers, Member, librdkafka_starter, start_kafka_python
from tests.real_groups.real_stories import leave_all

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]

COUNTS = {"a": 5, "b": 3, "c-10": 4, "c-2": 11}
ALL = tuple(COUNTS)
SETTLED_S = 90

# Instance ids and topics of the members. In "static", "m!" comes after "m" by instance id, but its member id ("m!-...")
# comes before that of "m" ("m-...").
STORIES = {
    "dynamic": ((None, ALL), (None, ALL), (None, ALL)),
    "different": ((None, ALL), (None, ("a", "c-2")), (None, ("b", "c-10", "a"))),
    "static": (("m", ALL), ("m!", ALL), ("b", ALL)),
    "mixed": (("0", ALL), (None, ALL), ("zz", ALL), (None, ALL)),
}
# kafka-python's own roundrobin raises on different subscriptions, so such a group never gets an assignment.
RUNS = [
    (library, strategy, story)
    for library in ("librdkafka", "kafka-python")
    for strategy in ("range", "roundrobin")
    for story in STORIES
    if (library, strategy, story) != ("kafka-python", "roundrobin", "different")
]


def test_every_generation_of_real_groups_is_what_a_candidate_of_its_library_computes(
    bootstrap: str, unique: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(f"{unique}-{topic}", count, 1) for topic, count in COUNTS.items()])
    admin.close()
    groups = {f"{unique}-{library}-{strategy}-{story}": (library, strategy, story) for library, strategy, story in RUNS}
    records: dict[str, list[MembershipRecord]] = {group: [] for group in groups}
    members: list[Member] = []
    with offsets_log(bootstrap) as log, LibrdkafkaMembers() as librdkafka:
        starts = {"librdkafka": librdkafka_starter(librdkafka), "kafka-python": start_kafka_python}
        for group, (library, strategy, story) in groups.items():
            for instance, topics in STORIES[story]:
                asked = tuple(f"{unique}-{topic}" for topic in topics)
                members.append(starts[library](Joins(bootstrap, group, strategy, asked, instance)))
        deadline = time.monotonic() + SETTLED_S
        waiting = {group: len(STORIES[story]) for group, (_, _, story) in groups.items()}
        while waiting:
            assert time.monotonic() < deadline, f"never complete: {waiting}"
            for group, record in read_on(log):
                if group in groups:
                    records[group].append(record)
                    if len(record.members) == waiting.get(group):
                        del waiting[group]
        leave_all(members)

    counts = {f"{unique}-{topic}": count for topic, count in COUNTS.items()}
    for group, (library, strategy, _) in groups.items():
        said: Counter[str] = Counter()
        for row in core_verdicts(records[group], counts):
            assert (row.verdict, row.strategy) == ("identical", strategy), row
            said[(row.matching_library or "").partition(":")[0]] += 1
        assert set(said) == {library}, (group, said)
