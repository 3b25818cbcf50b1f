"""Writes a round: its opening record, its events, its closing record. Each is acknowledged before the next."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from streaming.config import ProbeSettings
from streaming.events import (
    EVENTS_VERSION,
    MAX_RECORD_BYTES,
    ClusterTopicEvent,
    Event,
    EventRecord,
    GroupEvent,
    GroupsEvent,
    RocketMQGroupEvent,
    encode,
    pack,
    topics_bytes,
)
from streaming.lifecycle import room_log
from streaming.probe.bus import Acknowledged, Appender, KeyValue
from streaming.probe.deadline import Deadline
from streaming.records import LONGEST_INTERVAL_MS, RoundClosed, RoundOpened
from streaming.terminal import visible

_LOG = room_log(__name__)

LATE_INTERVALS: Final = 2
"""A round may take so many intervals before they stretch. Silence begins with three, so up to here nobody notices; with
one, each garbage collection would stretch them."""

ROUNDS_KEPT: Final = 3
"""The slowest of the last rounds counts. With one, rounds of 19 and 21 s by turns would stretch and shrink the interval
all the time; with many, one slow round would hide a silence for long."""


class RoundInterval:
    """The interval that a probe writes into its records.

    Call `note_own_round` after each round of its own, `note_other_interval` after each of another probe.
    """

    def __init__(self, interval_ms: int) -> None:
        """Begin with the configured interval."""
        self._configured = interval_ms
        self._took: deque[int] = deque(maxlen=ROUNDS_KEPT)
        self._told = 0
        self._said = False

    @property
    def interval_ms(self) -> int:
        """From one round to the next: the configured interval, or as many of them as the slowest of the last rounds."""
        longest = max(self._took, default=0)
        whole = -(-longest // self._configured) * self._configured
        return max(self._configured, whole if self._is_late(longest) else 0, self._told)

    def note_own_round(self, needed_ms: int) -> None:
        """Take how long a round of this probe needed, as it closes."""
        self._took.append(needed_ms)
        self._told = 0

    def note_other_interval(self, interval_ms: int) -> None:
        """Take the interval of another probe: rounds of this one would take as long. A made-up one counts as 10 min."""
        self._told = min(interval_ms, LONGEST_INTERVAL_MS) if self._is_late(interval_ms) else 0

    def change_in_words(self) -> str | None:
        """A sentence after the round with which the intervals stretch, and one after they are as configured again."""
        stretched = bool(self._took) and self.interval_ms > self._configured
        if stretched is self._said:
            return None
        self._said = stretched
        every = f"every {self._configured / 1000:g} s"
        if not stretched:
            return f"Rounds come {every} again."
        return (
            f"A round took {max(self._took) / 1000:.1f} s: they come every {self.interval_ms / 1000:g} s, not {every}, "
            "and silence is judged by that. Raise probe.interval_ms, or watch fewer groups."
        )

    def _is_late(self, ms: int) -> bool:
        return ms > LATE_INTERVALS * self._configured


_MOST_BYTES: Final = MAX_RECORD_BYTES - 64 * 1024
"""Bytes of one event. The rest of its record is the key, a group id of up to 32 KB, and some bytes of Kafka's own."""

_OBSERVATION_BYTES: Final = 200
"""About what a group's event takes by itself, without its topics."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An open round.

    Attributes:
        number: Offset of its opening record.
        time: The append time of that record, by the bus.
    """

    number: int
    time: int


@dataclass(frozen=True, slots=True)
class WrittenEvents:
    """The events of a round, acknowledged.

    Attributes:
        positions: First offset and exclusive end per partition (as text) of the events topic.
        groups: Groups with events.
        events: Number of events; several groups' may be in one record.
        resting: As `positions`, of the events of idle groups, of groups that are gone and of the cluster's topics.
        size: Bytes of the events, each by itself.
    """

    positions: dict[str, tuple[int, int]]
    groups: int
    events: int
    resting: dict[str, tuple[int, int]]
    size: int


class RoundWriter:
    """Writes rounds: for each call `open`, then `write`, then `close_round`, each once; `end` after the last one.

    After an error records of the abandoned round may still be delivered later; they carry its number, which never gets
    a closing record. Then `close` the writer and take a new one.
    """

    def __init__(
        self,
        cluster: str,
        settings: ProbeSettings,
        bus: Appender,
        probe: str,
        supervisor: str | None = None,
        pace: RoundInterval | None = None,
    ) -> None:
        """Begin.

        Args:
            cluster: Name of the cluster.
            settings: The topics.
            bus: What appends to them; this closes it.
            probe: Id of the probe in the records.
            supervisor: What starts it again (`standby.Identity`).
            pace: The interval in the records; it gets how long each round takes. None for that of the settings.
        """
        self._cluster = cluster
        self._settings = settings
        self._bus = bus
        self._probe, self._supervisor = probe, supervisor
        self._pace = pace or RoundInterval(settings.interval_ms)
        self._opened_at = 0.0
        self._too_large: set[str] = set()
        self.newest: int | None = None
        """Offset of the newest record that it has written to the rounds topic; None before the first."""

    def open(self, deadline: Deadline, since: int | None = None) -> Opened:
        """Write the opening record.

        Args:
            deadline: When the round has to be done.
            since: Number of the first round of this run; None where this is the first.

        Raises:
            RoundAbandonedError: It was not acknowledged.
            SetupError: The topic does not keep the bus's own time.
        """
        self._opened_at = time.monotonic()
        return self._write_opening(since, deadline)

    def end(self, deadline: Deadline) -> Opened:
        """Write that the probe makes no further round for now, a record that opens nothing; raises as `open`."""
        return self._write_opening(None, deadline, ends=True)

    def _write_opening(self, since: int | None, deadline: Deadline, *, ends: bool = False) -> Opened:
        interval_ms = self._pace.interval_ms
        record = RoundOpened(
            EVENTS_VERSION, self._cluster, self._probe, interval_ms, since, self._supervisor, ends=ends
        )
        ack = self._append_round(encode(record), None, deadline)
        return Opened(ack.offset, ack.timestamp)

    def write(self, opened: Opened, events: Sequence[Event], deadline: Deadline) -> WrittenEvents:
        """Write the events, and wait for all acknowledgements.

        Their timestamp is the round's time, so that their retention does not depend on the probe's clock either. A
        group's event that no record can hold is written without its topics: their lag is not known in this round, and
        every other group's is.

        Raises:
            RoundAbandonedError: One was not acknowledged.
        """
        resting = [event for event in events if _rests(event)]
        at_rest = list(_records(resting))
        records = [*at_rest, *_records([event for event in events if not _rests(event)])]
        size = 0

        def encoded() -> Iterator[KeyValue]:
            nonlocal size
            for record in records:
                value = self._encode_fitting(record)
                size += _spread_bytes(record, value)
                yield record.key.encode("utf-8"), value

        written = self._bus.append(self._settings.events_topic, encoded(), opened.time, deadline)
        groups = sum(not isinstance(event, ClusterTopicEvent) for event in events)
        return WrittenEvents(_ranges(written), groups, len(events), _ranges(written[: len(at_rest)]), size)

    def _encode_fitting(self, event: EventRecord) -> bytes:
        value = encode(event)
        if len(value) <= _MOST_BYTES:
            return value
        if event.key not in self._too_large:
            self._too_large.add(event.key)
            _LOG.warning(
                "Group %s has too many partitions for one record (%d MB): its topics are left out of the rounds, and "
                "their lag is not known. Leave some of them out with filters.ignore_topics.",
                visible(event.key),
                len(value) // 1_000_000,
            )
        smaller = map(encode, _smaller(event))
        return next((less for less in smaller if len(less) <= _MOST_BYTES), value)

    def close_round(self, opened: Opened, written: WrittenEvents, deadline: Deadline, **saw: Any) -> RoundClosed:
        """Write the closing record.

        Args:
            opened: The round.
            written: Its events.
            deadline: When the round has to be done.
            saw: The other fields of the record: what the round saw.

        Raises:
            RoundAbandonedError: It was not acknowledged; it may have been written even so.
        """
        self._pace.note_own_round(int((time.monotonic() - self._opened_at) * 1000))
        record = RoundClosed(
            v=EVENTS_VERSION,
            cluster=self._cluster,
            probe=self._probe,
            interval_ms=self._pace.interval_ms,
            round=opened.number,
            time=opened.time,
            events=written.positions,
            groups=written.groups,
            written=written.events,
            resting=written.resting,
            size=written.size,
            **saw,
        )
        self._append_round(encode(record), opened.time, deadline)
        self._bus.tend()
        return record

    def close(self) -> None:
        """Give up records without an acknowledgement, and close what appends them."""
        self._bus.close()

    def _append_round(self, value: bytes, timestamp: int | None, deadline: Deadline) -> Acknowledged:
        record = self._cluster.encode("utf-8"), value
        [acknowledged] = self._bus.append(self._settings.rounds_topic, [record], timestamp, deadline)
        self.newest = acknowledged.offset
        return acknowledged


def _rests(event: Event) -> bool:
    return isinstance(event, ClusterTopicEvent) or event.saw.gone is not None or event.saw.idle


def _records(events: Sequence[Event]) -> Iterator[EventRecord]:
    yield from (event for event in events if not isinstance(event, GroupEvent))
    yield from pack(event for event in events if isinstance(event, GroupEvent))


def _spread_bytes(record: EventRecord, value: bytes) -> int:
    """Bytes of a record once each of its groups has its topics."""
    if not isinstance(record, GroupsEvent):
        return len(value)
    sizes = [topics_bytes([topic]) for topic in record.topics]
    each = (len(of.keys) * (_OBSERVATION_BYTES + sum(sizes[index] for index in of.topics)) for of in record.groups)
    return len(value) + sum(each)


def _smaller(record: EventRecord) -> Iterator[EventRecord]:
    """A record without what makes it too large, the least loss first."""
    if isinstance(record, GroupsEvent):
        groups = tuple([msgspec.structs.replace(of, topics=()) for of in record.groups])
        yield msgspec.structs.replace(record, topics=(), groups=groups)
    elif isinstance(record, RocketMQGroupEvent):
        saw = record.saw
        topics = tuple([msgspec.structs.replace(topic, queues=()) for topic in saw.topics])
        less = msgspec.structs.replace(saw, topics=topics, cut=tuple(sorted({*saw.cut, "queues"})))
        yield msgspec.structs.replace(record, saw=less)
        cut = tuple(sorted({*saw.cut, "members", "topics"}))
        yield msgspec.structs.replace(record, saw=msgspec.structs.replace(saw, topics=(), members=(), cut=cut))


def _ranges(written: Iterable[Acknowledged]) -> dict[str, tuple[int, int]]:
    """First offset and exclusive end by partition."""
    ranges: dict[int, tuple[int, int]] = {}
    for record in written:
        first, end = ranges.get(record.partition, (record.offset, record.offset))
        ranges[record.partition] = (min(first, record.offset), max(end, record.offset + 1))
    return {str(partition): ranges[partition] for partition in sorted(ranges)}
