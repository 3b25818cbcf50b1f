"""The probe's own topics: created with the right settings, or refused with one sentence."""

from __future__ import annotations

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from streaming.config import ProbeSettings, Settings
from streaming.exceptions import SetupError
from streaming.probe import Probe, check
from streaming.probe.topics import OwnTopic, wrong_settings
from tests.probe.witness import Cluster


def configuration(cluster: Cluster, topic: str) -> dict[str, str]:
    found = cluster.admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
    return {name: entry["value"] for name, entry in found["topic"][topic].items()}


@pytest.mark.kafka
def test_missing_topics_are_created_with_sound_settings(cluster: Cluster, settings: Settings) -> None:
    with Probe(settings) as probe:
        probe.round()
    probe_settings = settings.probe
    described = {
        topic["name"]: len(topic["partitions"])
        for topic in cluster.admin.describe_topics([probe_settings.rounds_topic, probe_settings.events_topic])
    }
    assert described == {probe_settings.rounds_topic: 1, probe_settings.events_topic: 4}
    for topic in described:
        config = configuration(cluster, topic)
        assert config["message.timestamp.type"] == "LogAppendTime"
        assert config["cleanup.policy"] == "delete"
        assert config["retention.ms"] == str(3 * 86_400_000)
        # Only whole segments are deleted: with segments of a week three days would become ten.
        assert int(config["segment.ms"]) <= 86_400_000
        assert config["unclean.leader.election.enable"] == "false"


@pytest.mark.kafka
def test_topics_that_exist_are_used_as_they_are(cluster: Cluster, settings: Settings) -> None:
    config = {"message.timestamp.type": "LogAppendTime", "retention.ms": "60000"}
    cluster.admin.create_topics(
        {
            settings.probe.rounds_topic: {"num_partitions": 1, "replication_factor": 1, "configs": config},
            settings.probe.events_topic: {"num_partitions": 7, "replication_factor": 1},
        },
        wait_for_metadata=True,
    )
    assert check(settings) == []
    with Probe(settings) as probe:
        probe.round()
    assert configuration(cluster, settings.probe.rounds_topic)["retention.ms"] == "60000"


@pytest.mark.kafka
def test_a_rounds_topic_with_the_writers_time_is_refused(cluster: Cluster, settings: Settings) -> None:
    name = settings.probe.rounds_topic
    cluster.admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    sentence = (
        f"Topic {name} has message.timestamp.type=CreateTime, and rounds need the broker's time: set it with "
        f"kafka-configs --alter --topic {name} --add-config message.timestamp.type=LogAppendTime."
    )
    assert check(settings) == [sentence]
    # Without the right to read the configuration, the opening record shows it.
    with Probe(settings) as probe, pytest.raises(SetupError) as refused:
        probe.round()
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("topic", "is_wrong"),
    [
        (OwnTopic(1, {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}), None),
        (OwnTopic(1, {}), None),
        (OwnTopic(2, {}), "has 2 partitions, and rounds need a total order"),
        (OwnTopic(1, {"cleanup.policy": "compact"}), "is compacted"),
        (OwnTopic(1, {"message.timestamp.type": "CreateTime"}), "has message.timestamp.type=CreateTime"),
    ],
)
def test_a_rounds_topic_that_cannot_hold_rounds_is_refused(topic: OwnTopic, is_wrong: str | None) -> None:
    told = wrong_settings({"evenkeel.rounds": topic}, ProbeSettings())
    expected = [] if is_wrong is None else [f"Topic evenkeel.rounds {is_wrong}"]
    assert [sentence[: len(start)] for sentence, start in zip(told, expected, strict=True)] == expected


@pytest.mark.kafka
def test_settings_that_the_cluster_refuses_are_said_in_a_sentence(cluster: Cluster, settings: Settings) -> None:
    too_many = settings.probe.model_copy(update={"replication_factor": 3})
    [problem] = check(settings.model_copy(update={"probe": too_many}))
    assert str(problem).startswith(
        f"Topic {settings.probe.rounds_topic} could not be created (InvalidReplicationFactor"
    )
