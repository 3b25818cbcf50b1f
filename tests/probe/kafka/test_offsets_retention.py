"""How long brokers keep the offsets of groups without members: asked once per heartbeat, and no round is lost by it."""

from __future__ import annotations

import pytest
from kafka.admin import ACLOperation, ACLResourcePatternType, ConfigResource, ConfigResourceType, ResourceType

from streaming.config import Settings
from streaming.probe import Probe
from tests.probe.secured import Secured
from tests.probe.witness import Cluster


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
