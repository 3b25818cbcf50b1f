"""Leaders and replicas of topics: Metadata requests, sent to any broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.metadata import MetadataRequest

from streaming.offsets_log import printed
from streaming.probe.connections import Connections
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError
from streaming.probe.requests.refused import Refused, refusal_of_topic

__all__ = ["Leader", "Metadata", "MetadataRequests", "TopicPlaces"]

# Node id of the leader; None while there is none.
Leader = int | None


@dataclass(frozen=True, slots=True)
class TopicPlaces:
    """The leaders and racks of one topic.

    Attributes:
        topic_id: Kafka's printed id; None when the broker gives none.
        leaders: Per partition.
        racks: Racks of the replicas per partition, without replicas whose broker has no rack or is down.
    """

    topic_id: str | None
    leaders: tuple[Leader, ...]
    racks: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """One answer to a Metadata request.

    Attributes:
        cluster_id: Kafka's own id; None from brokers before 0.10.1.
        brokers: Node ids of the brokers that are up.
        racks: Whether any broker has a rack.
        topics: Per topic asked for.
    """

    cluster_id: str | None
    brokers: tuple[int, ...]
    racks: bool
    topics: Mapping[str, TopicPlaces | Refused]


class MetadataRequests:
    """Asks any broker for the places of topics."""

    def __init__(self, connections: Connections) -> None:
        """Ask over these connections."""
        self._connections = connections

    def metadata(self, topics: Iterable[str], deadline: Deadline) -> Metadata:
        """Ask any broker for topics and for the brokers that are up; never creates a topic.

        Raises:
            RoundAbandonedError: No answer in time, or a temporary error.
        """
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
        )
        [answer] = self._connections.ask([(None, request)], deadline)
        racks = {broker.node_id: broker.rack for broker in answer.brokers}
        return Metadata(
            answer.cluster_id,
            tuple(sorted(racks)),
            any(rack is not None for rack in racks.values()),
            {topic.name: _places(topic, racks) for topic in answer.topics},
        )


def _places(topic: Any, racks: Mapping[int, str | None]) -> TopicPlaces | Refused:
    if refusal := refusal_of_topic(topic):
        return refusal
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    if [partition.partition_index for partition in partitions] != list(range(len(partitions))):
        message = f"the metadata of topic {topic.name!r} has holes"
        raise RoundAbandonedError(message)
    return TopicPlaces(
        printed(topic.topic_id.bytes) if topic.topic_id else None,
        tuple(partition.leader_id if partition.leader_id in racks else None for partition in partitions),
        tuple(
            # (An empty rack counts: clients treat it like any other.)
            tuple([rack for replica in partition.replica_nodes if (rack := racks.get(replica)) is not None])
            for partition in partitions
        ),
    )
