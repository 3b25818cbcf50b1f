"""Requests about partitions: their offsets, sizes and open transactions.

ListOffsets, DescribeLogDirs and DescribeProducers go to the leaders, ListTransactions to all brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.admin.transactions import DescribeProducersRequest, ListTransactionsRequest
from kafka.protocol.consumer import ListOffsetsRequest

from streaming.probe.clients import Connections, chunks_by_node
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.requests.topics import CLUSTER_FORBIDDEN, OK, Refused

PARTITIONS_PER_REQUEST = 20_000
"""About 1 MB of answer; few brokers lead more partitions."""

TIMESTAMPS_PER_REQUEST = 500
"""For each the leader reads a little of the log, and a request keeps one of its handler threads busy: some 50 ms."""


class OffsetKind(Enum):
    """The kinds of offset that ListOffsets returns: (timestamp, isolation level) of the request."""

    END = (-1, 0)
    STABLE = (-1, 1)
    START = (-2, 0)


class FirstFrom(NamedTuple):
    """The first record of a partition from a timestamp on.

    Attributes:
        offset: Its offset; -1 if there is none below the high watermark, or the broker has found none.
        timestamp: Its timestamp, ms; -1 likewise.
    """

    offset: int
    timestamp: int


class PartitionRequests(Connections):
    """Asks leaders for partitions."""

    def offsets(
        self, kind: OffsetKind, leaders: Mapping[tuple[str, int], int], deadline: Deadline
    ) -> dict[tuple[str, int], int]:
        """Ask leaders for one kind of offset.

        Args:
            kind: Which.
            leaders: Leader (node id) per (topic, partition).
            deadline: When the round has to be done.

        Returns:
            Offset per (topic, partition); a partition whose leader refused (it moved, is gone, has no offset yet) is
            missing.

        Raises:
            RoundAbandonedError: A leader did not answer.
        """
        timestamp, isolation = kind.value
        work = _by_leader(leaders, lambda topics: _list_offsets(topics, isolation, lambda *_: timestamp))
        return {
            (topic.name, partition.partition_index): partition.offset
            for answer in self.ask(work, deadline)
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code == OK and partition.offset >= 0
        }

    def first_from(
        self, timestamps: Mapping[tuple[str, int], int], leaders: Mapping[tuple[str, int], int], deadline: Deadline
    ) -> dict[tuple[str, int], FirstFrom]:
        """Ask leaders for the first record from a timestamp on.

        Args:
            timestamps: One per (topic, partition), ms, not negative: negative ones have other meanings.
            leaders: Leader (node id) of each that has one, and perhaps of others.
            deadline: For all answers.

        Returns:
            Answer per (topic, partition); a partition without a leader, or whose leader refused, is missing.

        Raises:
            RoundAbandonedError: A leader did not answer.
        """
        asked = {tp: leaders[tp] for tp in timestamps if tp in leaders}
        work = _by_leader(
            asked, lambda topics: _list_offsets(topics, 0, lambda *tp: timestamps[tp]), TIMESTAMPS_PER_REQUEST
        )
        return {
            (topic.name, partition.partition_index): FirstFrom(partition.offset, partition.timestamp)
            for answer in self.ask(work, deadline)
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code == OK
        }

    def sizes(
        self, leaders: Mapping[tuple[str, int], int], deadline: Deadline
    ) -> dict[tuple[str, int], int] | Refused | None:
        """Ask leaders for the size of partitions on their disks (DescribeLogDirs, KIP-113).

        Args:
            leaders: Leader (node id) per (topic, partition).
            deadline: For all answers.

        Returns:
            Bytes of the leader's log per (topic, partition), where the leader tells them; why there are none at all:
            the right Describe on the cluster is missing; None if the brokers do not know the request.

        Raises:
            RoundAbandonedError: A leader did not answer.
        """
        if not self.knows(DescribeLogDirsRequest):
            return None
        of_topic = DescribeLogDirsRequest.DescribableLogDirTopic
        work = _by_leader(
            leaders,
            lambda topics: DescribeLogDirsRequest(
                topics=[of_topic(topic=topic, partitions=partitions) for topic, partitions in topics.items()]
            ),
        )
        answers = self.ask(work, deadline)
        # Before version 3 a broker that may not tell names no folder at all.
        if answers and all(_is_refused(answer) for answer in answers):
            return Refused.FORBIDDEN
        return {
            (topic.name, partition.partition_index): partition.partition_size
            for answer in answers
            for folder in answer.results
            for topic in folder.topics
            for partition in topic.partitions
            # A copy that is being moved to another folder comes beside the present one.
            if not partition.is_future_key and partition.partition_size >= 0
        }

    def open_transactions(
        self, leaders: Mapping[tuple[str, int], int], deadline: Deadline
    ) -> dict[tuple[str, int], dict[int, int]]:
        """Ask leaders for the open transactions of partitions (KIP-664).

        Args:
            leaders: Leader (node id) per (topic, partition).
            deadline: For all answers.

        Returns:
            Producer id of each open transaction by its first offset, per (topic, partition); a partition whose leader
            does not answer for it (the right Read on the topic is missing, a broker before 2.8) is missing.

        Raises:
            RoundAbandonedError: A leader did not answer.
        """
        if not self.knows(DescribeProducersRequest):
            return {}
        of_topic = DescribeProducersRequest.TopicRequest
        work = _by_leader(
            leaders,
            lambda topics: DescribeProducersRequest(
                topics=[of_topic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()]
            ),
        )
        return {
            (topic.name, partition.partition_index): {
                producer.current_txn_start_offset: producer.producer_id
                for producer in partition.active_producers
                if producer.current_txn_start_offset >= 0
            }
            for answer in self.ask(work, deadline)
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code == OK
        }

    def transactional_ids(self, producers: Iterable[int], brokers: Iterable[int], deadline: Deadline) -> dict[int, str]:
        """Ask all brokers, as coordinators of transactions, for the transactional ids of producers.

        Returns:
            Transactional id by producer id; one that no coordinator knows, or that we may not describe, is missing.

        Raises:
            RoundAbandonedError: A broker did not answer.
        """
        if not self.knows(ListTransactionsRequest):
            return {}
        request = {"state_filters": [], "producer_id_filters": sorted(producers)}
        work = [(node, ListTransactionsRequest(**request)) for node in brokers]
        return {
            found.producer_id: found.transactional_id
            for answer in self.ask(work, deadline)
            if answer.error_code == OK
            for found in answer.transaction_states
        }


def _is_refused(answer: Any) -> bool:
    if answer.API_VERSION >= 3 and answer.error_code != OK:
        return bool(answer.error_code == CLUSTER_FORBIDDEN)
    return not answer.results


def _list_offsets(topics: Mapping[str, list[int]], isolation: int, timestamp: Callable[[str, int], int]) -> Any:
    """A ListOffsets request for partitions per topic."""
    of_topic = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        isolation_level=isolation,
        topics=[
            of_topic(
                name=topic,
                partitions=[
                    of_topic.ListOffsetsPartition(partition_index=index, timestamp=timestamp(topic, index))
                    for index in partitions
                ],
            )
            for topic, partitions in topics.items()
        ],
        min_version=2,
    )


def _by_leader(
    leaders: Mapping[tuple[str, int], int],
    request: Callable[[Mapping[str, list[int]]], Any],
    size: int = PARTITIONS_PER_REQUEST,
) -> list[tuple[int, Any]]:
    """Node and request for each part of the partitions, which the request gets by topic."""
    work = []
    for node, chunk in chunks_by_node(leaders, size):
        topics: dict[str, list[int]] = {}
        for topic, partition in chunk:
            topics.setdefault(topic, []).append(partition)
        work.append((node, request(topics)))
    return work
