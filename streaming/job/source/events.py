"""The events of a batch's rounds, read from one partition of the events topic: the core's inputs, by group and topic.

An event counts if its round is one of the batch's rounds and its offset is between that round's positions in its
partition; all others are skipped, because their round never closed or was passed over. What it saw becomes the core's
input with what only the source knows: the round's number, how much time has passed, how coordinators moved. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from streaming.events import ClusterTopicEvent, GroupEvent, RejectedEvent, UnknownType, decode_event
from streaming.offsets_log import LogRecord, UnreadableRecords, Windows
from streaming.record_batches import Record
from streaming.records import (
    ClosedRound,
    ClusterTopicObservation,
    CoordinatorMove,
    GroupObservation,
    RocketMQObservation,
    Window,
)
from streaming.times import DAY_MS

OfGroup = GroupObservation | RocketMQObservation
"""One group in one round, whatever was seen of it."""

# Memory of an event as an object, and of its texts and numbers for each byte of its JSON: a client id that takes 30
# bytes there is a string of 80, a partition of an assignment takes 3 there and 32 as an integer in a tuple.
_EVENT_BYTES: Final = 500
_DECODED: Final = 8


@dataclass(frozen=True, slots=True)
class EventRound:
    """A closed round as one partition of the events topic needs it.

    Attributes:
        taken: The round.
        first: First offset of the round's events in the partition.
        end: Exclusive end of them.
    """

    taken: ClosedRound
    first: int
    end: int

    def moves(self, partition: int) -> tuple[CoordinatorMove, ...]:
        """How the coordinator of a partition of the offsets log moved lately."""
        brokers = self.taken.closed.brokers
        return () if brokers is None else tuple([move for move in brokers.moves if move.partition == partition])

    def epoch(self, partition: int) -> int:
        """Leader epoch of a partition of the offsets log; -1 when unknown."""
        brokers = self.taken.closed.brokers
        return brokers.coordinators[partition][1] if brokers is not None and brokers.coordinators else -1


def event_rounds(taken: Iterable[ClosedRound], partition: int) -> tuple[EventRound, ...]:
    """The rounds with events in a partition of the events topic."""
    return tuple(
        EventRound(each, first, end)
        for each in taken
        for name, (first, end) in each.closed.events.items()
        if int(name) == partition and first < end
    )


def windows_of(rounds: Iterable[EventRound]) -> Windows:
    """The windows of the partition, each named by the round above it, with whose events it is read."""
    above = sorted(rounds, key=lambda current: current.end)
    windows: list[Window] = []
    day = 0
    for current in above:
        day = max(day, current.taken.elapsed // DAY_MS)
        windows.append(Window(current.taken.round, day))
    return Windows([current.end for current in above[:-1]], windows or [Window()])


class EventReader:
    """Reads the events of one partition: `add` every record in order, `take` whenever enough are held, and at the end.

    Attributes:
        held: Approximate bytes of the observations since the last `take`.
        unreadable: The records for `quarantine`.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        rounds: Iterable[EventRound],
        start: int,
        watches: Callable[[str], bool],
        watches_topic: Callable[[str], bool],
    ) -> None:
        """Prepare for one partition.

        Args:
            topic: The events topic.
            partition: The partition.
            rounds: The batch's rounds.
            start: Where the batch starts in this partition. Records before it are read again for a round that began
                there; the undecodable ones among them are in `quarantine` already.
            watches: Whether a group passes the filters.
            watches_topic: Whether a topic passes the filters.
        """
        self.held = 0
        self._rounds = {current.taken.closed.round: current for current in rounds}
        self.unreadable = UnreadableRecords(partition, windows_of(self._rounds.values()), topic, typed=False)
        self._start = start
        self._watches = watches
        self._watches_topic = watches_topic
        self._groups: dict[str, list[OfGroup]] = {}
        self._topics: dict[str, list[ClusterTopicObservation]] = {}

    def reject(self, record: LogRecord, reason: str) -> None:
        """Put a record in `unreadable`, unless the batch before has read it."""
        if record.offset >= self._start:
            self.unreadable.reject(record, reason)

    def add(self, record: Record) -> None:
        """Process the next record. Never raises, whatever the topic holds."""
        plain = LogRecord(*record)
        event = decode_event(plain.value)
        if isinstance(event, RejectedEvent):
            self.reject(plain, event.reason)
            return
        if isinstance(event, UnknownType):
            if plain.offset >= self._start:
                self.unreadable.unknown(plain, f"event/{event.name}", event.reason)
            return
        current = self._rounds.get(event.saw.round)
        if current is None or not current.first <= plain.offset < current.end:
            return
        # What the filters exclude now must still end.
        watches = self._watches_topic if isinstance(event, ClusterTopicEvent) else self._watches
        if event.saw.gone is None and not watches(event.key):
            return
        number, elapsed = current.taken.round, current.taken.elapsed
        if isinstance(event, ClusterTopicEvent):
            told = msgspec.structs.replace(event.saw, round=number, elapsed=elapsed)
            self._topics.setdefault(event.key, []).append(told)
        elif isinstance(event, GroupEvent):
            self._groups.setdefault(event.key, []).append(self._of_kafka(event.saw, current))
        else:
            observation = msgspec.structs.replace(
                event.saw,
                round=number,
                elapsed=elapsed,
                closed=current.taken.closed_time,
                topics=tuple([topic for topic in event.saw.topics if self._watches_topic(topic.topic)]),
            )
            self._groups.setdefault(event.key, []).append(observation)
        self.held += _EVENT_BYTES + _DECODED * len(plain.value or b"")

    def _of_kafka(self, saw: GroupObservation, current: EventRound) -> GroupObservation:
        """What a round saw of a group, and beside it what its event does not have.

        Topics come with each group's event; told once a round, they would be laid beside the groups here.
        """
        number, partition = current.taken.round, saw.log_partition
        return msgspec.structs.replace(
            saw,
            round=number,
            # Without a log, observations are ordered by their rounds.
            log_position=number if partition < 0 else saw.log_position,
            elapsed=current.taken.elapsed,
            closed=current.taken.closed_time,
            topics=tuple([topic for topic in saw.topics if self._watches_topic(topic.topic)]),
            coordinator_moves=current.moves(partition),
            coordinator_epoch=-1 if partition < 0 else current.epoch(partition),
        )

    def take(self) -> tuple[dict[str, list[OfGroup]], dict[str, list[ClusterTopicObservation]]]:
        """The observations since the last call, by group and by topic of the cluster."""
        taken = self._groups, self._topics
        self._groups, self._topics, self.held = {}, {}, 0
        return taken
