"""Real leaders, with and without racks: their assignments, in the broker's own log, equal our results.

Decisions are read from the broker's own `__consumer_offsets` and judged by the core, so the bytes that identify the
leader's library are real ones too; racks come from the real probe. The long form, with Java's consumers and hundreds
of generations, is test_real_groups_soak.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from assignors import Group, assign, from_topics, same
from streaming.config import KafkaSettings, ProbeSettings, Settings
from streaming.groups.classic.membership import subscription_of
from streaming.probe import Probe
from streaming.records import MembershipRecord, TopicObservation
from tests.groups.build import Life, make_observation, make_topic
from tests.oracle.java_classes import JavaMembers
from tests.pair_of_brokers import Pair, pair_of_brokers
from tests.probe.witness import Cluster, read_round
from tests.real_groups.real_log import Scaled, core_verdicts, follow, offsets_log
from tests.real_groups.real_members import (
    HASH_SEED,
    LIBRARIES,
    Joins,
    LibrdkafkaMembers,
    Member,
    StartMember,
    starter,
)

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


@pytest.mark.kafka
@pytest.mark.turn(6)
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


# Brokers of each partition. x and y have the same size: they are dealt together to members that subscribe to both.
PLACES = {
    "x": ([1], [2], [2], [1], [2]),
    "y": ([1], [2], [1], [1], [2]),
    "z": ([2], [2], [1], [1], [2], [2], [1]),
}
# Rack and topics of the first three members; of one that joins later; then the first one leaves.
FIRST = (("b", "xyz"), ("a", "xyz"), (None, "xz"))
LATER = ("a", "yz")
SETTLED_IN_RACKS_S = 150

IN_RACKS = (
    ("java", "range"),
    ("java", "sticky"),
    ("java", "cooperative-sticky"),
    ("librdkafka", "range"),
    ("librdkafka", "roundrobin"),
    ("librdkafka", "cooperative-sticky"),
)
# Allowed reasons for a librdkafka leader: it reads freed memory, or uses an order (of claims, of topics) not recorded.
_OPEN = (
    "librdkafka reads freed memory",
    "librdkafka confuses the owners",
    "the result depends on the order in which the broker listed",
)


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    shared = {"offsets.topic.num.partitions": "4"}
    with pair_of_brokers(tmp_path_factory, shared) as running:
        yield running


@pytest.mark.kafka
@pytest.mark.java
@pytest.mark.soak
def test_every_generation_of_groups_in_racks_is_identical(pair: Pair, unique: str) -> None:
    bootstrap = pair.first.bootstrap
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    cluster = Cluster(bootstrap, unique, admin)
    names = {topic: f"{unique}-{topic}" for topic in PLACES}
    admin.create_topics(
        {names[topic]: {"assignments": dict(enumerate(of))} for topic, of in PLACES.items()}, wait_for_metadata=True
    )
    for name in names.values():
        cluster.commit("seed", name, [0])
    topics = _observed_topics(unique, pair, f"{unique}-seed")
    assert topics[0].racks == (("a",), ("b",), ("b",), ("a",), ("b",))
    groups: dict[str, Scaled[tuple[str | None, str]]] = {}

    def start_in(of_client: StartMember, strategy: str, group: str) -> Callable[[tuple[str | None, str]], Member]:
        def start(wants: tuple[str | None, str]) -> Member:
            rack, wanted = wants
            return of_client(Joins(bootstrap, group, strategy, [names[topic] for topic in wanted], rack=rack))

        return start

    with offsets_log(bootstrap) as log, JavaMembers("4.3.1") as java, LibrdkafkaMembers() as librdkafka:
        starters = {"java": starter(java), "librdkafka": starter(librdkafka)}
        for client, strategy in IN_RACKS:
            group = f"{unique}.{client}.{strategy}"
            groups[group] = Scaled(start_in(starters[client], strategy, group), FIRST, LATER)
        follow(log, groups, SETTLED_IN_RACKS_S)
    admin.close()
    left = {name: len(group.records) for name, group in groups.items() if not group.done}
    assert not left, (left, java.failures, librdkafka.failures, librdkafka.crashes)

    by_racks: Counter[tuple[str, str]] = Counter()
    for (client, strategy), group in zip(IN_RACKS, groups.values(), strict=True):
        judged = _judged(group.records, topics)
        for record, (verdict, reason) in zip(group.records, judged, strict=True):
            open_ = client == "librdkafka" and str(reason).startswith(_OPEN)
            assert verdict == "identical" or open_, (client, strategy, reason, record)
            by_racks[client, strategy] += verdict == "identical" and _differs_without_racks(client, record, topics)
    for client, strategy in IN_RACKS:
        assert (by_racks[client, strategy] > 0) == (strategy != "roundrobin"), by_racks


def _observed_topics(unique: str, pair: Pair, group: str) -> tuple[TopicObservation, ...]:
    """The topics as a real round contains them."""
    settings = Settings(
        cluster=unique,
        kafka=KafkaSettings(bootstrap_servers=pair.bootstrap),
        probe=ProbeSettings(
            interval_ms=200, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
    )
    with Probe(settings) as probe:
        seen = read_round(settings, probe.round()).topics(group)
    return tuple(make_topic(topic, event.partitions, racks=event.racks) for topic, event in sorted(seen.items()))


def _judged(records: list[MembershipRecord], topics: tuple[TopicObservation, ...]) -> list[tuple[str, str | None]]:
    life = Life.after(make_observation(records[0].record, *topics, time=records[0].record_time - 1))
    for record in records:
        life.take(record, make_observation(record.record + 1, *topics, time=record.record_time))
    return [(row.verdict, row.reason) for row in life.rows.drift]


def _differs_without_racks(client: str, record: MembershipRecord, topics: tuple[TopicObservation, ...]) -> bool:
    """Whether the group's assignment differs from that with brokers without racks."""
    counts = {topic.topic: topic.partitions or 0 for topic in topics}
    group = Group(tuple(map(subscription_of, record.members)), counts)
    nowhere = {topic: [()] * count for topic, count in counts.items()}
    actual = from_topics({member.member_id: member.assigned or () for member in record.members})
    return not same(assign(record.protocol or "", group, client, nowhere), actual)
