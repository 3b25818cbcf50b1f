"""From the probe's events to ticks: one per group and round, whole or not at all.

The events of one group and round lie in one partition of the events topic: a `GroupEvent`, then exactly as many
`TopicEvent`s as it announces; or a lone `GroupGone`. An event counts if its round is one of the batch's rounds and
it lies between that round's positions in its partition; all others are skipped, as their round never closed, or was
passed over. A tick with a topic missing would show a group without lag where there is some, so it is not made:
its first record goes to `quarantine`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from streaming.events import Event, GroupEvent, GroupGone, Rejected, TopicEvent, decode_event
from streaming.groups.inputs import Tick, TopicTick
from streaming.groups.quarantine import QuarantinedRecord
from streaming.job.source.plan import LATEST_MS, TakenRound
from streaming.job.source.unreadable import quarantined
from streaming.offsets_log import partition_for
from streaming.record_batches.walk import Record

__all__ = ["EventRound", "TickAssembler", "event_rounds"]

_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class EventRound:
    """A closed round as one partition of the events topic needs it.

    Attributes:
        round: Number of the round.
        time: The round's time, ms.
        first: First offset of the round's events in the partition.
        end: Exclusive end of them.
        log: The round's position in each partition of the offsets log.
        elapsed: As in `Tick`, ms.
    """

    round: int
    time: int
    first: int
    end: int
    log: tuple[int, ...]
    elapsed: int = -1


def event_rounds(taken: Iterable[TakenRound], partition: int) -> tuple[EventRound, ...]:
    """The rounds with events in a partition of the events topic."""
    return tuple(
        EventRound(t.closed.round, t.closed.time, first, end, t.closed.log, t.summary.elapsed)
        for t in taken
        for name, (first, end) in t.closed.events.items()
        if int(name) == partition and first < end
    )


@dataclass(slots=True)
class _Open:
    """A group's events of one round, as far as they came."""

    event: GroupEvent
    record: Record
    seen: set[str] = field(default_factory=set)
    topics: list[TopicTick] = field(default_factory=list)


class TickAssembler:
    """Puts the events of one partition together.

    Call `add` for every record of the partition, in order, `take` whenever enough ticks are made, and at the end
    `finish` and `take` once more.

    Attributes:
        made: Ticks made since the last `take`.
        unread: What goes to `quarantine`.
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
            start: Where the batch starts in this partition. Records before it are read again for the sake of a
                round that began there; what is undecodable among them is in `quarantine` already.
            watches: Whether a group passes the filters.
            watches_topic: Whether a topic passes the filters.
        """
        self.made = 0
        self.unread: list[QuarantinedRecord] = []
        self._topic = topic
        self._partition = partition
        self._rounds: Mapping[int, EventRound] = {r.round: r for r in rounds}
        self._start = start
        self._watches = watches
        self._watches_topic = watches_topic
        self._open: dict[tuple[int, str], _Open] = {}
        self._ticks: dict[str, list[Tick]] = {}
        self._done: set[tuple[int, str]] = set()
        self._next = 0
        self._gone_below = 0

    def gap(self, end: int) -> None:
        """Tell that records below `end` no longer exist. Rounds that lost events are incomplete without any blame."""
        self._gone_below = max(self._gone_below, end)

    def add(self, record: Record) -> None:
        """Take the next record. Never raises on what a topic can hold."""
        offset, _, _, value = record
        self._next = offset + 1
        event = decode_event(value)
        if isinstance(event, Rejected):
            if offset >= self._start:
                self._reject(record, event.reason)
            return
        current = self._rounds.get(event.round)
        if current is None or not current.first <= offset < current.end:
            return
        # The filters that silence a group now would silence its end, too: `GroupGone` tells that it is filtered.
        if not isinstance(event, GroupGone) and not self._watches(event.group):
            return
        wrong = _wrong(event, current)
        if wrong is not None:
            self._reject(record, wrong)
        elif isinstance(event, TopicEvent):
            self._add_topic(record, event, current)
        else:
            self._add_group(record, event)

    def take(self) -> dict[str, list[Tick]]:
        """The ticks made so far, per group, in order of their last events; they are forgotten here."""
        ticks, self._ticks, self.made = self._ticks, {}, 0
        # Of rounds that lie behind no second event can come.
        self._done = {key for key in self._done if self._rounds[key[0]].end > self._next}
        return ticks

    def finish(self) -> None:
        """Give up on ticks whose topics did not all come."""
        for opened in self._open.values():
            if self._lost_events(self._rounds[opened.event.round]):
                continue
            missing = opened.event.topics - len(opened.seen)
            self._reject(opened.record, f"{missing} of {opened.event.topics} topics of the group did not follow")
        self._open.clear()

    def _add_group(self, record: Record, event: GroupEvent | GroupGone) -> None:
        key = event.round, event.group
        if key in self._done or key in self._open:
            self._reject(record, f"the group stands in round {event.round} a second time")
        elif isinstance(event, GroupGone):
            self._emit(event, gone=event.reason, topics=())
        elif event.topics == 0:
            self._emit(event, gone=None, topics=())
        else:
            self._open[key] = _Open(event, record)

    def _add_topic(self, record: Record, event: TopicEvent, current: EventRound) -> None:
        opened = self._open.get((event.round, event.group))
        if opened is None or event.topic in opened.seen:
            if opened is not None or not self._lost_events(current):
                self._reject(record, f"no event of the group in round {event.round} announces this topic event")
            return
        opened.seen.add(event.topic)
        if self._watches_topic(event.topic):
            opened.topics.append(_topic_tick(event))
        if len(opened.seen) == opened.event.topics:
            del self._open[event.round, event.group]
            self._emit(opened.event, gone=None, topics=tuple(opened.topics))

    def _emit(self, event: GroupEvent | GroupGone, gone: str | None, topics: tuple[TopicTick, ...]) -> None:
        self._done.add((event.round, event.group))
        told = event if isinstance(event, GroupEvent) else None
        tick = Tick(
            round=event.round,
            time=event.time,
            log_partition=event.log_partition,
            log_position=event.log_position,
            state=told.state if told else None,
            protocol_type=told.protocol_type if told else None,
            group_type=told.group_type if told else None,
            gone=gone,
            held_since=told.held_since if told else None,
            topics=topics,
            cluster_id=told.cluster_id if told else None,
            held_by_producer=told.held_by_producer if told else None,
            held_by=told.held_by if told else None,
            idle=told is not None and told.idle,
            elapsed=self._rounds[event.round].elapsed,
        )
        self._ticks.setdefault(event.group, []).append(tick)
        self.made += 1

    def _lost_events(self, current: EventRound) -> bool:
        return current.first < self._gone_below

    def _reject(self, record: Record, reason: str) -> None:
        offset, timestamp, key, value = record
        self.unread.append(quarantined(self._topic, self._partition, offset, timestamp, key, value, reason))


def _wrong(event: Event, current: EventRound) -> str | None:
    """Why an event contradicts its round: a tick is judged with exactly the records below the round's positions."""
    if isinstance(event, TopicEvent):
        return None
    if event.log_partition >= len(current.log) or event.log_position != current.log[event.log_partition]:
        return f"position {event.log_position} of log partition {event.log_partition} is not the round's"
    if partition_for(event.group, len(current.log)) != event.log_partition:
        return f"the group's log partition is not {event.log_partition}"
    if event.time != current.time:
        return "its time is not the round's"
    if isinstance(event, GroupEvent):
        if not 0 <= event.topics <= _LARGEST:
            return "a negative or impossible number of topics"
        if event.held_since is not None and not 0 <= event.held_since <= LATEST_MS:
            return "the time since when the log is held back is no time"
    return None


def _topic_tick(event: TopicEvent) -> TopicTick:
    return TopicTick(
        topic=event.topic,
        topic_id=event.topic_id,
        partitions=event.partitions,
        end_offsets=_packed(event.end),
        stable_offsets=_packed(event.stable),
        start_offsets=_packed(event.start),
        racks=event.racks,
    )


def _packed(offsets: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(offsets)}q", *offsets)
