"""The requests of a round, batched per broker, on the connections of kafka-python's admin client.

The admin client's own methods ask one coordinator after the other, decode members on the way, raise at the first
bad partition, and look coordinators up. Here the request objects are kafka-python's (`kafka.protocol`), sent
through its connection manager (`KafkaAdminClient._manager`: private, so the release is pinned): all brokers at
once, one request after the other on each, because a connection takes no more than five in flight.

How many a round sends, with B brokers, L of them leading partitions of the offsets log, g watched groups on a
broker and p partitions of their topics on a broker:

    Metadata       2
    ListOffsets    2 L + 3 Σ ceil(p / PARTITIONS_PER_REQUEST)
    ListGroups     B
    DescribeGroups Σ ceil(g / GROUPS_PER_REQUEST)          of the classic groups that may have members
    ConsumerGroupDescribe  the same                        of the groups of the consumer protocol
    OffsetFetch    Σ ceil(g / GROUPS_PER_REQUEST)          one per group before Kafka 3.0 (KIP-709)
    DescribeProducers, ListTransactions                    at most L and B, while it is not known who holds back the log

Partitions whose leader moved meanwhile are asked for once more (a Metadata, the ListOffsets of these), groups that
are no longer listed too (at most a DescribeGroups per GROUPS_PER_REQUEST and a ListGroups per broker).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from threading import Event
from typing import Any, TypeVar

from kafka.errors import KafkaError, NodeNotReadyError, for_code
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.admin.transactions import DescribeProducersRequest, ListTransactionsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest

from streaming.offsets_log.topic_id import printed
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError, told
from streaming.probe.messages import ConsumerGroupDescribeRequest
from streaming.probe.observe import Group

__all__ = [
    "GROUPS_PER_REQUEST",
    "PARTITIONS_PER_REQUEST",
    "Answer",
    "Committed",
    "Leader",
    "Metadata",
    "OffsetKind",
    "Refused",
    "Requests",
    "TopicPlaces",
]

GROUPS_PER_REQUEST = 100
"""An answer holds the members' subscriptions and assignments: at 100 groups of 50 members some megabytes.

Fewer would cost round trips (each under a millisecond at best), many more could pass the 100 MB that a client reads.
"""

PARTITIONS_PER_REQUEST = 20_000
"""About 1 MB of answer; a broker seldom leads more partitions."""

_NOT_READY_PAUSE_S = 0.05
"""A connection in back-off or throttled by a quota says so at once; how long until it is asked again."""

_OK, _TOPIC_UNKNOWN, _TOPIC_INVALID, _TOPIC_FORBIDDEN, _GROUP_FORBIDDEN, _GROUP_UNKNOWN = 0, 3, 17, 29, 30, 69

_T = TypeVar("_T")

# Node id of the leader; None while there is none.
Leader = int | None


class OffsetKind(Enum):
    """Which offset ListOffsets is asked for: (timestamp, isolation level) of the request."""

    END = (-1, 0)
    STABLE = (-1, 1)
    START = (-2, 0)


class Refused(Enum):
    """Why an answer is missing."""

    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TopicPlaces:
    """Where a topic lives.

    Attributes:
        topic_id: Kafka's printed id; None when the broker tells none.
        leaders: Per partition.
        racks: Racks of the replicas per partition; a replica whose broker has none, or is down, is left out.
    """

    topic_id: str | None
    leaders: tuple[Leader, ...]
    racks: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group has committed.

    Attributes:
        topics: Topics that it has offsets for.
        mark: Stands for all its offsets: the same as long as none of them changes.
    """

    topics: frozenset[str]
    mark: int


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


# A described group, of the class that kafka-python builds from the message's schema.
Answer = Any


class Requests:
    """Sends the requests of rounds; counts them in `sent` by name until `sent` is cleared."""

    def __init__(self, admin: Any) -> None:
        """Use an open `KafkaAdminClient`, which stays the caller's to close."""
        self._manager = admin._manager  # noqa: SLF001  (see the module's docstring)
        self.sent: Counter[str] = Counter()

    def metadata(self, topics: Iterable[str], deadline: Deadline) -> Metadata:
        """Ask any broker where topics live, and which brokers there are; never creates a topic.

        Raises:
            RoundAbandonedError: No answer in time, or an error that passes.
        """
        request = MetadataRequest(topics=[_topic(name) for name in topics], allow_auto_topic_creation=False)
        [answer] = self._ask([(None, request)], deadline)
        racks = {broker.node_id: broker.rack for broker in answer.brokers}
        return Metadata(
            answer.cluster_id,
            tuple(sorted(racks)),
            any(rack is not None for rack in racks.values()),
            {topic.name: _places(topic, racks) for topic in answer.topics},
        )

    def list_groups(self, brokers: Iterable[int], deadline: Deadline) -> list[Group]:
        """Ask brokers for the groups that they coordinate; a group that two of them list comes twice.

        Raises:
            RoundAbandonedError: A broker did not answer, or is still loading groups, so that some would be missing.
        """
        nodes = list(brokers)
        answers = self._ask([(node, ListGroupsRequest()) for node in nodes], deadline)
        groups: list[Group] = []
        for node, answer in zip(nodes, answers, strict=True):
            _demand(answer.error_code, f"broker {node} could not list its groups")
            version = answer.API_VERSION
            groups.extend(
                Group(
                    group.group_id,
                    node,
                    group.group_state if version >= 4 else None,
                    group.protocol_type,
                    group.group_type.lower() if version >= 5 else None,
                )
                for group in answer.groups
            )
        return groups

    def describe_groups(self, groups: Mapping[str, int], deadline: Deadline) -> dict[str, Answer | Refused]:
        """Ask coordinators for groups of the classic protocol.

        Args:
            groups: Coordinator (node id) per group.
            deadline: Of the round.

        Returns:
            Kafka's `DescribedGroup` per group, or why there is none; `Refused.UNKNOWN` also for a group of another
            type.

        Raises:
            RoundAbandonedError: A coordinator did not answer or has moved.
        """
        work = [
            (node, DescribeGroupsRequest(groups=chunk, include_authorized_operations=False))
            for node, chunk in _chunks_by_node(groups, GROUPS_PER_REQUEST)
        ]
        return self._described(work, deadline)

    def describe_consumer_groups(self, groups: Mapping[str, int], deadline: Deadline) -> dict[str, Answer | Refused]:
        """Ask coordinators for groups of the consumer protocol (KIP-848); as `describe_groups`.

        Kafka 4 refuses to tell of a group with a topic that we may not describe: `Refused.FORBIDDEN` too.
        """
        if ConsumerGroupDescribeRequest.API_KEY not in self._manager.broker_version_data.api_versions:
            return dict.fromkeys(groups, Refused.UNKNOWN)
        work = [
            (node, ConsumerGroupDescribeRequest(group_ids=chunk, include_authorized_operations=False))
            for node, chunk in _chunks_by_node(groups, GROUPS_PER_REQUEST)
        ]
        return self._described(work, deadline)

    def _described(self, work: Sequence[tuple[int, Any]], deadline: Deadline) -> dict[str, Answer | Refused]:
        return {
            group.group_id: _refused(group, group.group_id) or group
            for answer in self._ask(work, deadline)
            for group in answer.groups
        }

    def forbidden_groups(self, groups: Sequence[str], broker: int, deadline: Deadline) -> list[str]:
        """Which of some groups we may not describe; any broker knows, whether or not the groups exist.

        Raises:
            RoundAbandonedError: The broker did not answer.
        """
        request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)
        [answer] = self._ask([(broker, request)], deadline)
        return [group.group_id for group in answer.groups if group.error_code == _GROUP_FORBIDDEN]

    def committed(self, groups: Mapping[str, int], deadline: Deadline) -> dict[str, Committed | Refused]:
        """Ask coordinators for groups' committed offsets.

        Args:
            groups: Coordinator (node id) per group.
            deadline: Of the round.

        Raises:
            RoundAbandonedError: A coordinator did not answer or has moved.
        """
        if self._manager.broker_version_data.api_version(OffsetFetchRequest) < 8:
            return self._committed_one_by_one(groups, deadline)
        one = OffsetFetchRequest.OffsetFetchRequestGroup
        work = [
            # v10 names topics by id only.
            (
                node,
                OffsetFetchRequest(groups=[one(group_id=g, topics=None) for g in chunk], min_version=8, max_version=9),
            )
            for node, chunk in _chunks_by_node(groups, GROUPS_PER_REQUEST)
        ]
        found: dict[str, Committed | Refused] = {}
        for answer in self._ask(work, deadline):
            for group in answer.groups:
                found[group.group_id] = _refused(group, group.group_id) or _committed(group)
        return found

    def _committed_one_by_one(self, groups: Mapping[str, int], deadline: Deadline) -> dict[str, Committed | Refused]:
        work = [
            (node, OffsetFetchRequest(group_id=group, topics=None, min_version=2, max_version=7))
            for group, node in groups.items()
        ]
        answers = self._ask(work, deadline)
        return {
            group: _refused(answer, group) or _committed(answer) for group, answer in zip(groups, answers, strict=True)
        }

    def offsets(
        self, kind: OffsetKind, leaders: Mapping[tuple[str, int], int], deadline: Deadline
    ) -> dict[tuple[str, int], int]:
        """Ask leaders for one kind of offset.

        Args:
            kind: Which.
            leaders: Leader (node id) per (topic, partition).
            deadline: Of the round.

        Returns:
            Offset per (topic, partition); a partition that its leader refused (it moved, is gone, has no offset to
            tell yet) is missing.

        Raises:
            RoundAbandonedError: A leader did not answer.
        """
        timestamp, isolation = kind.value
        of_topic = ListOffsetsRequest.ListOffsetsTopic
        work = []
        for node, chunk in _chunks_by_node(leaders, PARTITIONS_PER_REQUEST):
            topics: dict[str, list[int]] = {}
            for topic, partition in chunk:
                topics.setdefault(topic, []).append(partition)
            request = ListOffsetsRequest(
                isolation_level=isolation,
                topics=[
                    of_topic(
                        name=topic,
                        partitions=[
                            of_topic.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                            for index in partitions
                        ],
                    )
                    for topic, partitions in topics.items()
                ],
                min_version=2,
            )
            work.append((node, request))
        return {
            (topic.name, partition.partition_index): partition.offset
            for answer in self._ask(work, deadline)
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code == _OK and partition.offset >= 0
        }

    def open_transactions(
        self, leaders: Mapping[tuple[str, int], int], deadline: Deadline
    ) -> dict[tuple[str, int], dict[int, int]]:
        """Ask leaders for the open transactions of partitions (KIP-664).

        Args:
            leaders: Leader (node id) per (topic, partition).
            deadline: Of the question.

        Returns:
            Per (topic, partition) the producer id of each open transaction by its first offset; a partition that its
            leader does not tell of (the right Read on the topic is missing, a broker before 2.8) is missing.

        Raises:
            RoundAbandonedError: A leader did not answer.
        """
        if DescribeProducersRequest.API_KEY not in self._manager.broker_version_data.api_versions:
            return {}
        of_topic = DescribeProducersRequest.TopicRequest
        work = []
        for node, chunk in _chunks_by_node(leaders, PARTITIONS_PER_REQUEST):
            topics: dict[str, list[int]] = {}
            for topic, partition in chunk:
                topics.setdefault(topic, []).append(partition)
            asked = [of_topic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()]
            work.append((node, DescribeProducersRequest(topics=asked)))
        return {
            (topic.name, partition.partition_index): {
                producer.current_txn_start_offset: producer.producer_id
                for producer in partition.active_producers
                if producer.current_txn_start_offset >= 0
            }
            for answer in self._ask(work, deadline)
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code == _OK
        }

    def transactional_ids(self, producers: Iterable[int], brokers: Iterable[int], deadline: Deadline) -> dict[int, str]:
        """Ask all brokers, as coordinators of transactions, for the transactional ids of producers.

        Returns:
            Transactional id by producer id; one that no coordinator knows, or that we may not describe, is missing.

        Raises:
            RoundAbandonedError: A broker did not answer.
        """
        if ListTransactionsRequest.API_KEY not in self._manager.broker_version_data.api_versions:
            return {}
        request = {"state_filters": [], "producer_id_filters": sorted(producers)}
        work = [(node, ListTransactionsRequest(**request)) for node in brokers]
        return {
            found.producer_id: found.transactional_id
            for answer in self._ask(work, deadline)
            if answer.error_code == _OK
            for found in answer.transaction_states
        }

    def _ask(self, work: Sequence[tuple[int | None, Any]], deadline: Deadline) -> list[Any]:
        """Send (broker, request) pairs, to all brokers at once, in order on each; answers in the order of `work`."""
        answers: list[Any] = [None] * len(work)
        places: dict[int | None, list[int]] = {}
        for place, (node, _) in enumerate(work):
            places.setdefault(node, []).append(place)

        async def series(node: int | None) -> None:
            for place in places[node]:
                answers[place] = await self._send(node, work[place][1], deadline)

        try:
            for future in [self._manager.call_soon(series, node) for node in places]:
                _result(future, deadline)
        except RuntimeError as error:
            # kafka-python's IO loop ended.
            message = f"the connections to the cluster were closed ({error})"
            raise RoundAbandonedError(message) from error
        return answers

    async def _send(self, node: int | None, request: Any, deadline: Deadline) -> Any:
        self.sent[request.name.removesuffix("Request")] += 1
        while True:
            try:
                answer = await self._manager.send(
                    request, node_id=node, request_timeout_ms=max(1, int(deadline.remaining() * 1000))
                )
            except NodeNotReadyError:
                await self._manager._net.sleep(_NOT_READY_PAUSE_S)  # noqa: SLF001  (see the module's docstring)
            except KafkaError as error:
                place = "a broker" if node is None else f"broker {node}"
                message = f"{place} did not answer {request.name.removesuffix('Request')} ({told(error)})"
                raise RoundAbandonedError(message) from error
            else:
                if isinstance(request, MetadataRequest):
                    # Else a broker that joined would be unknown to the manager until its own next refresh.
                    self._manager.cluster.update_metadata(answer)
                return answer


def _result(future: Any, deadline: Deadline) -> None:
    done = Event()
    future.add_both(lambda _: done.set())
    deadline.wait(done.wait)
    if future.exception is not None:
        raise future.exception


def _topic(name: str) -> Any:
    return MetadataRequest.MetadataRequestTopic(name=name)


def _places(topic: Any, racks: Mapping[int, str | None]) -> TopicPlaces | Refused:
    if topic.error_code == _TOPIC_FORBIDDEN:
        return Refused.FORBIDDEN
    if topic.error_code in (_TOPIC_UNKNOWN, _TOPIC_INVALID):
        return Refused.UNKNOWN
    _demand(topic.error_code, f"topic {topic.name!r} has no metadata")
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    if [partition.partition_index for partition in partitions] != list(range(len(partitions))):
        message = f"the metadata of topic {topic.name!r} has holes"
        raise RoundAbandonedError(message)
    return TopicPlaces(
        printed(topic.topic_id.bytes) if topic.topic_id else None,
        tuple(partition.leader_id if partition.leader_id in racks else None for partition in partitions),
        tuple(
            # (An empty rack is one: clients take it for a rack like any other.)
            tuple([rack for replica in partition.replica_nodes if (rack := racks.get(replica)) is not None])
            for partition in partitions
        ),
    )


def _refused(answer: Any, group: str) -> Refused | None:
    if answer.error_code in (_GROUP_FORBIDDEN, _TOPIC_FORBIDDEN):
        return Refused.FORBIDDEN
    if answer.error_code == _GROUP_UNKNOWN:
        return Refused.UNKNOWN
    _demand(answer.error_code, f"the coordinator of group {group!r} refused to tell of it")
    return None


def _committed(group: Any) -> Committed:
    offsets = [
        (topic.name, partition.partition_index, partition.committed_offset)
        for topic in group.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    ]
    # (A coordinator promises no order.)
    return Committed(frozenset({topic for topic, _, _ in offsets}), hash(frozenset(offsets)))


def _demand(error_code: int, what: str) -> None:
    if error_code != _OK:
        message = f"{what} ({for_code(error_code).__name__})"
        raise RoundAbandonedError(message)


def _chunks_by_node(nodes: Mapping[_T, int], size: int) -> Iterator[tuple[int, list[_T]]]:
    by_node: dict[int, list[_T]] = {}
    for thing, node in nodes.items():
        by_node.setdefault(node, []).append(thing)
    for node, things in by_node.items():
        for start in range(0, len(things), size):
            yield node, things[start : start + size]
