"""How long brokers keep the offsets of groups without members: asked once per heartbeat, and no round is lost by it."""

from __future__ import annotations

import pytest
from kafka.admin import ACLOperation, ACLResourcePatternType, ConfigResource, ConfigResourceType, ResourceType

from streaming.config import Settings
from streaming.probe import Probe
from streaming.probe.kafka.retention import OffsetsRetention
from tests.probe.secured import Secured
from tests.probe.witness import Cluster

PERIOD_S = 600.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_brokers_are_asked_once_within_the_period_and_sooner_without_an_answer() -> None:
    clock = Clock()
    known = OffsetsRetention(PERIOD_S, clock)
    assert (known.is_due, known.minutes) == (True, None)
    known.note_answer(1_440)
    clock.now = PERIOD_S - 1
    assert (known.is_due, known.minutes) == (False, 1_440)
    clock.now = PERIOD_S
    assert known.is_due
    known.postpone()
    assert (known.is_due, known.minutes) == (False, 1_440)
    clock.now += 60
    assert known.is_due


def test_an_answer_that_cannot_be_renewed_is_not_believed_for_ever() -> None:
    clock = Clock()
    known = OffsetsRetention(PERIOD_S, clock)
    known.note_answer(1_440)
    clock.now = 3 * PERIOD_S + 1
    assert known.minutes is None


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
def test_without_the_right_it_stays_unknown_and_with_it_it_is_told(secured_broker: Secured) -> None:
    literal = ACLResourcePatternType.LITERAL
    secured_broker.grant(
        (ACLOperation.READ, ResourceType.TOPIC, "__consumer_offsets", literal),
        (ACLOperation.DESCRIBE, ResourceType.GROUP, "*", literal),
        (ACLOperation.DESCRIBE, ResourceType.TOPIC, "*", literal),
        *(
            (operation, ResourceType.TOPIC, "evenkeel.", ACLResourcePatternType.PREFIXED)
            for operation in (ACLOperation.CREATE, ACLOperation.READ, ACLOperation.WRITE)
        ),
    )
    try:
        settings = secured_broker.settings(
            rounds_topic="evenkeel.retention-rounds", events_topic="evenkeel.retention-events"
        )
        assert _told(settings) is None
        secured_broker.grant((ACLOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, "kafka-cluster", literal))
        assert _told(settings) == 10_080
    finally:
        secured_broker.revoke_all()


def _told(settings: Settings) -> int | None:
    """What a new probe tells in its first round."""
    with Probe(settings) as probe:
        return probe.round().offsets_retention_minutes
