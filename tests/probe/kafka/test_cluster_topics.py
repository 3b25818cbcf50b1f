"""All topics of a real broker: who reads them, their bytes and retention, their end; down to the rows of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable
from kafka.admin import ACLOperation, ACLResourcePatternType, ConfigResource, ConfigResourceType, ResourceType

from streaming.config import KafkaSettings, Settings
from streaming.events import ClusterTopicEvent
from streaming.groups import encode_rows
from streaming.job.batch import rows_by_table
from streaming.job.operator import advance_key, group_config
from streaming.job.source.events import EventReader, EventRound
from streaming.probe import Probe
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.cluster_topics import ABSENT_ROUNDS
from streaming.probe.kafka.requests import Refused
from streaming.probe.kafka.retention import TOPICS_A_ROUND, AskedSettings, RetentionKey
from streaming.records import (
    ClosedRound,
    ClusterTopicObservation,
    RoundClosed,
    TopicRetention,
    encode_inputs,
    topic_key,
)
from streaming.tables import DeltaLake
from tests.clock import Clock
from tests.probe.kafka.build import SOON
from tests.probe.secured import Secured
from tests.probe.witness import Cluster, MakeSettings, read, read_round, requests_sent

HEARTBEAT_MS = 1
"""Each topic is looked at in each round."""


_OWN_TOPICS = [
    (operation, ResourceType.TOPIC, "evenkeel.", ACLResourcePatternType.PREFIXED)
    for operation in (ACLOperation.CREATE, ACLOperation.READ, ACLOperation.WRITE)
]


class Followed:
    """The job's parts after the probe, without Spark: events to observations to rows."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._states: dict[str, tuple[int, bytes] | None] = {}
        self.packed: list[bytes] = []

    def take(self, closed: RoundClosed) -> None:
        for partition, (first, end) in closed.events.items():
            taken = ClosedRound(closed, closed.round, closed.round + 1, closed.time, closed.time, 0)
            reader = EventReader("events", int(partition), [EventRound(taken, first, end)], first, bool, bool)
            topic, kafka = self._settings.probe.events_topic, self._settings.kafka.bootstrap_servers
            for record in read(kafka, topic, int(partition), first, end):
                reader.add((record.offset, record.timestamp, record.key, record.value))
            for name, looks in reader.take()[1].items():
                key = topic_key(name)
                payloads = [encode_inputs(looks)]
                after, rows = advance_key(key, payloads, self._states.get(key), group_config(self._settings))
                self._states[key] = after
                self.packed.append(encode_rows(rows))
            assert reader.unreadable.inputs() == []


@pytest.mark.kafka
def test_topics_are_told_from_the_broker_to_the_table(
    cluster: Cluster, make_settings: MakeSettings, tmp_path: Path
) -> None:
    orders, audit = cluster.topic("orders", 2), cluster.topic("audit", 1)
    cluster.topic("left-out", 1)
    cluster.produce(orders, [3, 2])
    group = cluster.commit("billing", orders, [1, 1])
    filters = {"topics": (f"/^{cluster.unique}-(orders|audit)/",), "groups": (), "ignore_groups": ()}
    settings = make_settings(cluster_topics=True, **filters)
    settings = settings.model_copy(update={"job": settings.job.model_copy(update={"heartbeat_ms": HEARTBEAT_MS})})
    followed = Followed(settings)
    with Probe(settings) as probe:
        followed.take(probe.round())
        cluster.produce(orders, [10, 0])
        followed.take(probe.round())
        cluster.admin.delete_topics([audit])
        for _ in range(ABSENT_ROUNDS):
            followed.take(probe.round())

    lake = DeltaLake(str(tmp_path))
    lake.create()
    lake.append("topics", rows_by_table(followed.packed)["topics"], "query", 0)
    rows = DeltaTable(tmp_path / "topics").to_pyarrow_table().sort_by("round").to_pylist()
    assert {row["topic"] for row in rows} == {orders, audit}
    first, second, *_ = [row for row in rows if row["topic"] == orders]
    assert (first["partitions"], first["records_max"], first["produced_reason"]) == (2, 5, "first_look")
    assert (first["groups"], first["readers"], first["read_by_nobody"]) == (1, [group], False)
    assert second["records_max"] == 15
    assert second["produced_per_second"] == pytest.approx(10 / second["rates_over_seconds"])
    assert second["log_bytes"] > first["log_bytes"] > 0
    written = (second["log_bytes"] - first["log_bytes"]) / second["rates_over_seconds"]
    assert second["produced_bytes_per_second_min"] == pytest.approx(written)
    unread = [row for row in rows if row["topic"] == audit]
    assert unread[0]["groups"] == 0
    # Another test may have left a share group on this broker; what it reads is asked for a moment only, each round.
    asked = [row for row in unread[:2] if row["read_by_nobody_reason"] != "share_groups"]
    assert len(asked) == 2 or cluster.admin.list_groups(types_filter=["share"])
    assert all((row["read_by_nobody"], row["read_by_nobody_reason"]) == (True, None) for row in asked)
    assert all(row["read_by_nobody_since"] == asked[0]["round_time"] for row in asked)
    assert [row["ended_reason"] for row in unread] == [None, None, "deleted"]


@pytest.mark.kafka
def test_a_new_probe_ends_topics_that_were_deleted_meanwhile(cluster: Cluster, make_settings: MakeSettings) -> None:
    audit = cluster.topic("audit", 1)
    settings = make_settings(cluster_topics=True, topics=(audit,))
    with Probe(settings) as probe:
        probe.round()
    cluster.admin.delete_topics([audit])
    found: list[ClusterTopicEvent] = []
    with Probe(settings) as probe:
        for _ in range(ABSENT_ROUNDS):
            found += events_of(settings, probe.round())
    assert [(event.key, event.saw.gone) for event in found] == [(audit, "deleted")]


def events_of(settings: Settings, closed: RoundClosed) -> list[ClusterTopicEvent]:
    return [event for event in read_round(settings, closed).events if isinstance(event, ClusterTopicEvent)]


@pytest.mark.kafka
@pytest.mark.xdist_group("broker")
def test_without_the_rights_bytes_and_readers_are_unknown_and_with_them_they_are_told(secured: Secured) -> None:
    literal = ACLResourcePatternType.LITERAL
    secured.grant(
        (ACLOperation.READ, ResourceType.TOPIC, "__consumer_offsets", literal),
        (ACLOperation.DESCRIBE, ResourceType.GROUP, "billing", literal),
        (ACLOperation.DESCRIBE, ResourceType.TOPIC, "orders", literal),
        *_OWN_TOPICS,
    )
    settings = secured.settings(cluster_topics=True, rounds_topic="evenkeel.t-rounds", events_topic="evenkeel.t-events")
    without = first_of(settings, secured)
    assert (without.sizes, without.unsized, without.hidden, without.groups) == (None, "no_right", "no_right", 1)
    secured.grant(
        (ACLOperation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster", literal),
        (ACLOperation.DESCRIBE, ResourceType.GROUP, "*", literal),
    )
    # New topics of ours: a probe that reads its last round back waits for the topic's turn.
    fresh = {"rounds_topic": "evenkeel.u-rounds", "events_topic": "evenkeel.u-events"}
    told = first_of(secured.settings(cluster_topics=True, **fresh), secured)
    assert (told.unsized, told.hidden, told.groups, told.readers) == (None, None, 1, ("billing",))
    assert told.sizes[0] > 0 == told.sizes[1]


def first_of(settings: Settings, broker: Secured) -> ClusterTopicObservation:
    """What a new probe tells of "orders" in its first round, as somebody with all rights reads it."""
    with Probe(settings) as probe:
        closed = probe.round()
    plain = KafkaSettings(bootstrap_servers=broker.broker.bootstrap)
    found = events_of(settings.model_copy(update={"kafka": plain}), closed)
    return next(event.saw for event in found if event.key == "orders")


PERIOD_S = 600.0
WEEK = TopicRetention(7 * 86_400_000, -1, deletes=True, append_time=False)
OF_THE_BROKER = TopicRetention(-1, -1, deletes=True, append_time=False)
"""What a topic without settings of its own has from the tests' brokers (`log.retention.ms`)."""

ORDERS: RetentionKey = ("orders", "id-1")


class Topics:
    """Topics of a broker, and how often each was asked for its settings."""

    def __init__(self) -> None:
        self.clock = Clock(0.0)
        self.asked: Counter[str] = Counter()
        self.says: Callable[[str], dict[str, TopicRetention | Refused]] = lambda name: {name: WEEK}
        self.settings = AskedSettings[TopicRetention](PERIOD_S, "them", "The right is missing.", self._ask, self.clock)

    def renew(self, *keys: RetentionKey) -> None:
        self.settings.renew(keys, SOON)

    def _ask(self, names: Sequence[str], _: Deadline) -> dict[str, TopicRetention | Refused]:
        assert len(names) <= TOPICS_A_ROUND
        self.asked.update(names)
        return {key: told for name in names for key, told in self.says(name).items()}


@pytest.fixture
def topics() -> Topics:
    """Topics of which one was asked now."""
    topics = Topics()
    topics.renew(ORDERS)
    return topics


def test_a_topic_is_asked_once_within_the_period(topics: Topics) -> None:
    topics.clock.now = PERIOD_S - 1
    topics.renew(ORDERS)
    assert (topics.asked["orders"], topics.settings.of(ORDERS)) == (1, WEEK)
    topics.clock.now = PERIOD_S
    topics.renew(ORDERS)
    assert topics.asked["orders"] == 2


def test_a_topic_that_was_created_again_is_another_one(topics: Topics) -> None:
    again = ("orders", "id-2")
    assert topics.settings.of(again) is None
    topics.renew(again)
    assert topics.asked["orders"] == 2


def test_many_topics_take_their_turns_and_none_waits_for_ever() -> None:
    topics, keys = Topics(), [(f"t{number}", None) for number in range(2 * TOPICS_A_ROUND + 5)]
    for _ in range(3):
        topics.renew(*keys)
        topics.clock.now += 10
    assert topics.asked == Counter(name for name, _ in keys)


def test_without_an_answer_the_last_one_holds(topics: Topics) -> None:
    topics.clock.now, topics.says = PERIOD_S, lambda _: {}
    topics.renew(ORDERS)
    topics.renew(ORDERS)
    assert (topics.asked["orders"], topics.settings.of(ORDERS)) == (2, WEEK)


def test_a_refusal_forgets_what_was_known_and_is_not_repeated_each_round(topics: Topics) -> None:
    topics.clock.now, topics.says = PERIOD_S, lambda name: {name: Refused.FORBIDDEN}
    topics.renew(ORDERS)
    topics.renew(ORDERS)
    assert (topics.asked["orders"], topics.settings.of(ORDERS)) == (2, None)


def test_topics_that_nobody_reads_any_more_are_forgotten(topics: Topics) -> None:
    topics.renew(*((f"t{number}", None) for number in range(100)))
    topics.renew(("t0", None))
    assert (topics.settings.of(("t0", None)), topics.settings.of(("t1", None))) == (WEEK, None)


@pytest.mark.kafka
def test_a_round_tells_the_settings_of_topics_and_asks_for_them_once(cluster: Cluster, settings: Settings) -> None:
    plain = cluster.topic("plain", 1)
    kept = {
        "cleanup.policy": "compact,delete",
        "retention.ms": "1234567",
        "retention.bytes": "1000000",
        "message.timestamp.type": "LogAppendTime",
    }
    special, compacted = f"{cluster.unique}-special", f"{cluster.unique}-compacted"
    for topic, configs in ((special, kept), (compacted, {"cleanup.policy": "compact", "retention.ms": "-1"})):
        cluster.admin.create_topics(
            {topic: {"num_partitions": 1, "replication_factor": 1, "configs": configs}}, wait_for_metadata=True
        )
    groups = {topic: cluster.commit(f"of-{topic}", topic, [0]) for topic in (plain, special, compacted)}
    with Probe(settings) as probe, requests_sent() as sent:
        for _ in range(2):
            seen = read_round(settings, probe.round())
            told = {topic: seen.topics(group)[topic].retention for topic, group in groups.items()}
            assert told == {
                plain: OF_THE_BROKER,
                special: TopicRetention(1_234_567, 1_000_000, deletes=True, append_time=True, compacts=True),
                compacted: TopicRetention(-1, -1, deletes=False, append_time=False, compacts=True),
            }
        # One request for the topics, and one for how long the broker keeps offsets.
        assert sent["DescribeConfigs"] == 2


@pytest.mark.kafka
@pytest.mark.xdist_group("broker")
def test_without_the_rights_settings_stay_unknown_and_each_right_tells_its_own(secured: Secured) -> None:
    literal = ACLResourcePatternType.LITERAL
    secured.grant(
        (ACLOperation.READ, ResourceType.TOPIC, "__consumer_offsets", literal),
        (ACLOperation.DESCRIBE, ResourceType.GROUP, "*", literal),
        (ACLOperation.DESCRIBE, ResourceType.TOPIC, "*", literal),
        *_OWN_TOPICS,
    )
    settings = secured.settings(rounds_topic="evenkeel.settings-rounds", events_topic="evenkeel.settings-events")
    assert _settings_in_a_round(settings, secured) == ({None}, None)
    secured.grant((ACLOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "*", literal))
    assert _settings_in_a_round(settings, secured) == ({OF_THE_BROKER}, None)
    secured.grant((ACLOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, "kafka-cluster", literal))
    assert _settings_in_a_round(settings, secured) == ({OF_THE_BROKER}, 10_080)


def _settings_in_a_round(settings: Settings, broker: Secured) -> tuple[set[TopicRetention | None], int | None]:
    """Settings of topics and minutes of the offsets, as a new probe tells them in its first round."""
    with Probe(settings) as probe:
        closed = probe.round()
    plain = KafkaSettings(bootstrap_servers=broker.broker.bootstrap)
    seen = read_round(settings.model_copy(update={"kafka": plain}), closed)
    told = {topic.retention for group in seen.groups for topic in seen.topics(group).values()}
    return told, closed.offsets_retention_minutes


@pytest.mark.kafka
def test_a_round_tells_what_the_broker_says(cluster: Cluster, settings: Settings) -> None:
    [broker] = cluster.admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")], config_filter="all")[
        "broker"
    ].values()
    with Probe(settings) as probe:
        closed = probe.round()
    assert closed.offsets_retention_minutes == int(broker["offsets.retention.minutes"]["value"])
