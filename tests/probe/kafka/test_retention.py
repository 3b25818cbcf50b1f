"""How long topics keep their records: asked once per heartbeat, a few topics a round, and no round is lost by it."""

from __future__ import annotations

import pytest
from kafka.admin import ACLOperation, ACLResourcePatternType, ConfigResource, ConfigResourceType, ResourceType

from streaming.config import KafkaSettings, Settings
from streaming.probe import Probe
from streaming.probe.kafka.retention import TOPICS_A_ROUND, RetentionKey, Retentions
from streaming.records import TopicRetention
from tests.probe.secured import Secured
from tests.probe.witness import Cluster, read_round, requests_sent

PERIOD_S = 600.0
WEEK = TopicRetention(7 * 86_400_000, -1, deletes=True, append_time=False)
OF_THE_BROKER = TopicRetention(-1, -1, deletes=True, append_time=False)
"""What a topic without settings of its own has from the tests' brokers (`log.retention.ms`)."""

ORDERS: RetentionKey = ("orders", "id-1")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_topic_is_asked_once_within_the_period(clock: Clock) -> None:
    known = Retentions[TopicRetention](PERIOD_S, clock)
    assert known.due([ORDERS]) == [ORDERS]
    known.note([ORDERS], {ORDERS: WEEK})
    clock.now = PERIOD_S - 1
    assert (known.due([ORDERS]), known.of(ORDERS)) == ([], WEEK)
    clock.now = PERIOD_S
    assert known.due([ORDERS]) == [ORDERS]


def test_a_topic_that_was_created_again_is_another_one(clock: Clock) -> None:
    known = Retentions[TopicRetention](PERIOD_S, clock)
    known.note([ORDERS], {ORDERS: WEEK})
    again = ("orders", "id-2")
    assert (known.due([again]), known.of(again)) == ([again], None)


def test_many_topics_take_their_turns_and_none_waits_for_ever(clock: Clock) -> None:
    topics: list[RetentionKey] = [(f"t{number}", None) for number in range(2 * TOPICS_A_ROUND + 5)]
    known = Retentions[TopicRetention](PERIOD_S, clock)
    asked: list[RetentionKey] = []
    for _ in range(3):
        due = known.due(topics)
        assert len(due) <= TOPICS_A_ROUND
        known.note(due, dict.fromkeys(due, WEEK))
        asked += due
        clock.now += 10
    assert sorted(asked) == sorted(topics)


def test_without_an_answer_the_last_one_holds(clock: Clock) -> None:
    known = Retentions[TopicRetention](PERIOD_S, clock)
    known.note([ORDERS], {ORDERS: WEEK})
    clock.now = PERIOD_S
    known.note(known.due([ORDERS]), {})
    assert (known.due([ORDERS]), known.of(ORDERS)) == ([], WEEK)


def test_a_refusal_forgets_what_was_known_and_is_not_repeated_each_round(clock: Clock) -> None:
    known = Retentions[TopicRetention](PERIOD_S, clock)
    known.note([ORDERS], {ORDERS: WEEK})
    known.note([ORDERS], {ORDERS: None})
    assert (known.of(ORDERS), known.due([ORDERS])) == (None, [])


def test_topics_that_nobody_reads_any_more_are_forgotten(clock: Clock) -> None:
    known = Retentions[TopicRetention](PERIOD_S, clock)
    topics: list[RetentionKey] = [(f"t{number}", None) for number in range(100)]
    known.note(topics, dict.fromkeys(topics, WEEK))
    known.due([("t0", None)])
    assert (known.of(("t0", None)), known.of(("t1", None))) == (WEEK, None)


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
        # (Of the topics, and of the broker how long it keeps offsets.)
        assert sent["DescribeConfigs"] == 2


@pytest.mark.kafka
@pytest.mark.xdist_group("secured")
def test_without_the_right_the_settings_stay_unknown_and_with_it_they_are_told(secured: Secured) -> None:
    literal = ACLResourcePatternType.LITERAL
    rights = [
        (ACLOperation.READ, ResourceType.TOPIC, "__consumer_offsets", literal),
        (ACLOperation.DESCRIBE, ResourceType.GROUP, "*", literal),
        (ACLOperation.DESCRIBE, ResourceType.TOPIC, "*", literal),
        *(
            (operation, ResourceType.TOPIC, "evenkeel.", ACLResourcePatternType.PREFIXED)
            for operation in (ACLOperation.CREATE, ACLOperation.READ, ACLOperation.WRITE)
        ),
    ]
    secured.grant(*rights)
    settings = secured.settings(rounds_topic="evenkeel.settings-rounds", events_topic="evenkeel.settings-events")
    assert _told(settings, secured) == {None}
    secured.grant((ACLOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "*", literal))
    assert _told(settings, secured) == {OF_THE_BROKER}


def _told(settings: Settings, broker: Secured) -> set[TopicRetention | None]:
    """What a new probe tells in its first round, as somebody with all rights reads it."""
    with Probe(settings) as probe:
        closed = probe.round()
    plain = KafkaSettings(bootstrap_servers=broker.broker.bootstrap)
    seen = read_round(settings.model_copy(update={"kafka": plain}), closed)
    return {topic.retention for group in seen.groups for topic in seen.topics(group).values()}


@pytest.mark.kafka
def test_a_round_tells_what_the_broker_says(cluster: Cluster, settings: Settings) -> None:
    [broker] = cluster.admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")], config_filter="all")[
        "broker"
    ].values()
    with Probe(settings) as probe:
        closed = probe.round()
    assert closed.offsets_retention_minutes == int(broker["offsets.retention.minutes"]["value"])


@pytest.mark.kafka
@pytest.mark.xdist_group("secured")
def test_without_the_right_it_stays_unknown_and_with_it_it_is_told(secured: Secured) -> None:
    literal = ACLResourcePatternType.LITERAL
    secured.grant(
        (ACLOperation.READ, ResourceType.TOPIC, "__consumer_offsets", literal),
        (ACLOperation.DESCRIBE, ResourceType.GROUP, "*", literal),
        (ACLOperation.DESCRIBE, ResourceType.TOPIC, "*", literal),
        *(
            (operation, ResourceType.TOPIC, "evenkeel.", ACLResourcePatternType.PREFIXED)
            for operation in (ACLOperation.CREATE, ACLOperation.READ, ACLOperation.WRITE)
        ),
    )
    settings = secured.settings(rounds_topic="evenkeel.retention-rounds", events_topic="evenkeel.retention-events")
    assert _told_of_offsets(settings) is None
    secured.grant((ACLOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, "kafka-cluster", literal))
    assert _told_of_offsets(settings) == 10_080


def _told_of_offsets(settings: Settings) -> int | None:
    """What a new probe tells in its first round."""
    with Probe(settings) as probe:
        return probe.round().offsets_retention_minutes
