"""The events of a batch's rounds, read from one partition of the events topic: the core's inputs, by group and topic.

An event counts if its round is one of the batch's rounds and its offset is between that round's positions in its
partition; all others are skipped, because their round never closed or was passed over. What it saw becomes the core's
input with what only the source knows: the round's number, how much time has passed. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from streaming.events import (
    ClusterTopicEvent,
    GroupsAlike,
    GroupsEvent,
    RejectedEvent,
    UnknownType,
    decode_event,
)
from streaming.offsets_log import LogRecord, UnreadableRecords, Windows, partition_for
from streaming.record_batches import Record
from streaming.records import (
    ClosedRound,
    ClusterTopicObservation,
    GroupObservation,
    RocketMQObservation,
    Window,
)
from streaming.times import DAY_MS

OfGroup = GroupObservation | RocketMQObservation
"""One group in one round, whatever was seen of it."""

_Saw = TypeVar("_Saw", GroupObservation, RocketMQObservation)

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
        self.held += _DECODED * len(plain.value or b"")
        if isinstance(event, GroupsEvent):
            for alike in event.groups:
                current = self._round(alike.saw.round, plain.offset)
                if current is not None:
                    topics = [event.topics[index] for index in alike.topics]
                    self._add_groups(alike, self._at(current, alike.saw, topics), current)
            return
        current = self._round(event.saw.round, plain.offset)
        if current is None:
            return
        if isinstance(event, ClusterTopicEvent):
            if event.saw.gone is not None or self._watches_topic(event.key):
                told = msgspec.structs.replace(event.saw, round=current.taken.round, elapsed=current.taken.elapsed)
                self._topics.setdefault(event.key, []).append(told)
        elif event.saw.gone is not None or self._watches(event.key):
            self._keep(event.key, self._at(current, event.saw, event.saw.topics))

    def _round(self, number: int, offset: int) -> EventRound | None:
        """The batch's round with an event at an offset; None where it never closed, or was passed over."""
        current = self._rounds.get(number)
        if current is not None and current.first <= offset < current.end:
            return current
        return None

    def _at(self, current: EventRound, saw: _Saw, topics: Iterable[Any]) -> _Saw:
        """What was seen at a round, with the topics that pass the filters."""
        return msgspec.structs.replace(
            saw,
            round=current.taken.round,
            elapsed=current.taken.elapsed,
            closed=current.taken.closed_time,
            topics=tuple([topic for topic in topics if self._watches_topic(topic.topic)]),
        )

    def _add_groups(self, alike: GroupsAlike, saw: GroupObservation, current: EventRound) -> None:
        """Lay what was seen of several groups beside each, with the place in the log that is the group's own."""
        # Without a log, observations are ordered by their rounds.
        unplaced = msgspec.structs.replace(saw, log_position=current.taken.round)
        log, cluster_id = current.taken.closed.log, current.taken.closed.cluster_id
        # What the filters exclude now must still end.
        for key in alike.keys if saw.gone is not None else filter(self._watches, alike.keys):
            placed = unplaced
            if log:
                partition = partition_for(key, len(log), cluster_id)
                placed = msgspec.structs.replace(saw, log_partition=partition, log_position=log[partition])
            self._keep(key, placed)

    def _keep(self, group: str, saw: OfGroup) -> None:
        self._groups.setdefault(group, []).append(saw)
        self.held += _EVENT_BYTES

    def take(self) -> tuple[dict[str, list[OfGroup]], dict[str, list[ClusterTopicObservation]]]:
        """The observations since the last call, by group and by topic of the cluster."""
        taken = self._groups, self._topics
        self._groups, self._topics, self.held = {}, {}, 0
        return taken
