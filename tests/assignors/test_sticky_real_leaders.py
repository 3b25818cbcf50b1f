"""Sticky groups of real librdkafka and kafka-python members, scaled up and down: what their leaders wrote is ours.

Subscriptions and assignments are read from the broker's own `__consumer_offsets`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import confluent_kafka
import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from test_real_leaders import offsets_log

from assignors import (
    AssignorError,
    CannotTell,
    Group,
    LeaderWouldFail,
    Library,
    assign,
    from_topics,
    recognise,
    same,
    unrecorded,
)
from streaming.groups.inputs import MembershipRecord
from streaming.groups.membership import subscription_of
from streaming.offsets_log import GroupKey, decode_key, decode_membership

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
# A kafka-python leader assigns without waiting for metadata that it lacks, and joins anew when it has come: with
# different subscriptions its group was seen to go on for minutes. What it wrote until then counts.
_NOT_AWAITED = ("kafka-python", "cooperative-sticky", "different")
SETTLED_S = 120


class _Scaled:
    """One group and how far its story has come: two members, three, two others."""

    def __init__(
        self, start: Callable[[tuple[str, ...]], threading.Event], topics: tuple[tuple[str, ...], ...]
    ) -> None:
        self.records: list[MembershipRecord] = []
        self._start = start
        self._later = topics[2]
        self.stops = [start(topics[0]), start(topics[1])]
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
            self.stops.append(self._start(self._later))
        elif len(self._wanted) == 1:
            self.stops[0].set()


def test_every_generation_of_scaled_groups_is_what_a_candidate_of_its_library_computes(
    bootstrap: str, unique: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(f"{unique}-{topic}", count, 1) for topic, count in COUNTS.items()])
    admin.close()
    counts = {f"{unique}-{topic}": count for topic, count in COUNTS.items()}
    threads: list[threading.Thread] = []

    def starter(library: str, strategy: str, group: str) -> Callable[[tuple[str, ...]], threading.Event]:
        def start(topics: tuple[str, ...]) -> threading.Event:
            stop = threading.Event()
            names = [f"{unique}-{topic}" for topic in topics]
            thread = threading.Thread(
                target=_MEMBERS[library], args=(bootstrap, group, strategy, names, stop), daemon=True
            )
            threads.append(thread)
            thread.start()
            return stop

        return start

    groups: dict[str, _Scaled] = {}
    with offsets_log(bootstrap) as log:
        for number, (library, strategy, story) in enumerate(RUNS):
            group = f"{unique}-{number}"
            groups[group] = _Scaled(starter(library, strategy, group), STORIES[story])
        try:
            deadline = time.monotonic() + SETTLED_S
            awaited = [group for group, run in zip(groups.values(), RUNS, strict=True) if run != _NOT_AWAITED]
            # A client that does not come to the end of its story (one in many was seen to) is its own matter: what it
            # wrote counts, and below enough of it is asked for.
            while any(not group.done for group in awaited) and time.monotonic() < deadline:
                for batch in log.poll(500).values():
                    for item in batch:
                        key = decode_key(item.key)
                        if isinstance(key, GroupKey) and key.group in groups and item.value is not None:
                            record = decode_membership(item.offset, item.timestamp, item.value)
                            assert isinstance(record, MembershipRecord)
                            if record.members:
                                groups[key.group].saw(record)
        finally:
            for scaled in groups.values():
                for stop in scaled.stops:
                    stop.set()
            for thread in threads:
                thread.join(30)

    told: Counter[str] = Counter()
    for scaled, (library, strategy, _) in zip(groups.values(), RUNS, strict=True):
        for record in scaled.records:
            assert record.protocol == strategy
            verdicts = _fits(record, counts, library)
            assert verdicts & {"identical", "cannot tell"}, record
            told[f"{library} {strategy} {'identical' if 'identical' in verdicts else 'cannot tell'}"] += 1
    for library, strategy, _ in RUNS:
        assert told[f"{library} {strategy} identical"] >= 6, told


def _fits(record: MembershipRecord, counts: dict[str, int], library: str) -> set[str]:
    """What the candidates of a library say of a record."""
    members = tuple(map(subscription_of, record.members))
    actual = from_topics({m.member_id: m.assigned or () for m in record.members})
    leader = next(m for m in record.members if m.member_id == record.leader)
    known_to_all = {topic: counts[topic] for member in members for topic in member.topics}
    # A kafka-python leader may lack the metadata of the topics that only others subscribe to.
    own = {topic: counts[topic] for topic in leader.topics or ()}
    found = set()
    for candidate in recognise(
        record.protocol or "",
        version=leader.subscription_version,
        user_data=leader.user_data,
        client_id=leader.client_id,
    ):
        if candidate.name == library:
            for known in (known_to_all, own):
                found.add(_fit(record.protocol or "", Group(members, known), candidate, actual))
    return found


def _fit(strategy: str, group: Group, library: Library, actual: object) -> str:
    try:
        for seen in (group, *(other for other, _ in unrecorded(strategy, group, library))):
            try:
                if same(assign(strategy, seen, library), actual):  # type: ignore[arg-type]
                    return "identical"
            except LeaderWouldFail:
                continue
    except CannotTell:
        return "cannot tell"
    except AssignorError:
        return "fails"
    return "another"


def _librdkafka(bootstrap: str, group: str, strategy: str, topics: list[str], stop: threading.Event) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "partition.assignment.strategy": strategy,
        "session.timeout.ms": 30_000,
        "heartbeat.interval.ms": 500,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(topics)
    while not stop.is_set():
        consumer.poll(0.1)
    consumer.close()


def _kafka_python(bootstrap: str, group: str, strategy: str, topics: list[str], stop: threading.Event) -> None:
    assignor = {"sticky": StickyPartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}[strategy]
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        partition_assignment_strategy=[assignor],
        session_timeout_ms=30_000,
        heartbeat_interval_ms=500,
        max_poll_interval_ms=60_000,
    )
    consumer.subscribe(topics)
    while not stop.is_set():
        consumer.poll(100)
    consumer.close(autocommit=False)


_MEMBERS: dict[str, Callable[[str, str, str, list[str], threading.Event], None]] = {
    "librdkafka": _librdkafka,
    "kafka-python": _kafka_python,
}
