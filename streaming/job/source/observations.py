"""From the probe's events to ticks: one per group and round, whole or not at all.

The events of one group and round lie in one partition of the events topic: a `GroupEvent`, then exactly as many
`TopicEvent`s as it announces; or a lone `GroupGone`. An event counts if its round is one of the batch's rounds and
it lies between that round's positions in its partition; all others are skipped, as their round never closed, or was
passed over. A tick with a topic missing would show a group without lag where there is some, so it is not made:
its first record goes to `quarantine`. Events of types that this release does not know may stand anywhere between them.

Nothing here is held without a bound, whatever is written: a tick waits for its topics no longer than to its round's
end, those that wait take no more than `_WAITING_BYTES`, and a round's events no more than its closing record tells.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from streaming.events import Event, GroupEvent, GroupGone, Rejected, TopicEvent, UnknownType, decode_event
from streaming.job.source.plan import LATEST_MS, TakenRound
from streaming.offsets_log import LogRecord, Unread, Windows, partition_for
from streaming.record_batches import Record
from streaming.records import Tick, TopicTick, Window
from streaming.times import DAY_MS

__all__ = ["EventRound", "TickAssembler", "event_rounds"]

_LARGEST = 2**63 - 1

# Of ticks whose topics did not all come yet. A probe writes the topics of a group right behind it, so those of one
# group wait at a time: this is enough for half a million partitions with their racks.
_WAITING_BYTES = 128 * 1024 * 1024

# What an event, and a topic of it, takes as a tick, beside its strings and offsets.
_EVENT_BYTES = 500


@dataclass(frozen=True, slots=True)
class EventRound:
    """A closed round as one partition of the events topic needs it.

    Attributes:
        round: Number of the round.
        opened: Offset of its opening record, which its events name.
        time: The round's time, ms.
        first: First offset of the round's events in the partition.
        end: Exclusive end of them.
        log: The round's position in each partition of the offsets log.
        elapsed: As in `Tick`, ms.
        size: Bytes of the round's events in all partitions, as it tells; 0 when it does not.
    """

    round: int
    opened: int
    time: int
    first: int
    end: int
    log: tuple[int, ...]
    elapsed: int = -1
    size: int = 0


def event_rounds(taken: Iterable[TakenRound], partition: int) -> tuple[EventRound, ...]:
    """The rounds with events in a partition of the events topic."""
    return tuple(
        EventRound(
            t.summary.round,
            t.closed.round,
            t.closed.time,
            first,
            end,
            t.closed.log,
            t.summary.elapsed,
            t.closed.size,
        )
        for t in taken
        for name, (first, end) in t.closed.events.items()
        if int(name) == partition and first < end
    )


@dataclass(slots=True)
class _Open:
    """A group's events of one round, as far as they came; `record` is the first of them."""

    event: GroupEvent
    record: LogRecord
    size: int
    seen: set[str] = field(default_factory=set)
    topics: list[TopicTick] = field(default_factory=list)


class TickAssembler:
    """Puts the events of one partition together.

    Call `add` for every record of the partition, in order, `take` whenever enough ticks are made, and at the end
    `finish` and `take` once more.

    Attributes:
        made: Bytes of the ticks made since the last `take`, about.
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
        self._rounds: Mapping[int, EventRound] = {r.opened: r for r in rounds}
        self.unread = Unread(partition, _windows(self._rounds.values()), topic, typed=False)
        self._start = start
        self._watches = watches
        self._watches_topic = watches_topic
        self._open: dict[tuple[int, str], _Open] = {}
        self._waiting = 0
        self._first_end = _LARGEST
        self._sizes: dict[int, int] = {}
        self._ticks: dict[str, list[Tick]] = {}
        self._done: set[tuple[int, str]] = set()
        self._next = 0
        self._gone_below = 0

    def gap(self, end: int) -> None:
        """Tell that records below `end` no longer exist. Rounds that lost events are incomplete without any blame."""
        self._gone_below = max(self._gone_below, end)

    def reject(self, record: LogRecord, reason: str) -> None:
        """Leave a record unread, unless the batch before has read it."""
        if record.offset >= self._start:
            self.unread.reject(record, reason)

    def add(self, record: Record) -> None:
        """Take the next record. Never raises on what a topic can hold."""
        plain = LogRecord(*record)
        self._next = plain.offset + 1
        if plain.offset >= self._first_end:
            self._give_up(lambda current: current.end <= plain.offset)
        event = decode_event(plain.value)
        if isinstance(event, Rejected):
            self.reject(plain, event.reason)
            return
        if isinstance(event, UnknownType):
            if plain.offset >= self._start:
                self.unread.unknown(plain, f"event/{event.name}", event.reason)
            return
        current = self._rounds.get(event.round)
        if current is None or not current.first <= plain.offset < current.end:
            return
        # The filters that silence a group now would silence its end, too: `GroupGone` tells that it is filtered.
        if not isinstance(event, GroupGone) and not self._watches(event.group):
            return
        size = len(plain.value or b"")
        wrong = _wrong(event, current) or self._too_much(current, size)
        if wrong is not None:
            self._reject(plain, wrong)
        elif isinstance(event, TopicEvent):
            self._add_topic(plain, event, current)
        else:
            self._add_group(plain, event)
        if self._waiting > _WAITING_BYTES:
            self._give_up(lambda _: True)

    def take(self) -> dict[str, list[Tick]]:
        """The ticks made so far, per group, in order of their last events; they are forgotten here."""
        ticks, self._ticks, self.made = self._ticks, {}, 0
        # Of rounds that lie behind no second event can come.
        self._done = {key for key in self._done if self._rounds[key[0]].end > self._next}
        return ticks

    def finish(self) -> None:
        """Give up on ticks whose topics did not all come."""
        self._give_up(lambda _: True)

    def _give_up(self, behind: Callable[[EventRound], bool]) -> None:
        """Make no ticks of the open events of some rounds."""
        for key, opened in list(self._open.items()):
            current = self._rounds[key[0]]
            if not behind(current):
                continue
            self._close(key)
            self._done.add(key)
            if not self._lost_events(current):
                missing = opened.event.topics - len(opened.seen)
                self._reject(opened.record, f"{missing} of {opened.event.topics} topics of the group did not follow")
        self._first_end = min((self._rounds[number].end for number, _ in self._open), default=_LARGEST)

    def _too_much(self, current: EventRound, size: int) -> str | None:
        """Why an event is one too many: the batch was made as large as the rounds told."""
        total = self._sizes[current.round] = self._sizes.get(current.round, 0) + size
        if not current.size or total <= current.size:
            return None
        return f"round {current.round} tells {current.size:,} bytes of events, and has more in this partition alone"

    def _add_group(self, record: LogRecord, event: GroupEvent | GroupGone) -> None:
        key = event.round, event.group
        size = _EVENT_BYTES + len(record.value or b"")
        if key in self._done or key in self._open:
            self._reject(record, f"the group stands in round {event.round} a second time")
        elif isinstance(event, GroupGone):
            self._emit(event, gone=event.reason, topics=(), size=size)
        elif event.topics == 0:
            self._emit(event, gone=None, topics=(), size=size)
        else:
            self._open[key] = _Open(event, record, size)
            self._waiting += size
            self._first_end = min(self._first_end, self._rounds[event.round].end)

    def _add_topic(self, record: LogRecord, event: TopicEvent, current: EventRound) -> None:
        key = event.round, event.group
        opened = self._open.get(key)
        if opened is None or event.topic in opened.seen:
            if opened is not None or not self._lost_events(current):
                self._reject(record, f"no event of the group in round {event.round} announces this topic event")
            return
        opened.seen.add(event.topic)
        size = _EVENT_BYTES + len(event.topic)
        if self._watches_topic(event.topic):
            tick = _topic_tick(event)
            opened.topics.append(tick)
            size += _topic_bytes(tick)
        opened.size += size
        self._waiting += size
        if len(opened.seen) == opened.event.topics:
            self._close(key)
            self._emit(opened.event, gone=None, topics=tuple(opened.topics), size=opened.size)

    def _close(self, key: tuple[int, str]) -> None:
        self._waiting -= self._open.pop(key).size

    def _emit(self, event: GroupEvent | GroupGone, gone: str | None, topics: tuple[TopicTick, ...], size: int) -> None:
        self._done.add((event.round, event.group))
        told = event if isinstance(event, GroupEvent) else None
        current = self._rounds[event.round]
        tick = Tick(
            round=current.round,
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
            elapsed=current.elapsed,
        )
        self._ticks.setdefault(event.group, []).append(tick)
        self.made += size

    def _lost_events(self, current: EventRound) -> bool:
        return current.first < self._gone_below

    def _reject(self, record: LogRecord, reason: str) -> None:
        # (Wherever it lies: no batch before has judged the events of a round of this batch.)
        self.unread.reject(record, reason)


def _windows(rounds: Iterable[EventRound]) -> Windows:
    """The windows of the partition, each named by the round with whose events it is read, which lies above."""
    above = sorted(rounds, key=lambda current: current.end)
    windows: list[Window] = []
    day = 0
    for current in above:
        day = max(day, current.elapsed // DAY_MS)
        windows.append(Window(current.round, day))
    return Windows([current.end for current in above[:-1]], windows or [Window()])


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


def _topic_bytes(tick: TopicTick) -> int:
    racks = sum(len(rack) + 60 for racks in tick.racks or () for rack in racks) + 8 * len(tick.racks or ())
    return len(tick.end_offsets) + len(tick.stable_offsets) + len(tick.start_offsets) + racks


def _packed(offsets: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(offsets)}q", *offsets)
