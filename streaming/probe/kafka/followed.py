"""What is known of groups from one round to the next: coordinators are asked once, then the offsets log tells the rest.

Every commit, deletion, expiry and change of members is a record of the log. So a round reads the log from the last
stable offsets of the round before to its own, and touches only the groups that have records there: a commit changes
what the group has committed, a record of its members makes what was described doubtful. Coordinators are asked again
for the groups of a partition

- that the round cannot read to its end, because a transaction is open on it,
- whose leader is not what it was, because a log may be cut back with it,
- where a record could not be read, or is of a type that this release does not know.

What a coordinator answers may be ahead of the position; the records between are then read once more, which changes
nothing. A probe that starts, or whose round has failed, knows nothing and asks for all groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kafka.errors import CorruptRecordError, KafkaError

from streaming.lifecycle import room_log
from streaming.offsets_log import Compactor, RecordColumns, partition_for
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.look import STABLE, Description, ListedGroup
from streaming.probe.kafka.requests import CommittedOffsets, Metadata
from streaming.record_batches import (
    FetchedBatch,
    FetchedRun,
    Missing,
    OffsetRange,
    RangeReader,
    UnreadableTopicError,
    pieces,
    walk,
)
from streaming.records import CommitWindow, GroupInput, TopicObservation

_LOG = room_log(__name__)

_HELD_BYTES: Final = 64 * 1024 * 1024
"""What is held of all partitions' records before they are applied; parts give the same as the whole."""

_MARKER: Final = 1
"""A transaction's marker has an offset that no consumer commits behind."""

LONGEST_TAIL_MS: Final = 3_600_000
"""A round that comes later after the one before asks: brokers remove tombstones (`delete.retention.ms`, a day)."""

Early: TypeAlias = tuple[tuple[str, int, int], ...]
"""Topic, partition and committed offset, where that is below the partition's first known end."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A group's committed offsets.

    Attributes:
        offsets: By topic and partition.
        topics: Topics that it has offsets for.
        mark: Hash of all its offsets: equal as long as none of them changes.
    """

    offsets: CommittedOffsets
    topics: frozenset[str]
    mark: int

    @classmethod
    def of(cls, offsets: CommittedOffsets) -> Committed:
        """Condense offsets; a coordinator promises no order."""
        return cls(offsets, frozenset({topic for topic, _ in offsets}), hash(frozenset(offsets.items())))


@dataclass(frozen=True, slots=True)
class LogState:
    """The offsets log as a round finds it. Positions and time come when the round is open.

    Attributes:
        metadata: The answer that the leaders come from.
        leaders: Node id per partition; every partition has one. Empty where the log is not read.
        coordinators: Leader and leader epoch per partition; empty where the brokers do not tell epochs.
        stable: Last stable offset of each partition.
        end: High watermark of each, requested before: a log without open transactions never has it above `stable`.
        time: The round's time, ms.
    """

    metadata: Metadata
    leaders: tuple[int, ...] = ()
    coordinators: tuple[tuple[int, int], ...] = ()
    stable: tuple[int, ...] = ()
    end: tuple[int, ...] = ()
    time: int = -1

    def continues(self, before: LogState) -> bool:
        """Whether the log between the two tells everything, but for single partitions."""
        return len(self.stable) == len(before.stable) and self.time - before.time <= LONGEST_TAIL_MS

    def home(self, group: str) -> int:
        """The partition that holds a group."""
        return partition_for(group, len(self.leaders), self.metadata.cluster_id)

    def doubtful(self, before: LogState) -> set[int]:
        """Partitions whose records since the round before do not tell everything."""
        led, led_before = self.coordinators or self.leaders, before.coordinators or before.leaders
        return {
            partition
            for partition, stable in enumerate(self.stable)
            if stable < self.end[partition]
            or stable < before.stable[partition]
            or led[partition] != led_before[partition]
        }


class LogTail:
    """Reads the records between two rounds; its consumer is opened when there are some."""

    def __init__(self, topic: str, connect: Callable[[], RangeReader], watches: Callable[[str], bool]) -> None:
        """Prepare.

        Args:
            topic: The offsets log.
            connect: Opens a reader.
            watches: Whether a group passes the filters.
        """
        self._topic = topic
        self._connect = connect
        self._watches = watches
        self._reader: RangeReader | None = None

    def close(self) -> None:
        """Close the consumer."""
        if self._reader is not None:
            self._reader.close()

    def read(
        self,
        before: LogState,
        now: LogState,
        partitions: Iterable[int],
        tell: Callable[[str, list[GroupInput]], None],
        deadline: Deadline,
    ) -> set[int]:
        """Read partitions from the round before to this one.

        Args:
            before: The log at the round before.
            now: The log at this round.
            partitions: Those to read.
            tell: Gets what was read of a watched group, in log order, in one part or several.
            deadline: Goes on with what is read.

        Returns:
            The partitions that could not be read, or not everything of them.
        """
        ranges = [OffsetRange(self._topic, p, before.stable[p], now.stable[p]) for p in partitions]
        ranges = [wanted for wanted in ranges if wanted.start < wanted.end]
        if not ranges:
            return set()
        most = _HELD_BYTES // len(ranges)
        compactors: dict[int, Compactor] = {}
        unread: set[int] = set()

        def hand_over(partition: int) -> None:
            compactor = compactors.pop(partition)
            for group, inputs in compactor.groups():
                tell(group, inputs)
            if compactor.unreadable():
                unread.add(partition)

        deadline.begin()
        try:
            if self._reader is None:
                self._reader = self._connect()
            for where, item in self._reader.read_runs(ranges):
                deadline.answered()
                partition = where.partition
                if isinstance(item, FetchedRun | FetchedBatch):
                    if partition not in compactors:
                        compactors[partition] = self._compactor(partition, now)
                    if not _add(compactors[partition], where, item):
                        unread.add(partition)
                    if compactors[partition].held > most:
                        hand_over(partition)
                elif not isinstance(item, Missing):
                    unread.add(partition)
        except (UnreadableTopicError, KafkaError) as error:
            _LOG.info("The offsets log could not be followed, so coordinators are asked: %s", error)
            return {wanted.partition for wanted in ranges}
        for partition in list(compactors):
            hand_over(partition)
        return unread

    def _compactor(self, partition: int, now: LogState) -> Compactor:
        # Topics that are not watched count as well: a group is at rest when nothing of it moves.
        return Compactor(
            partition, len(now.stable), (), self._watches, lambda _: True, cluster_id=now.metadata.cluster_id
        )


def _add(compactor: Compactor, where: OffsetRange, item: FetchedRun | FetchedBatch) -> bool:
    """Fold what was fetched; False if a batch cannot be taken apart."""
    for piece in pieces(item, where.start, where.end):
        if isinstance(piece, RecordColumns):
            compactor.add_columns(piece)
            continue
        try:
            for record in walk(piece, where.start, where.end):
                compactor.add(*record)
        except CorruptRecordError:
            return False
    return True


class FollowedGroups:
    """The groups of one cluster. In each round call `follow` first; not for several threads.

    Attributes:
        committed: Of each group whose offsets are known; ask for the others, and call `note_offsets`.
        descriptions: Of the groups with members, in the newest round; to be replaced in each.
        recorded: Groups of whose members the log has records since the round before.
    """

    def __init__(self, tail: LogTail | None) -> None:
        """Know nothing yet; without a tail of the log nothing is known from one round to the next."""
        self.committed: dict[str, Committed] = {}
        self.descriptions: Mapping[str, Description] = {}
        self.recorded: set[str] = set()
        self._tail = tail
        self._log: LogState | None = None
        self._changed: set[str] = set()
        self._moved: set[str] = set()
        self._ends: Mapping[str, tuple[int, ...]] = {}
        self._early: dict[str, Early] = {}

    def follow(self, log: LogState, groups: Mapping[str, ListedGroup], deadline: Deadline) -> None:
        """Bring what is known to a round's positions, and forget what is doubtful.

        Args:
            log: The log at the round.
            groups: The groups that it lists.
            deadline: When the round has to be done.

        Raises:
            RoundAbandonedError, StopRequestedError: As `Deadline.remaining`.
        """
        before, self._log = self._log, log
        self._changed.clear()
        self.recorded.clear()
        if self._tail is None or before is None or not log.continues(before):
            self.descriptions = {}
            self._changed.update(groups)
            self._forget(list(self.committed))
            return
        doubtful = log.doubtful(before)
        readable = [partition for partition in range(len(log.stable)) if partition not in doubtful]
        doubtful |= self._tail.read(before, log, readable, self._apply, deadline)
        if doubtful:
            in_doubt = [group for group in groups if log.home(group) in doubtful]
            self._changed.update(in_doubt)
            self._forget(in_doubt)
        self._forget(self.committed.keys() - groups.keys())

    def description(self, listed: ListedGroup) -> Description | None:
        """What is known of a group's members; None if that may have changed, or was not everything."""
        known = self.descriptions.get(listed.group)
        if known is None or listed.group in self._changed or known.state != listed.state or not known.complete:
            return None
        return known

    def note_offsets(self, answers: Mapping[str, CommittedOffsets]) -> None:
        """Take in the offsets of groups that were asked for."""
        for group, offsets in answers.items():
            self._note(group, offsets)

    def early(self, ends: Mapping[str, tuple[int, ...]]) -> Mapping[str, Early]:
        """Committed offsets below some ends, by group; groups without such offsets are missing.

        Args:
            ends: Per topic and partition.
        """
        news = {topic for topic, of_topic in ends.items() if self._ends.get(topic) != of_topic}
        if news:
            self._moved.update(group for group, known in self.committed.items() if not news.isdisjoint(known.topics))
        for group in self._moved & self.committed.keys():
            early = _below(self.committed[group].offsets, ends)
            if early:
                self._early[group] = early
            else:
                self._early.pop(group, None)
        self._moved.clear()
        self._ends = ends
        return self._early

    def calm(self, topics: Mapping[str, TopicObservation]) -> list[str]:
        """Groups as in `GroupsSeen.calm`; one that waits for a transaction's marker alone has read all.

        Args:
            topics: As the round sees them; others count for nothing.
        """
        most = {name: tuple([end - _MARKER for end in topic.ends]) for name, topic in topics.items()}
        return [
            group
            for group, known in self.descriptions.items()
            if known.state == STABLE
            and known.complete
            and group not in self._changed
            and (committed := self.committed.get(group)) is not None
            and committed.offsets
            and not _below(committed.offsets, most)
        ]

    def _apply(self, group: str, inputs: list[GroupInput]) -> None:
        """Take in what the log says of a group; a commit of one that is not known says nothing of its other offsets."""
        windows = [each for each in inputs if isinstance(each, CommitWindow)]
        if len(windows) < len(inputs):
            self._changed.add(group)
            self.recorded.add(group)
        known = self.committed.get(group)
        if known is None or not windows:
            return
        offsets = dict(known.offsets)
        for window in windows:
            place = window.topic, window.partition
            if window.deleted or window.offset < 0:
                offsets.pop(place, None)
            else:
                offsets[place] = window.offset
        self._note(group, offsets)

    def _note(self, group: str, offsets: CommittedOffsets) -> None:
        self.committed[group] = Committed.of(offsets)
        self._moved.add(group)

    def _forget(self, groups: Iterable[str]) -> None:
        for group in groups:
            self.committed.pop(group, None)
            self._early.pop(group, None)


def _below(offsets: CommittedOffsets, ends: Mapping[str, tuple[int, ...]]) -> Early:
    return tuple(
        (topic, partition, offset)
        for (topic, partition), offset in offsets.items()
        if partition < len(of_topic := ends.get(topic, ())) and offset < of_topic[partition]
    )
