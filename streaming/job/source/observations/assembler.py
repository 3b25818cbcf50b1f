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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from streaming.events import (
    LOG,
    ClusterTopicEvent,
    GroupEvent,
    GroupGone,
    RejectedEvent,
    RocketMQGroupEvent,
    SeenEvent,
    SeenGroupEvent,
    TopicEvent,
    UnknownType,
    decode_event,
)
from streaming.job.source.observations.event_rounds import EventRound, windows_of, wrong_event
from streaming.job.source.observations.observed import (
    cluster_topic_observation,
    rest_of,
    rocketmq_observation,
    topic_bytes,
    topic_observation,
)
from streaming.job.source.observations.seen import SeenParts, size_of
from streaming.offsets_log import LogRecord, UnreadableRecords
from streaming.record_batches import Record
from streaming.records import (
    ClusterTopicObservation,
    GroupObservation,
    RocketMQObservation,
    Seen,
    TopicObservation,
)

OfGroup = GroupObservation | RocketMQObservation
"""One group in one round, whatever was seen of it."""

_LARGEST = 2**63 - 1

# For observations whose topics have not all come yet. A probe writes a group's topics right behind it, so only one
# group waits at a time: this is enough for half a million partitions with their racks.
_WAITING_BYTES = 128 * 1024 * 1024

# Memory of an event, and of each topic of it, as an observation, in addition to its strings and offsets.
_EVENT_BYTES = 500

# Memory of a RocketMQ group's event as an observation, in bytes for each byte of its JSON: a client id that takes 30
# bytes there is a string of 80, a held queue of 60 a struct of 300 with its texts.
_ROCKETMQ_TIMES = 5


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
        self.unreadable = UnreadableRecords(partition, windows_of(self._rounds.values()), topic, typed=False)
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
        if isinstance(event, RejectedEvent):
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
        wrong = wrong_event(event, current) or self._too_much(current, size)
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
        observation = cluster_topic_observation(event, current)
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
            observation = topic_observation(event)
            opened.topics.append(observation)
            size += topic_bytes(observation)
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
        since, until = rest_of(of_group) if of_group else (-1, -1)
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
            rested_since=since,
            rested_until=until,
            seen=seen,
            coordinator_moves=current.moves.get(event.log_partition, ()),
            coordinator_epoch=current.epochs[event.log_partition] if current.epochs else -1,
            configured=of_group.configured if of_group else None,
        )
        self._observations.setdefault(event.group, []).append(observation)
        self.made += size

    def _lost_events(self, current: EventRound) -> bool:
        return current.first < self._gone_below

    def _reject(self, record: LogRecord, reason: str) -> None:
        # (Before `start`, too: no earlier batch has judged the events of this batch's rounds.)
        self.unreadable.reject(record, reason)
