"""A group member on kafka-python, in a thread, and the assignors with which a group of them goes wrong."""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import OffsetAndMetadata

from streaming.demo.journal import PartitionId
from streaming.demo.member import ThreadMember
from streaming.demo.stage import Stage

_POLL_MS = 1_000
"""How long a poll waits for records, and so how soon a member notices a change in the story."""

_FETCH_MS, _FETCH_BYTES = 1_000, 1 << 16
"""A fetch waits a second for this much, which never comes. By default it returns with every burst of records, four
times a second; all members together then took 0.19 of a core instead of 0.11."""

_COMMIT_TIMEOUT_MS = 5_000
"""A commit on this machine takes a few ms; after this its outcome counts as unknown."""

_FAILED_POLL_S = 0.5


class KafkaPythonMember(ThreadMember):
    """One running member."""

    def __init__(
        self,
        stage: Stage,
        group: str,
        topics: tuple[str, ...],
        client_id: str,
        *,
        assignors: Sequence[Any] = (RangePartitionAssignor,),
        joins: bool = True,
        record_s: float | None = None,
        session_timeout_ms: int = 10_000,
        **options: Any,
    ) -> None:
        """Start its thread.

        Args:
            stage: The stage.
            group: Its group.
            topics: The subscribed topics.
            client_id: Its client id.
            assignors: Assignor classes of kafka-python, most wanted first.
            joins: False for a client that assigns itself every partition and commits, without membership.
            record_s: While it is stuck, it takes a record in this time; None for none at all.
            session_timeout_ms: A killed or closed static member expires after this time.
            options: Further options of its consumer.
        """
        self._joins, self._record_s, self._vanishes = joins, record_s, False
        self._options: dict[str, Any] = {
            "bootstrap_servers": stage.bootstrap,
            "client_id": client_id,
            "group_id": group,
            "partition_assignment_strategy": list(assignors),
            "session_timeout_ms": session_timeout_ms,
            "heartbeat_interval_ms": min(3_000, session_timeout_ms // 4),
            "fetch_max_wait_ms": _FETCH_MS,
            "fetch_min_bytes": _FETCH_BYTES,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "allow_auto_create_topics": False,
            **options,
        }
        super().__init__(stage, group, topics, client_id)

    def vanish(self) -> None:
        """Close the client without a word, as a process that was killed: it expires with its session."""
        self._vanishes = True
        self.leave()

    def _connect(self) -> KafkaConsumer:
        consumer = KafkaConsumer(**self._options)
        if self._joins:
            wait_for_joins(consumer)
            consumer.subscribe(self.topics, listener=_Listener(self, consumer))
        else:
            partitions = ((topic, consumer.partitions_for_topic(topic)) for topic in self.topics)
            consumer.assign([TopicPartition(topic, p) for topic, numbers in partitions for p in numbers])
        return consumer

    def _close(self, client: KafkaConsumer) -> None:
        if self._vanishes:
            client._coordinator.maybe_leave_group = lambda **_: None  # noqa: SLF001 - no public way
        client.close()

    def _is_stuck(self) -> bool:
        return self._record_s is None and super()._is_stuck()

    def _poll(self, client: KafkaConsumer) -> bool:
        if not self._well.is_set() and self._record_s is not None:
            records = client.poll(0, max_records=1)
            self._well.wait(self._record_s if records else 1.0)
        else:
            records = self._poll_all(client)
        for tp, found in records.items():
            self._positions[tp.topic, tp.partition] = found[-1].offset + 1
        return bool(records)

    def _poll_all(self, client: KafkaConsumer) -> dict[TopicPartition, list[Any]]:
        if not self._well.is_set():
            client.pause(*client.assignment())
        elif client.paused():
            client.resume(*client.paused())
        records: dict[TopicPartition, list[Any]] = {}
        try:
            records = client.poll(_POLL_MS)
        except TwoMembersError:
            # It goes on, as an application does whose loop catches all.
            self._leaving.wait(_FAILED_POLL_S)
        return records

    def _assigned(self, client: KafkaConsumer) -> Collection[PartitionId]:
        return _ids(client.assignment())

    def _write(self, client: KafkaConsumer, offsets: Mapping[PartitionId, int]) -> Collection[PartitionId] | None:
        given = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
        try:
            client.commit(given, timeout_ms=_COMMIT_TIMEOUT_MS)
        except (CommitFailedError, RebalanceInProgressError):
            return ()  # refused by the coordinator, so nothing was written
        except KafkaError:
            return None
        return offsets.keys()

    def _is_at_the_end(self, client: KafkaConsumer) -> bool:
        membership = client.group_metadata()
        assigned = client.assignment()
        if not assigned:
            return bool(membership is not None and membership.generation_id >= 0)
        try:
            ends = client.end_offsets(list(assigned))
            positions = {partition: client.position(partition, timeout_ms=_POLL_MS) for partition in assigned}
        except KafkaError:
            return False
        return all(position is not None and position >= ends[partition] for partition, position in positions.items())


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python is not typed
    def __init__(self, member: KafkaPythonMember, consumer: KafkaConsumer) -> None:
        self._member, self._consumer = member, consumer

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._member._revoked(_ids(revoked))  # noqa: SLF001 - a part of the member

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        of = self._consumer.group_metadata()
        self._member._joined(of.member_id, of.generation_id, _ids(assigned))  # noqa: SLF001


def _ids(partitions: Iterable[TopicPartition]) -> set[PartitionId]:
    return {(tp.topic, tp.partition) for tp in partitions}


def wait_for_joins(consumer: KafkaConsumer) -> None:
    """Let a poll that finds a rebalance wait until it is over, whatever the poll's own timeout.

    kafka-python 3.0.12 forgets an assignment that arrives between two polls: the next poll sees that nothing is left to
    join, so the assignment is never applied, the heartbeat stays off, the poll loop spins, and the member expires
    (`BaseCoordinator.join_group_async` applies the assignment only inside its `while self.need_rejoin()`). With polls
    of 0.5 s this happens once in several dozen rebalances.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - no public way
    ensure_active_group = coordinator.ensure_active_group
    coordinator.ensure_active_group = lambda timeout_ms=None: ensure_active_group(None)  # noqa: ARG005


class TwoMembersError(Exception):
    """The bug of `ForOneMember`."""


class ForOneMember(RangePartitionAssignor):  # type: ignore[misc]  # kafka-python is not typed
    """Range, until it is mended only for one member.

    It lists its topics in any order, and so begins a new rebalance each time: to a member that repeats itself the
    coordinator repeats its answer, and after the rebalance timeout it would remove the leader.
    """

    mended = threading.Event()

    @classmethod
    def metadata(cls, topics: Any) -> ConsumerProtocolSubscription:
        """List the topics in any order."""
        return ConsumerProtocolSubscription(cls.version, random.sample(sorted(topics), len(topics)), b"")

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any:
        """Assign as range, or raise TwoMembersError."""
        members = list(members)
        if len(members) > 1 and not cls.mended.is_set():
            raise TwoMembersError
        return super().assign(cluster, members)


class PileUp(RangePartitionAssignor):  # type: ignore[misc]  # kafka-python is not typed
    """Gives all partitions to the member whose id sorts last, under the name `range`."""

    every = 1

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> dict[str, ConsumerProtocolAssignment]:
        """Give every `every`th partition to the last member, and the others to the first."""
        ids = sorted(member.member_id for member in members)
        owned: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in ids}
        for topic in sorted({topic for member in members for topic in member.metadata.topics}):
            for partition in sorted(cluster.partitions_for_topic(topic) or ()):
                owner = ids[-1] if partition % cls.every == cls.every - 1 else ids[0]
                owned[owner].setdefault(topic, []).append(partition)
        return {
            member_id: ConsumerProtocolAssignment(cls.version, sorted(topics.items()), b"")
            for member_id, topics in owned.items()
        }


class Pinned(PileUp):
    """Pins every third partition of a topic to the last member and the others to the first."""

    name = "demo-pinned"
    every = 3
