"""What share groups have consumed (KIP-932): from `__share_group_state`, or else from their coordinators.

A round reads that topic from where the one before has ended, and asks coordinators only for groups that it does not
tell: once for each new topic of a group, because records have ids and no names. A probe that starts reads it from the
beginning. That is short: brokers delete what later snapshots repeat. Where the topic may not be read, or not now,
coordinators are asked for start offsets and lag of every share group in each round, and the rest is unknown.

Records are counted that become archived behind the positions of the last closed round, so that a probe that starts
counts those of the time in between, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from streaming.lifecycle import room_log
from streaming.offsets_log import LogRecord, UnknownKey, UnknownVersion, UnreadableRecords, Windows, unknown_type
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.look import ListedGroup
from streaming.probe.kafka.requests import (
    UNTOLD,
    OffsetKind,
    Requests,
    ShareOffset,
    ShareSettings,
)
from streaming.probe.kafka.topic_tail import TopicTail
from streaming.record_batches import RangeReader
from streaming.records import (
    BROKERS,
    SHARE,
    STATE_LOG,
    UNDECODABLE,
    CountedRecords,
    QuarantinedRecord,
    SeenShares,
    SharePartition,
)
from streaming.share_state import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    TOPIC,
    PartitionDeliveries,
    ShareStates,
    StateRecord,
    decode_state,
)

_LOG = room_log(__name__)

_NO_RIGHT: Final = f"Without the right Read on topic {TOPIC} only start offsets and lag of share groups are known."

_ASK_S: Final = 2.0
"""What share groups have consumed is worth a moment, and no round: coordinators ask yet another broker for it."""

_TOLD_WHOLE: Final = 3
"""Undecodable records that a closing record has with their bytes, which may be 32 KB each; others are counted."""

Undecoded = QuarantinedRecord | CountedRecords


class StateTail(TopicTail):
    """Follows `__share_group_state`. Not for several threads.

    Attributes:
        states: What it tells.
        before: How far the last closed round has read each partition; empty where none has.
    """

    ENDS_AT = OffsetKind.END

    def __init__(self, connect: Callable[[], RangeReader]) -> None:
        """Read through a reader that is opened when there is something to read."""
        super().__init__(TOPIC, connect)
        self.states = ShareStates()
        self.before: tuple[int, ...] = ()
        self._counted_from: dict[int, int] = {}
        self._unreadable: dict[int, UnreadableRecords] = {}

    def read_to(self, ends: Mapping[int, int], topic_id: str | None, deadline: Deadline) -> str | None:
        """As in every tail; records count from where the last closed round has read."""
        self._counted_from = {**ends, **dict(enumerate(self.before)), **self._counted_from}
        return super().read_to(ends, topic_id, deadline)

    @property
    def unreadable(self) -> tuple[Undecoded, ...]:
        """What could not be decoded since `forget_unreadable`."""
        found: list[Undecoded] = []
        for of_partition in self._unreadable.values():
            whole = 0
            for item in of_partition.inputs():
                if isinstance(item, QuarantinedRecord) and whole < _TOLD_WHOLE:
                    whole += 1
                    found.append(item)
                elif isinstance(item, QuarantinedRecord):
                    found.append(CountedRecords(UNDECODABLE, 1, item.offset, item))
                elif isinstance(item, CountedRecords):
                    found.append(item)
        return tuple(found)

    def forget_unreadable(self) -> None:
        """A closed round has it."""
        self._unreadable = {}

    def _forget(self) -> None:
        self.states = ShareStates()

    def _apply_record(self, partition: int, record: LogRecord) -> None:
        counts = record.offset >= self._counted_from[partition]
        decoded = decode_state(record.key, record.value)
        if isinstance(decoded, StateRecord):
            self.states.apply(decoded, counts=counts)
        elif not counts:
            return
        elif isinstance(decoded, UnknownKey | UnknownVersion):
            self._unreadable_of(partition).unknown(record, *unknown_type(record))
        else:
            self._unreadable_of(partition).reject(record, decoded.reason)

    def _reject(self, partition: int, record: LogRecord, reason: str) -> None:
        if record.offset >= self._counted_from[partition]:
            self._unreadable_of(partition).reject(record, reason)

    def _unreadable_of(self, partition: int) -> UnreadableRecords:
        return self._unreadable.setdefault(partition, UnreadableRecords(partition, Windows(), TOPIC))


@dataclass(frozen=True, slots=True)
class SharesSeen:
    """What a round saw of share groups.

    Attributes:
        groups: By group; those that are missing are not known in this round.
        log: How far each partition of `__share_group_state` was read; empty where it was not.
    """

    groups: Mapping[str, SeenShares]
    log: tuple[int, ...] = ()


class ShareGroups:
    """The share groups of one cluster: call `observe` once a round. Not for several threads."""

    def __init__(self, requests: Requests, tail: StateTail | None) -> None:
        """Ask by these requests; without a tail only coordinators are asked."""
        self._requests, self._tail = requests, tail
        self._names: dict[str, str] = {}
        self._asked: dict[str, frozenset[str]] = {}
        self._since = -1
        self._trouble: str | None = None

    def observe(
        self,
        listed: Iterable[ListedGroup],
        settings: Callable[[list[str]], Mapping[str, ShareSettings]],
        before: tuple[int, ...],
        time: int,
        deadline: Deadline,
    ) -> SharesSeen:
        """Observe all share groups among those that are listed; without one nothing is asked.

        Args:
            listed: The watched groups.
            settings: Gives the groups' settings, as far as they are known.
            before: How far the last closed round has read `__share_group_state`.
            time: The round's time, ms.
            deadline: When the round has to be done.

        Raises:
            StopRequestedError: The probe is to stop.
        """
        nodes = {group.group: group.node for group in listed if group.group_type == SHARE}
        self._asked = {group: ids for group, ids in self._asked.items() if group in nodes}
        if not nodes:
            return SharesSeen({})
        log = self._follow(before, deadline)
        self._since = time if self._since < 0 else self._since
        known = settings(sorted(nodes))
        states = self._tail.states if log and self._tail is not None else None
        if states is None:
            answers = self._ask(nodes, deadline)
            return SharesSeen(
                {
                    g: _seen(BROKERS, self._since, _partitions_by_topic(a), known.get(g, UNTOLD))
                    for g, a in answers.items()
                }
            )
        strange = {group: node for group, node in nodes.items() if not self._knows_names(states, group)}
        answered = self._ask(strange, deadline)
        self._asked |= {group: frozenset(topic for topic, _ in states.of(group)) for group in answered}
        found = {
            group: _seen(STATE_LOG, self._since, _read(states.of(group), self._names), known.get(group, UNTOLD))
            for group in nodes
            if self._knows_names(states, group)
        }
        return SharesSeen(found, log)

    def _follow(self, before: tuple[int, ...], deadline: Deadline) -> tuple[int, ...]:
        """Read the topic to its end; how far, or () where it cannot be read."""
        tail = self._tail
        if tail is None or tail.is_refused:
            return ()
        tail.before = before
        why = tail.follow(self._requests, deadline.at_most(_ASK_S), deadline)
        if why is not None and why != self._trouble:
            said = _NO_RIGHT if tail.is_refused else f"{TOPIC} could not be followed, so coordinators are asked: {why}"
            _LOG.info("%s", said)
        self._trouble = why
        if why is not None:
            return ()
        return tuple([tail.positions[number] for number in sorted(tail.positions)])

    def _knows_names(self, states: ShareStates, group: str) -> bool:
        ids = frozenset(topic_id for topic_id, _ in states.of(group))
        # A topic that was deleted has no name any more: its state goes with it, soon.
        return ids <= self._names.keys() | self._asked.get(group, frozenset())

    def _ask(self, nodes: Mapping[str, int], deadline: Deadline) -> dict[str, tuple[ShareOffset, ...]]:
        """What coordinators tell now: theirs is the answer of another coordinator, which may be down by itself."""
        if not nodes:
            return {}
        try:
            told = self._requests.share_offsets(nodes, deadline.at_most(_ASK_S))
        except RoundAbandonedError as error:
            _LOG.info("Could not ask what share groups have consumed: %s.", error)
            return {}
        for topic, topic_id in {(one.topic, one.topic_id) for of_group in told.values() for one in of_group}:
            # A topic that was created again has its name for itself: the state of the one before goes, soon.
            if topic_id is not None and self._names.get(topic_id) != topic:
                self._names = {known: name for known, name in self._names.items() if name != topic}
                self._names[topic_id] = topic
        return told


def _seen(source: str, since: int, topics: dict[str, tuple[SharePartition, ...]], told: ShareSettings) -> SeenShares:
    return SeenShares(source, since, topics, told.lock_ms, told.limit, told.dead_letters)


def _partitions_by_topic(offsets: Iterable[ShareOffset]) -> dict[str, tuple[SharePartition, ...]]:
    """The partitions in a coordinator's answer by topic, also of topics in which none has a start offset yet."""
    topics: dict[str, list[SharePartition]] = {}
    for one in sorted(offsets):
        topics.setdefault(one.topic, []).append(SharePartition(one.partition, one.start, lag=one.lag))
    return {topic: tuple(of_topic) for topic, of_topic in topics.items()}


def _read(
    partitions: Mapping[tuple[str, int], PartitionDeliveries], names: Mapping[str, str]
) -> dict[str, tuple[SharePartition, ...]]:
    """Partitions as the records have them; those of a topic without a name are left out."""
    topics: dict[str, list[SharePartition]] = {}
    for (topic_id, number), known in sorted(partitions.items()):
        name = names.get(topic_id)
        if name is not None:
            topics.setdefault(name, []).append(
                SharePartition(
                    number,
                    known.start,
                    known.done if known.start >= 0 else -1,
                    first=known.first,
                    acknowledged=known.records(ACKNOWLEDGED),
                    archived=known.records(ARCHIVED),
                    released=known.records(AVAILABLE),
                    deliveries=known.deliveries,
                    archivals=tuple(sorted(known.archived.items())),
                )
            )
    return {topic: tuple(of_topic) for topic, of_topic in topics.items()}
