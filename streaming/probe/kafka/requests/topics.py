"""Requests about topics, and the brokers that are up.

Metadata and DescribeConfigs of topics go to any broker, DescribeConfigs of brokers to all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeVar

from kafka.admin import ACLOperation
from kafka.errors import for_code
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from streaming.offsets_log import printed
from streaming.probe.clients import Connections, chunks_by_node
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.brokers import Host
from streaming.records import TopicRetention

OK = 0
GROUP_FORBIDDEN = 30
TOPIC_FORBIDDEN = 29
CLUSTER_FORBIDDEN = 31
_TOPIC_UNKNOWN, _TOPIC_INVALID, _GROUP_UNKNOWN = 3, 17, 69


class Refused(Enum):
    """Why an answer is missing."""

    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"
    FAILED = "failed"


def refusal_of_topic(answer: Any) -> Refused | None:
    """Why a topic's metadata are missing; None when they are there.

    Raises:
        RoundAbandonedError: For a temporary reason.
    """
    if answer.error_code == TOPIC_FORBIDDEN:
        return Refused.FORBIDDEN
    if answer.error_code in (_TOPIC_UNKNOWN, _TOPIC_INVALID):
        return Refused.UNKNOWN
    demand(answer.error_code, f"topic {answer.name!r} has no metadata")
    return None


def refusal_of_group(answer: Any, group: str) -> Refused | None:
    """Why a coordinator does not answer for a group; None when it does.

    Raises:
        RoundAbandonedError: For a temporary reason.
    """
    if answer.error_code in (GROUP_FORBIDDEN, TOPIC_FORBIDDEN):
        return Refused.FORBIDDEN
    if answer.error_code == _GROUP_UNKNOWN:
        return Refused.UNKNOWN
    if answer.error_code != OK and not for_code(answer.error_code).retriable:
        return Refused.FAILED
    demand(answer.error_code, f"the coordinator of group {group!r} refused to describe it")
    return None


def demand(error_code: int, what: str) -> None:
    """Abandon the round unless there was no error."""
    if error_code != OK:
        message = f"{what} ({for_code(error_code).__name__})"
        raise RoundAbandonedError(message)


CONFIGS_PER_REQUEST = 250
"""Some 60 KB of answer, which a broker makes in a few milliseconds."""

_TOPIC_RESOURCE = 2
_BROKER_RESOURCE = 4
_GROUP_RESOURCE = 32
_RETENTION_KEYS = ("retention.ms", "retention.bytes", "cleanup.policy", "message.timestamp.type")
_OFFSETS_RETENTION = "offsets.retention.minutes"
_LOCK, _LIMIT = "share.record.lock.duration.ms", "share.delivery.count.limit"
_DEAD_LETTERS = "errors.deadletterqueue.topic.name"
_OF_STREAMS = "streams."
_REPLICAS = f"{_OF_STREAMS}num.standby.replicas"

_OPERATIONS = {operation.value for operation in ACLOperation}
"""What this release of kafka-python knows."""

_Node = TypeVar("_Node", int, None)

# Node id of the leader; None while there is none.
Leader = int | None


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """The leaders and racks of one topic.

    Attributes:
        topic_id: Kafka's printed id; None when the broker gives none.
        leaders: Per partition.
        racks: Racks of the replicas per partition, without replicas whose broker has no rack or is down.
        leader_epochs: Leader epoch per partition; -1 from brokers before 2.1.
    """

    topic_id: str | None
    leaders: tuple[Leader, ...]
    racks: tuple[tuple[str, ...], ...]
    leader_epochs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Metadata:
    """One answer to a Metadata request.

    Attributes:
        cluster_id: Kafka's own id; None from brokers before 0.10.1.
        brokers: Node ids of the brokers that are up.
        racks: Whether any broker has a rack.
        topics: Per topic asked for.
        hosts: Host and rack of the brokers, by node id.
    """

    cluster_id: str | None
    brokers: tuple[int, ...]
    racks: bool
    topics: Mapping[str, TopicMetadata | Refused]
    hosts: Mapping[int, Host] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """How a share group delivers, as a broker has it in force; as in `SeenShares`."""

    lock_ms: int | None
    limit: int | None
    dead_letters: str | None


UNTOLD: Final = ShareSettings(None, None, None)
"""Where nobody tells it."""


class MetadataRequests(Connections):
    """Asks any broker for the partitions and settings of topics."""

    def ask_metadata(self, topics: Iterable[str] | None, deadline: Deadline, *, rights: bool = False) -> Any:
        """Ask any broker for topics, None for all, and for the brokers that are up; never creates a topic.

        Args:
            topics: Their names.
            deadline: For the answer.
            rights: Ask also for this client's rights on them (KIP-430).

        Raises:
            RoundAbandonedError: No answer in time.
        """
        of_topic = MetadataRequest.MetadataRequestTopic
        names = None if topics is None else [of_topic(name=name) for name in topics]
        request = MetadataRequest(
            topics=names,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=rights,
            min_version=4,
        )
        [answer] = self.ask([(None, request)], deadline)
        return answer

    def rights(self, topics: Iterable[str], deadline: Deadline) -> Mapping[str, set[ACLOperation]] | None:
        """Rights on topics; a topic that does not exist is missing, one that we may not see has no rights.

        None from brokers before 2.3, where only an attempt shows it. Raises as `ask_metadata`.
        """
        answer = self.ask_metadata(topics, deadline, rights=True)
        if answer.API_VERSION < 8:
            return None
        return {
            topic.name: {ACLOperation(right) for right in topic.authorized_operations or () if right in _OPERATIONS}
            for topic in answer.topics
            if topic.error_code in (OK, TOPIC_FORBIDDEN)
        }

    def metadata(self, topics: Iterable[str], deadline: Deadline) -> Metadata:
        """Topics, and the brokers that are up.

        A broker of the ZooKeeper era that starts answers before its controller has told it anything: that there are no
        brokers and no topics. (kafka-python's own client ignores such an answer, too.)

        Raises:
            RoundAbandonedError: Such an answer, none in time, or a temporary error.
        """
        answer = self.ask_metadata(topics, deadline)
        if not answer.brokers:
            message = "the broker that was asked knows no brokers yet, as one that is starting"
            raise RoundAbandonedError(message)
        racks = {broker.node_id: broker.rack for broker in answer.brokers}
        return Metadata(
            answer.cluster_id,
            tuple(sorted(racks)),
            any(rack is not None for rack in racks.values()),
            {topic.name: _topic_metadata(topic, racks) for topic in answer.topics},
            {broker.node_id: Host(broker.host, broker.rack) for broker in answer.brokers},
        )

    def topics(self, topics: Sequence[str] | None, deadline: Deadline) -> dict[str, TopicMetadata | Refused]:
        """Topics by their names, or all that we may see.

        Args:
            topics: Their names; None for all but Kafka's internal ones.
            deadline: For the answer.

        Returns:
            The answer per topic; one that is in trouble, as while it is being created, is missing.

        Raises:
            RoundAbandonedError: No answer in time.
        """
        answer = self.ask_metadata(topics, deadline)
        racks = {broker.node_id: broker.rack for broker in answer.brokers}
        found: dict[str, TopicMetadata | Refused] = {}
        for topic in answer.topics:
            if topics is None and topic.is_internal:
                continue
            try:
                found[topic.name] = _topic_metadata(topic, racks)
            except RoundAbandonedError:
                continue
        return found

    def retentions(self, topics: Sequence[str], deadline: Deadline) -> dict[str, TopicRetention | Refused]:
        """Ask any broker for how long topics keep their records (DescribeConfigs).

        Returns:
            What the settings say, per topic. Missing if they cannot be read for another reason than a right.

        Raises:
            RoundAbandonedError: No answer in time.
        """
        answers = self._configs(_TOPIC_RESOURCE, dict.fromkeys(topics), _RETENTION_KEYS, deadline)
        return {name: one if isinstance(one, Refused) else _retention(one) for name, one in answers.items()}

    def offsets_retention(self, brokers: Sequence[int], deadline: Deadline) -> int | Refused | None:
        """Ask each broker how long it keeps the offsets of groups without members (DescribeConfigs).

        Returns:
            `offsets.retention.minutes`, where all brokers say the same; None where they differ, or do not say.

        Raises:
            RoundAbandonedError: No answer in time.
        """
        asked = {str(node): node for node in brokers}
        answers = self._configs(_BROKER_RESOURCE, asked, [_OFFSETS_RETENTION], deadline)
        if Refused.FORBIDDEN in answers.values():
            return Refused.FORBIDDEN
        said = {one[_OFFSETS_RETENTION] for one in answers.values() if not isinstance(one, Refused)}
        minutes = said.pop() if len(said) == 1 and len(answers) == len(brokers) else None
        if minutes is not None and int(minutes) > 0:
            return int(minutes)
        return None

    def share_settings(self, groups: Sequence[str], deadline: Deadline) -> dict[str, ShareSettings | Refused]:
        """Ask any broker for how share groups deliver (DescribeConfigs).

        Returns:
            What the settings say, per group. Missing if they cannot be read for another reason than a right.

        Raises:
            RoundAbandonedError: No answer in time.
        """
        keys = (_LOCK, _LIMIT)
        # Brokers before 4.4 do not know the third.
        answers = self._configs(_GROUP_RESOURCE, dict.fromkeys(groups), keys, deadline, [_DEAD_LETTERS])
        return {name: one if isinstance(one, Refused) else _share_settings(one) for name, one in answers.items()}

    def streams_settings(self, groups: Sequence[str], deadline: Deadline) -> dict[str, dict[str, str] | Refused]:
        """Ask any broker for the settings that the task assignor goes by (DescribeConfigs); as `share_settings`.

        Returns:
            By the names that a streams group's epoch records since Kafka 4.2.
        """
        answers = self._configs(_GROUP_RESOURCE, dict.fromkeys(groups), (_REPLICAS,), deadline)
        own = _REPLICAS.removeprefix(_OF_STREAMS)
        return {name: one if isinstance(one, Refused) else {own: one[_REPLICAS]} for name, one in answers.items()}

    def _configs(
        self,
        kind: int,
        asked: Mapping[str, _Node],
        keys: Sequence[str],
        deadline: Deadline,
        more: Sequence[str] = (),
    ) -> dict[str, Mapping[str, str] | Refused]:
        """Ask a broker each, None for any, for some settings of resources of a kind.

        A resource that has not all of `keys` is missing.
        """
        if not self.knows(DescribeConfigsRequest):
            return {}
        of = DescribeConfigsRequest.DescribeConfigsResource
        work = []
        for node, names in chunks_by_node(asked, CONFIGS_PER_REQUEST):
            wanted = [*keys, *more]
            resources = [of(resource_type=kind, resource_name=name, configuration_keys=wanted) for name in names]
            request = DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
            work.append((node, request))
        found: dict[str, Mapping[str, str] | Refused] = {}
        for answer in self.ask(work, deadline):
            for resource in answer.results:
                values = {config.name: config.value for config in resource.configs}
                if resource.error_code in (TOPIC_FORBIDDEN, CLUSTER_FORBIDDEN, GROUP_FORBIDDEN):
                    found[resource.resource_name] = Refused.FORBIDDEN
                elif resource.error_code == OK and all(values.get(key) is not None for key in keys):
                    found[resource.resource_name] = values
        return found


def _share_settings(values: Mapping[str, str]) -> ShareSettings:
    return ShareSettings(int(values[_LOCK]), int(values[_LIMIT]), values.get(_DEAD_LETTERS) or None)


def _retention(values: Mapping[str, str]) -> TopicRetention:
    return TopicRetention(
        # Any negative number means without limit; brokers accept them all for `retention.bytes`.
        ms=max(-1, int(values["retention.ms"])),
        bytes=max(-1, int(values["retention.bytes"])),
        deletes="delete" in values["cleanup.policy"],
        append_time=values["message.timestamp.type"] == "LogAppendTime",
        compacts="compact" in values["cleanup.policy"],
    )


def _topic_metadata(topic: Any, racks: Mapping[int, str | None]) -> TopicMetadata | Refused:
    if refusal := refusal_of_topic(topic):
        return refusal
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    if [partition.partition_index for partition in partitions] != list(range(len(partitions))):
        message = f"the metadata of topic {topic.name!r} has holes"
        raise RoundAbandonedError(message)
    return TopicMetadata(
        printed(topic.topic_id.bytes) if topic.topic_id else None,
        tuple(partition.leader_id if partition.leader_id in racks else None for partition in partitions),
        tuple(
            # An empty rack counts: clients treat it like any other.
            tuple([rack for replica in partition.replica_nodes if (rack := racks.get(replica)) is not None])
            for partition in partitions
        ),
        tuple([-1 if partition.leader_epoch is None else partition.leader_epoch for partition in partitions]),
    )
