"""A group member on kafka-python, in a thread, and the assignors with which a group of them goes wrong."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import OffsetAndMetadata

from streaming.demo.journal import CommitLedger, Journal, generation_line
from streaming.demo.stage import Stage

_POLL_MS = 1_000
"""How long a poll waits for records, and so how soon a member notices a change in the story."""

_FETCH_MS, _FETCH_BYTES = 1_000, 1 << 16
"""A fetch waits a second for this much, which never comes. By default it returns with every burst of records, four
times a second; all members together then took 0.19 of a core instead of 0.11."""

_COMMIT_TIMEOUT_MS = 5_000
"""A commit on this machine takes a few ms; after this its outcome counts as unknown."""

_COMMIT_EVERY_S = 1.5

_FAILED_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """The settings of one member.

    Attributes:
        group: Its group.
        topics: The subscribed topics.
        client_id: Its client id; member ids begin with it.
        assignors: Assignor classes or instances of kafka-python, most wanted first.
        joins: False for a client that assigns itself every partition and commits, without membership.
        instance_id: `group.instance.id` of a static member; it does not leave its group when it closes.
        session_timeout_ms: A killed or closed static member expires after this time.
        max_poll_interval_ms: A rebalance waits so long for the member.
        metadata_max_age_ms: Time after which it looks for new partitions.
        record_s: While it is stuck, it takes a record in this time; None for none at all.
    """

    group: str
    topics: tuple[str, ...]
    client_id: str
    assignors: Sequence[Any] = (RangePartitionAssignor,)
    joins: bool = True
    instance_id: str | None = None
    session_timeout_ms: int = 10_000
    max_poll_interval_ms: int = 300_000
    metadata_max_age_ms: int = 300_000
    record_s: float | None = None


class KafkaPythonMember:
    """One running member. It joins at once, and commits synchronously what it has consumed."""

    def __init__(self, settings: MemberSettings, bootstrap: str, journal: Journal, ledger: CommitLedger) -> None:
        """Start its thread; members of stories are started with `on_stage`."""
        self.settings = settings
        self.settled = False
        self.drained: threading.Event | None = None
        self._bootstrap, self._journal, self._ledger = bootstrap, journal, ledger
        self._well = threading.Event()
        self._well.set()
        self._leaving = threading.Event()
        self._vanishes = False
        self._positions: dict[TopicPartition, int] = {}
        self._thread = threading.Thread(target=self._run, daemon=True, name=settings.client_id)
        self._thread.start()

    @classmethod
    def on_stage(cls, settings: MemberSettings, stage: Stage) -> Self:
        """Start a member that leaves when the stage closes, at the latest."""
        member = cls(settings, stage.bootstrap, stage.journal, stage.ledger)
        member.drained = stage.drained
        return member

    def get_stuck(self) -> None:
        """Stop consuming and committing, or become slow, but keep the heartbeat going."""
        self._well.clear()

    def recover(self) -> None:
        """Continue where it got stuck."""
        self._well.set()

    def leave(self) -> None:
        """Close the client: a dynamic member leaves its group, a static one stays until its session ends."""
        self._leaving.set()
        self._thread.join()

    def vanish(self) -> None:
        """Close the client without a word, as a process that was killed: it expires with its session."""
        self._vanishes = True
        self.leave()

    def _run(self) -> None:
        settings = self.settings
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            client_id=settings.client_id,
            group_id=settings.group,
            group_instance_id=settings.instance_id,
            partition_assignment_strategy=list(settings.assignors),
            session_timeout_ms=settings.session_timeout_ms,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            heartbeat_interval_ms=min(3_000, settings.session_timeout_ms // 4),
            metadata_max_age_ms=settings.metadata_max_age_ms,
            fetch_max_wait_ms=_FETCH_MS,
            fetch_min_bytes=_FETCH_BYTES,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
        )
        if settings.joins:
            wait_for_joins(consumer)
            consumer.subscribe(settings.topics, listener=_Listener(self, consumer))
        else:
            partitions = ((topic, consumer.partitions_for_topic(topic)) for topic in settings.topics)
            consumer.assign([TopicPartition(topic, p) for topic, numbers in partitions for p in numbers])
        try:
            self._consume(consumer)
        finally:
            if self._vanishes:
                consumer._coordinator.maybe_leave_group = lambda **_: None  # noqa: SLF001  (no public way)
            consumer.close()
            self.settled = True

    def _consume(self, consumer: KafkaConsumer) -> None:
        next_commit = time.monotonic() + _COMMIT_EVERY_S
        while not self._leaving.is_set():
            for partition, records in self._poll(consumer).items():
                self._positions[partition] = records[-1].offset + 1
            if self.settled or (self.settings.record_s is None and not self._well.is_set()):
                continue
            at_the_end = self.drained is not None and self.drained.is_set() and consumed_everything(consumer)
            if at_the_end or time.monotonic() >= next_commit:
                committed = self._commit(consumer)
                next_commit = time.monotonic() + _COMMIT_EVERY_S
                self.settled = at_the_end and committed

    def _poll(self, consumer: KafkaConsumer) -> dict[TopicPartition, list[Any]]:
        """Wait for records; goes on after an error of the assignor, as an application does whose loop catches all."""
        records: dict[TopicPartition, list[Any]]
        if not self._well.is_set() and self.settings.record_s is not None:
            records = consumer.poll(0, max_records=1)
            self._well.wait(self.settings.record_s if records else 1.0)
            return records
        if not self._well.is_set():
            consumer.pause(*consumer.assignment())
        elif consumer.paused():
            consumer.resume(*consumer.paused())
        try:
            records = consumer.poll(_POLL_MS)
        except TwoMembersError:
            self._leaving.wait(_FAILED_POLL_S)
            return {}
        return records

    def _commit(self, consumer: KafkaConsumer) -> bool:
        """Commit all positions; returns whether nothing is left uncommitted."""
        assigned = consumer.assignment()
        positions = {tp: offset for tp, offset in self._positions.items() if tp in assigned}
        if not positions:
            return True
        offsets = {(tp.topic, tp.partition): offset for tp, offset in positions.items()}
        try:
            consumer.commit(
                {tp: OffsetAndMetadata(offset, "", -1) for tp, offset in positions.items()},
                timeout_ms=_COMMIT_TIMEOUT_MS,
            )
        except (CommitFailedError, RebalanceInProgressError):
            return False  # refused by the coordinator, so nothing was written
        except KafkaError:
            self._ledger.uncertain(self.settings.group, offsets)
            return False
        self._ledger.committed(self.settings.group, offsets)
        return True

    def assigned(self, consumer: KafkaConsumer, partitions: Iterable[TopicPartition]) -> None:
        """Write to the journal what the rebalance listener sees; the positions of new partitions are not known yet."""
        self.settled = False
        of = consumer.group_metadata()
        owned = ((tp.topic, tp.partition) for tp in partitions)
        line = generation_line(self.settings.group, of.member_id, self.settings.client_id, of.generation_id, owned)
        self._journal.write("generation", **line)

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop positions of revoked partitions; their next owner starts at the last commit."""
        for partition in partitions:
            self._positions.pop(partition, None)


def consumed_everything(consumer: KafkaConsumer) -> bool:
    """Whether a consumer has joined its group and reached the end of all its partitions."""
    membership = consumer.group_metadata()
    assigned = consumer.assignment()
    if not assigned:
        return bool(membership is not None and membership.generation_id >= 0)
    try:
        ends = consumer.end_offsets(list(assigned))
        positions = {partition: consumer.position(partition, timeout_ms=_POLL_MS) for partition in assigned}
    except KafkaError:
        return False
    return all(position is not None and position >= ends[partition] for partition, position in positions.items())


def wait_for_joins(consumer: KafkaConsumer) -> None:
    """Let a poll that finds a rebalance wait until it is over, whatever the poll's own timeout.

    kafka-python 3.0.12 forgets an assignment that arrives between two polls: the next poll sees that nothing is left to
    join, so the assignment is never applied, the heartbeat stays off, the poll loop spins, and the member expires
    (`BaseCoordinator.join_group_async` applies the assignment only inside its `while self.need_rejoin()`). With polls
    of 0.5 s this happens once in several dozen rebalances.
    """
    coordinator = consumer._coordinator  # noqa: SLF001  (no public way)
    ensure_active_group = coordinator.ensure_active_group
    coordinator.ensure_active_group = lambda timeout_ms=None: ensure_active_group(None)  # noqa: ARG005


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python is not typed
    def __init__(self, member: KafkaPythonMember, consumer: KafkaConsumer) -> None:
        self._member, self._consumer = member, consumer

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._member.revoked(revoked)

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._member.assigned(self._consumer, assigned)


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
