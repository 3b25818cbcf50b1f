"""From the probe's events to observations: one per group and round, complete or not at all.

The events of one group and round are in one partition of the events topic: a `GroupEvent`, then exactly as many
`TopicEvent`s as it announces; or a lone `GroupGone`. In a round that does not read the log it is a `SeenGroupEvent`,
with what is seen of the group behind it, or a `SeenGroupGone`. A `ClusterTopicEvent` and a `RocketMQGroupEvent` are
complete by themselves. An event counts if its round is one of the batch's rounds and its offset is between that round's
positions in its partition; all others are skipped, because their round never closed or was passed over. An observation
without one of its topics would show a group without lag where there is some, so it is dropped: its first record goes to
`quarantine`. Events of types that this release does not know may be anywhere between.

Everything held here is limited, whatever the topic contains: an observation waits for its topics until its round's end
at most, all that wait take at most `_WAITING_BYTES`, and a round's events at most the bytes in its closing record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from streaming.events import (
    LOG,
    ClusterTopicEvent,
    GroupEvent,
    GroupGone,
    Rejected,
    RocketMQGroupEvent,
    SeenEvent,
    SeenGroupEvent,
    SeenGroupGone,
    TopicEvent,
    UnknownType,
    decode_event,
)
from streaming.job.source.brokers import epochs_of, moves_of
from streaming.job.source.plan import LATEST_MS, TakenRound
from streaming.job.source.seen import SeenParts, size_of
from streaming.offsets_log import LogRecord, UnreadableRecords, Windows, partition_for
from streaming.record_batches import Record
from streaming.records import (
    ClusterTopicObservation,
    CoordinatorMove,
    GroupObservation,
    RocketMQObservation,
    Seen,
    TopicObservation,
    TopicRetention,
    UnreadTimestamp,
    Window,
)
from streaming.times import DAY_MS

OfGroup = GroupObservation | RocketMQObservation
"""One group in one round, whatever was seen of it."""

_LARGEST = 2**63 - 1

# For observations whose topics have not all come yet. A probe writes a group's topics right behind it, so only one
# group waits at a time: this is enough for half a million partitions with their racks.
_WAITING_BYTES = 128 * 1024 * 1024

# Memory of an event, and of each topic of it, as an observation, in addition to its strings and offsets.
_EVENT_BYTES = 500

# Memory of an `UnreadTimestamp` with its place in a dict.
_UNREAD_BYTES = 250

# Memory of a RocketMQ group's event as an observation, in bytes for each byte of its JSON: a client id that takes 30
# bytes there is a string of 80, a held queue of 60 a struct of 300 with its texts.
_ROCKETMQ_TIMES = 5


@dataclass(frozen=True, slots=True)
class EventRound:
    """A closed round as one partition of the events topic needs it.

    Attributes:
        round: Number of the round.
        opened: Offset of its opening record, which its events carry.
        time: The round's time, ms.
        first: First offset of the round's events in the partition.
        end: Exclusive end of them.
        log: The round's position in each partition of the offsets log.
        elapsed: As in `GroupObservation`, ms.
        size: Bytes of the round's events in all partitions, from its closing record; 0 when it does not give them.
        closed: Append time of its closing record, ms; -1 when unknown.
        source: Where its groups were read from. Without the log, `log` is empty.
        moves: How coordinators moved lately, by partition of the offsets log.
        epochs: Leader epoch of each partition of the offsets log; empty when unknown.
    """

    round: int
    opened: int
    time: int
    first: int
    end: int
    log: tuple[int, ...]
    elapsed: int = -1
    size: int = 0
    closed: int = -1
    source: str = LOG
    moves: Mapping[int, tuple[CoordinatorMove, ...]] = field(default_factory=dict)
    epochs: tuple[int, ...] = ()


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
            t.summary.closed_time,
            t.closed.source,
            moves_of(t.closed.brokers),
            epochs_of(t.closed.brokers),
        )
        for t in taken
        for name, (first, end) in t.closed.events.items()
        if int(name) == partition and first < end
    )


@dataclass(slots=True)
class _Open:
    """A group's events of one round, as far as they have come; `record` is the first of them."""

    event: GroupEvent
    record: LogRecord
    size: int
    seen: set[str] = field(default_factory=set)
    topics: list[TopicObservation] = field(default_factory=list)
    parts: SeenParts | None = None

    @property
    def missing(self) -> int:
        """Events of the group that have not come yet."""
        return self.event.topics - len(self.seen) + (self.parts.missing if self.parts is not None else 0)


class ObservationAssembler:
    """Puts the events of one partition together.

    Call `add` for every record of the partition, in order, `take` whenever enough observations are complete, and at the
    end `finish` and `take` once more.

    Attributes:
        made: Approximate bytes of the observations completed since the last `take`.
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
        self.made = 0
        self._rounds: Mapping[int, EventRound] = {r.opened: r for r in rounds}
        self.unreadable = UnreadableRecords(partition, _windows(self._rounds.values()), topic, typed=False)
        self._start = start
        self._watches = watches
        self._watches_topic = watches_topic
        self._open: dict[tuple[int, str], _Open] = {}
        self._waiting = 0
        self._first_end = _LARGEST
        self._sizes: dict[int, int] = {}
        self._observations: dict[str, list[OfGroup]] = {}
        self._cluster_topics: dict[str, list[ClusterTopicObservation]] = {}
        self._topics_done: set[tuple[int, str]] = set()
        self._done: set[tuple[int, str]] = set()
        self._next = 0
        self._gone_below = 0

    def gap(self, end: int) -> None:
        """Report that records below `end` no longer exist. Rounds that lost events are then incomplete, not wrong."""
        self._gone_below = max(self._gone_below, end)

    def reject(self, record: LogRecord, reason: str) -> None:
        """Put a record in `unreadable`, unless the batch before has read it."""
        if record.offset >= self._start:
            self.unreadable.reject(record, reason)

    def add(self, record: Record) -> None:
        """Process the next record. Never raises, whatever the topic holds."""
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
                self.unreadable.unknown(plain, f"event/{event.name}", event.reason)
            return
        current = self._rounds.get(event.round)
        if current is None or not current.first <= plain.offset < current.end:
            return
        if isinstance(event, ClusterTopicEvent):
            self._add_cluster_topic(plain, event, current)
            return
        if isinstance(event, RocketMQGroupEvent):
            self._add_rocketmq_group(plain, event, current)
            return
        # A group that the filters exclude now must still end: `GroupGone` is what reports it as filtered.
        if not isinstance(event, GroupGone) and not self._watches(event.group):
            return
        size = len(plain.value or b"")
        wrong = _wrong(event, current) or self._too_much(current, size)
        if wrong is not None:
            self._reject(plain, wrong)
        elif isinstance(event, TopicEvent):
            self._add_topic(plain, event, current)
        elif isinstance(event, SeenEvent):
            self._add_seen(plain, event, current)
        else:
            self._add_group(plain, event)
        if self._waiting > _WAITING_BYTES:
            self._give_up(lambda _: True)

    def take(self) -> dict[str, list[OfGroup]]:
        """Return the observations completed so far, per group, ordered by their last events, and forget them."""
        observations, self._observations, self.made = self._observations, {}, 0
        # Rounds behind the current offset get no further events.
        self._done = {key for key in self._done if self._rounds[key[0]].end > self._next}
        return observations

    def take_topics(self) -> dict[str, list[ClusterTopicObservation]]:
        """Return the observations of the cluster's topics so far, by topic, and forget them. Called before `take`."""
        topics, self._cluster_topics = self._cluster_topics, {}
        self._topics_done = {key for key in self._topics_done if self._rounds[key[0]].end > self._next}
        return topics

    def finish(self) -> None:
        """Give up observations whose topics did not all come."""
        self._give_up(lambda _: True)

    def _give_up(self, behind: Callable[[EventRound], bool]) -> None:
        """Drop the open events of some rounds, without observations."""
        for key, opened in list(self._open.items()):
            current = self._rounds[key[0]]
            if not behind(current):
                continue
            self._close(key)
            self._done.add(key)
            if not self._lost_events(current):
                missing, announced = opened.missing, opened.event.topics
                what = f"{announced} topics" if opened.parts is None else "the events"
                self._reject(opened.record, f"{missing} of {what} of the group did not follow")
        self._first_end = min((self._rounds[number].end for number, _ in self._open), default=_LARGEST)

    def _too_much(self, current: EventRound, size: int) -> str | None:
        """Why an event exceeds the limit: the batch was sized by the bytes that the rounds announced."""
        total = self._sizes[current.round] = self._sizes.get(current.round, 0) + size
        if not current.size or total <= current.size:
            return None
        return f"round {current.round} announces {current.size:,} bytes of events, and has more in this partition alone"

    def _add_group(self, record: LogRecord, event: GroupEvent | GroupGone) -> None:
        key = event.round, event.group
        size = _EVENT_BYTES + len(record.value or b"")
        if key in self._done or key in self._open:
            self._reject(record, f"the group appears in round {event.round} a second time")
            return
        if isinstance(event, GroupGone):
            self._emit(event, gone=event.reason, topics=(), size=size)
            return
        current = self._rounds[event.round]
        opened = _Open(event, record, size)
        if isinstance(event, SeenGroupEvent):
            opened.parts = SeenParts(current.source, event)
        if opened.missing:
            self._open[key] = opened
            self._waiting += size
            self._first_end = min(self._first_end, current.end)
        else:
            self._emit(event, gone=None, topics=(), size=size, parts=opened.parts)

    def _add_cluster_topic(self, record: LogRecord, event: ClusterTopicEvent, current: EventRound) -> None:
        key = event.round, event.topic
        size = len(record.value or b"")
        wrong = "its time is not the round's" if event.time != current.time else self._too_much(current, size)
        if key in self._topics_done:
            wrong = f"the topic appears in round {event.round} a second time"
        if wrong is not None:
            self._reject(record, wrong)
            return
        # A topic that the filters exclude now must still end.
        if event.gone is None and not self._watches_topic(event.topic):
            return
        self._topics_done.add(key)
        observation = ClusterTopicObservation(
            round=current.round,
            time=event.time,
            elapsed=current.elapsed,
            gone=event.gone,
            topic_id=event.topic_id,
            end=event.end,
            start=event.start,
            leaders=event.leaders,
            sizes=event.sizes,
            unsized=event.unsized,
            groups=event.groups,
            readers=event.readers,
            hidden=event.hidden,
        )
        self._cluster_topics.setdefault(event.topic, []).append(observation)
        self.made += _EVENT_BYTES + size + 8 * 4 * len(event.end)

    def _add_rocketmq_group(self, record: LogRecord, event: RocketMQGroupEvent, current: EventRound) -> None:
        # As for Kafka's groups: one that the filters exclude now must still end.
        if event.gone is None and not self._watches(event.group):
            return
        key = event.round, event.group
        size = len(record.value or b"")
        wrong = "its time is not the round's" if event.time != current.time else self._too_much(current, size)
        if key in self._done or key in self._open:
            wrong = f"the group appears in round {event.round} a second time"
        if wrong is not None:
            self._reject(record, wrong)
            return
        self._done.add(key)
        observation = rocketmq_observation(event, current, self._watches_topic)
        self._observations.setdefault(event.group, []).append(observation)
        self.made += _EVENT_BYTES + _ROCKETMQ_TIMES * size

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
            observation = _topic_observation(event)
            opened.topics.append(observation)
            size += _topic_bytes(observation)
        self._complete(key, opened, size)

    def _add_seen(self, record: LogRecord, event: SeenEvent, current: EventRound) -> None:
        key = event.round, event.group
        opened = self._open.get(key)
        if opened is None or opened.parts is None or not opened.parts.missing or not opened.parts.add(event):
            if opened is not None or not self._lost_events(current):
                self._reject(record, f"no event of the group in round {event.round} announces what is seen of it")
            return
        self._complete(key, opened, _EVENT_BYTES + size_of(event, len(record.value or b"")))

    def _complete(self, key: tuple[int, str], opened: _Open, size: int) -> None:
        """Add the bytes of one more event of a group, and emit the observation if that was the last."""
        opened.size += size
        self._waiting += size
        if not opened.missing:
            self._close(key)
            self._emit(opened.event, gone=None, topics=tuple(opened.topics), size=opened.size, parts=opened.parts)

    def _close(self, key: tuple[int, str]) -> None:
        self._waiting -= self._open.pop(key).size

    def _emit(
        self,
        event: GroupEvent | GroupGone,
        gone: str | None,
        topics: tuple[TopicObservation, ...],
        size: int,
        parts: SeenParts | None = None,
    ) -> None:
        self._done.add((event.round, event.group))
        of_group = event if isinstance(event, GroupEvent) else None
        current = self._rounds[event.round]
        rested = (of_group.rested if of_group else None) or (-1, -1)
        seen = parts.seen() if parts is not None else None
        if seen is None and current.source != LOG:
            seen = Seen(current.source)
        observation = GroupObservation(
            round=current.round,
            time=event.time,
            log_partition=event.log_partition,
            # Without a log, observations are ordered by their rounds.
            log_position=event.log_position if seen is None else current.round,
            state=of_group.state if of_group else None,
            protocol_type=of_group.protocol_type if of_group else None,
            group_type=of_group.group_type if of_group else None,
            gone=gone,
            held_since=of_group.held_since if of_group else None,
            topics=topics,
            cluster_id=of_group.cluster_id if of_group else None,
            held_by_producer=of_group.held_by_producer if of_group else None,
            held_by=of_group.held_by if of_group else None,
            idle=of_group is not None and of_group.idle,
            elapsed=current.elapsed,
            closed=current.closed,
            rested_since=rested[0],
            rested_until=rested[1],
            seen=seen,
            coordinator_moves=current.moves.get(event.log_partition, ()),
            coordinator_epoch=current.epochs[event.log_partition] if current.epochs else -1,
        )
        self._observations.setdefault(event.group, []).append(observation)
        self.made += size

    def _lost_events(self, current: EventRound) -> bool:
        return current.first < self._gone_below

    def _reject(self, record: LogRecord, reason: str) -> None:
        # (Before `start`, too: no earlier batch has judged the events of this batch's rounds.)
        self.unreadable.reject(record, reason)


def _windows(rounds: Iterable[EventRound]) -> Windows:
    """The windows of the partition, each named by the round above it, with whose events it is read."""
    above = sorted(rounds, key=lambda current: current.end)
    windows: list[Window] = []
    day = 0
    for current in above:
        day = max(day, current.elapsed // DAY_MS)
        windows.append(Window(current.round, day))
    return Windows([current.end for current in above[:-1]], windows or [Window()])


def _wrong(event: GroupEvent | GroupGone | TopicEvent | SeenEvent, current: EventRound) -> str | None:
    """Why an event contradicts its round: an observation counts exactly the records below the round's positions."""
    if isinstance(event, TopicEvent):
        return None
    of_log = current.source == LOG
    if isinstance(event, SeenEvent):
        return "its round reads the log" if of_log else None
    if of_log == isinstance(event, SeenGroupEvent | SeenGroupGone):
        return "it has no log position, and its round has" if of_log else "it has a log position, and its round none"
    if of_log and (wrong := _wrong_position(event, current)) is not None:
        return wrong
    if event.time != current.time:
        return "its time is not the round's"
    if isinstance(event, GroupEvent):
        if not 0 <= event.topics <= _LARGEST:
            return "a negative or impossible number of topics"
        if event.held_since is not None and not 0 <= event.held_since <= LATEST_MS:
            return "the time since which the log is blocked is not a valid time"
        if event.rested is not None and not 0 <= event.rested[0] <= event.rested[1] <= LATEST_MS:
            return "the times between which the group rested are not valid times"
    return None


def rocketmq_observation(
    event: RocketMQGroupEvent, current: EventRound, watches_topic: Callable[[str], bool]
) -> RocketMQObservation:
    """What one round saw of a RocketMQ group, as the core gets it: with the topics that pass the filters."""
    rested = event.rested or (-1, -1)
    return RocketMQObservation(
        round=current.round,
        time=event.time,
        gone=event.gone,
        brokers=event.brokers,
        members=event.members,
        topics=tuple(topic for topic in event.topics if watches_topic(topic.topic)),
        idle=event.idle,
        cut=event.cut,
        elapsed=current.elapsed,
        closed=current.closed,
        rested_since=rested[0],
        rested_until=rested[1],
        name_servers=event.name_servers,
    )


def _wrong_position(event: GroupEvent | GroupGone, current: EventRound) -> str | None:
    if event.log_partition >= len(current.log) or event.log_position != current.log[event.log_partition]:
        return f"position {event.log_position} of log partition {event.log_partition} is not the round's"
    if partition_for(event.group, len(current.log)) != event.log_partition:
        return f"the group's log partition is not {event.log_partition}"
    return None


def _topic_observation(event: TopicEvent) -> TopicObservation:
    kept = event.retention
    return TopicObservation(
        topic=event.topic,
        topic_id=event.topic_id,
        partitions=event.partitions,
        high_watermarks=_packed(event.end),
        last_stable_offsets=_packed(event.stable),
        log_start_offsets=_packed(event.start),
        racks=event.racks,
        retention=TopicRetention(kept.ms, kept.bytes, kept.deletes, kept.append_time) if kept is not None else None,
        unread={one.partition: UnreadTimestamp(one.offset, one.reached, one.below, one.own) for one in event.unread},
    )


def _topic_bytes(observation: TopicObservation) -> int:
    racks = sum(len(rack) + 60 for racks in observation.racks or () for rack in racks) + 8 * len(
        observation.racks or ()
    )
    return (
        len(observation.high_watermarks)
        + len(observation.last_stable_offsets)
        + len(observation.log_start_offsets)
        + racks
        + _UNREAD_BYTES * len(observation.unread)
    )


def _packed(offsets: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(offsets)}q", *offsets)
