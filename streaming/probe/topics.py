"""The probe's two topics: created with sound settings, or one sentence that says why not.

`evenkeel.rounds` has one partition, so that rounds have one order, and LogAppendTime, so that the broker's clock sets
their time. `evenkeel.events` may have any number; the job reads it by the positions in the closing records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from streaming.config import ProbeSettings
from streaming.events import MAX_RECORD_BYTES
from streaming.exceptions import SetupError
from streaming.probe.deadline import error_text

_SEGMENTS_PER_RETENTION = 6
"""Retention deletes whole segments: with this many, at most a sixth more is kept than configured, in few files."""

_LEAST_SEGMENT_MS = 600_000
"""Segments shorter than ten minutes would only mean many small files."""

_SAFE_REPLICAS = 3
"""From three replicas on, `acks=all` can require two and still write while one broker is down."""

_VISIBLE_MS = 15_000
"""Until every partition of a new topic has a leader: normally a second or less."""


def create_missing(admin: Any, settings: ProbeSettings, *, validate_only: bool = False) -> list[str]:
    """Create those of the two topics that are missing, and wait until they can be written.

    Args:
        admin: An open `KafkaAdminClient`.
        settings: Their names, partitions, replicas and retention.
        validate_only: Only ask whether they could be created.

    Returns:
        Names of the topics created.

    Raises:
        SetupError: A right is missing, or the cluster refused a setting.
        KafkaError: The cluster did not answer.
    """
    created = []
    for name in _missing(admin, settings):
        wanted = _wanted(name, settings)
        try:
            replicas = _create(admin, name, wanted, validate_only=True)
            if replicas is not None and replicas >= _SAFE_REPLICAS:
                wanted["configs"]["min.insync.replicas"] = "2"
            if validate_only:
                continue
            _create(admin, name, wanted)
        except TopicAlreadyExistsError:
            continue  # another probe was faster
        except KafkaError as error:
            raise SetupError(_not_created(name, error)) from error
        created.append(name)
    if created:
        admin.wait_for_topics(created, timeout_ms=_VISIBLE_MS)
    return created


@dataclass(frozen=True, slots=True)
class OwnTopic:
    """One of the two topics, as it is.

    Attributes:
        partitions: How many it has.
        configs: Some of its settings by name, as texts; empty without the right DescribeConfigs, which the probe can do
            without: then the first opening record shows whether the time is the broker's.
    """

    partitions: int
    configs: Mapping[str, str]


def own_topics(admin: Any, settings: ProbeSettings) -> dict[str, OwnTopic]:
    """Those of the two topics that exist, by name.

    Raises:
        KafkaError: The cluster did not answer.
    """
    names = [settings.rounds_topic, settings.events_topic]
    found = {topic["name"]: topic for topic in admin.describe_topics(names) if not topic["error_code"]}
    keys = ["cleanup.policy", "message.timestamp.type", "retention.ms"]
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, keys) for name in found]
    told = admin.describe_configs(resources, config_filter="all").get("topic", {}) if resources else {}
    return {
        name: OwnTopic(
            len(topic["partitions"]),
            {key: entry["value"] for key, entry in told.get(name, {}).items() if entry.get("value") is not None},
        )
        for name, topic in found.items()
    }


def wrong_settings(found: Mapping[str, OwnTopic], settings: ProbeSettings) -> list[str]:
    """What is wrong with the topics that exist, a sentence each."""
    sentences = []
    rounds = found.get(settings.rounds_topic)
    if rounds is not None and rounds.partitions != 1:
        sentences.append(
            f"Topic {settings.rounds_topic} has {rounds.partitions} partitions, and rounds need a total order: "
            f"delete it, or choose another name (probe.rounds_topic)."
        )
    for name, topic in found.items():
        if "delete" not in topic.configs.get("cleanup.policy", "delete"):
            sentences.append(
                f"Topic {name} is compacted, which would lose records the job needs: set it with "
                f"kafka-configs --alter --topic {name} --add-config cleanup.policy=delete."
            )
        time = topic.configs.get("message.timestamp.type", "LogAppendTime")
        if name == settings.rounds_topic and time != "LogAppendTime":
            sentences.append(no_own_time(name))
    return sentences


def no_own_time(topic: str) -> str:
    """A sentence for a topic of rounds without the broker's time."""
    return (
        f"Topic {topic} has message.timestamp.type=CreateTime, and rounds need the broker's time: set it with "
        f"kafka-configs --alter --topic {topic} --add-config message.timestamp.type=LogAppendTime."
    )


def _missing(admin: Any, settings: ProbeSettings) -> list[str]:
    names = [settings.rounds_topic, settings.events_topic]
    # A topic that we may not describe counts as missing: the attempt to create it shows which right we lack.
    there = {topic["name"] for topic in admin.describe_topics(names) if not topic["error_code"]}
    return [name for name in names if name not in there]


def _wanted(name: str, settings: ProbeSettings) -> dict[str, Any]:
    is_rounds = name == settings.rounds_topic
    return {
        "num_partitions": 1 if is_rounds else settings.events_partitions,
        "replication_factor": settings.replication_factor,
        "configs": {
            "cleanup.policy": "delete",
            "retention.ms": str(settings.retention_ms),
            "retention.bytes": "-1",
            "segment.ms": str(max(settings.retention_ms // _SEGMENTS_PER_RETENTION, _LEAST_SEGMENT_MS)),
            # For the events too: their retention must not depend on the probe's clock.
            "message.timestamp.type": "LogAppendTime",
            "max.message.bytes": str(MAX_RECORD_BYTES),
            # An out-of-sync leader would bring back offsets that closed rounds have used.
            "unclean.leader.election.enable": "false",
        },
    }


def _create(admin: Any, name: str, wanted: dict[str, Any], *, validate_only: bool = False) -> int | None:
    """Create one topic; returns its replication factor where the broker reports it (Kafka 2.4, KIP-525)."""
    answer = admin.create_topics({name: wanted}, validate_only=validate_only, raise_errors=False)
    [topic] = answer["topics"]
    if topic["error_code"]:
        raise for_code(topic["error_code"])(topic.get("error_message") or "")
    replicas: int | None = topic.get("replication_factor", -1)
    if replicas is not None and replicas > 0:
        return replicas
    return None


def _not_created(name: str, error: KafkaError) -> str:
    if isinstance(error, (TopicAuthorizationFailedError, ClusterAuthorizationFailedError)):
        return (
            f"Topic {name} does not exist (or may not be described) and may not be created: the right Create on "
            f"Topic {name!r} is missing; grant it, or create the topic and grant Read and Write on it."
        )
    return f"Topic {name} could not be created ({error_text(error)}): correct the section probe, or create it."
