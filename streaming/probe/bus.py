"""What the probe writes its records to, and reads them back from: a Kafka's topics, or a folder (`streaming/bus/`).

Read back is the last closed round, from which a new probe knows the groups.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kafka.errors import InvalidTimestampError, KafkaError, KafkaTimeoutError

from streaming.bus import BusFolderError, FolderLog, FolderObjects, FolderReader, TopicReader
from streaming.config import KafkaSettings, Settings
from streaming.events import Event, GroupsEvent, RejectedEvent, UnknownType, decode_event, decode_round
from streaming.exceptions import SetupError
from streaming.lifecycle import room_log
from streaming.probe.clients import open_admin, open_producer, open_reader
from streaming.probe.deadline import Deadline, RoundAbandonedError, error_text
from streaming.probe.topics import create_missing, no_own_time
from streaming.record_batches import (
    FetchedBatch,
    OffsetRange,
    Record,
    UnreadableTopicError,
    walk,
)
from streaming.records import RoundClosed

_LOG = room_log(__name__)

_OUR_TIME: Final = 1
"""The timestamp that we send with an opening record: 1 ms after the epoch.

The acknowledgement carries the broker's time where the topic's timestamps are LogAppendTime. Otherwise it carries ours,
and nobody can mistake this value for a time. The probe's own clock is never used.
"""

_CLOSE_S: Final = 1.0
"""How long the last acknowledgements may take when the probe ends."""

_PATIENCE_S: Final = 5.0
"""How long a folder that does not answer is asked again: a stop waits as long."""

_APPENDED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the records that are appended to a folder at once. A reader holds that many; one record may have more."""

KeyValue = tuple[bytes, bytes]
"""Key and value of a record."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A record that is there.

    Attributes:
        partition: Its partition.
        offset: Its offset.
        timestamp: Its time by the bus, ms.
    """

    partition: int
    offset: int
    timestamp: int


def open_appender(settings: Settings) -> Appender:
    """An appender to the settings' bus; what is missing there is created.

    Raises:
        RoundAbandonedError: The bus could not be reached, or refused the credentials.
        SetupError: A person must fix something.
    """
    folder = settings.bus_folder
    try:
        if folder is not None:
            return FolderAppender(FolderObjects(folder, settings.cluster), settings.probe.retention_ms)
        with closing(open_admin(settings.bus_kafka)) as admin:
            for topic in create_missing(admin, settings.probe):
                _LOG.info("Created topic %s.", topic)
        return KafkaAppender(settings.bus_kafka)
    except (KafkaError, BusFolderError) as error:
        # Named, because another team may run the bus than the watched cluster.
        where = "cluster" if settings.bus is None and folder is None else "bus"
        message = f"the {where} did not answer ({error_text(error)})"
        raise RoundAbandonedError(message) from error


def open_bus_reader(settings: Settings) -> TopicReader:
    """A reader of the settings' bus.

    Raises:
        KafkaError: It could not be reached, or refused the credentials.
        SetupError: A secret cannot be read.
    """
    if settings.bus_folder is not None:
        return FolderReader(FolderObjects(settings.bus_folder, settings.cluster), _PATIENCE_S)
    return open_reader(settings.bus_kafka)


class KafkaAppender:
    """Appends to topics, by an idempotent producer: each record is acknowledged by all in-sync replicas.

    After an error it may still hold, and later deliver, some of them: then take a new one.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        """Open the producer.

        Raises:
            KafkaError: The cluster could not be reached, or refused the credentials.
        """
        self._producer = open_producer(kafka)

    def append(
        self, topic: str, records: Iterable[KeyValue], timestamp: int | None, deadline: Deadline
    ) -> list[Acknowledged]:
        """Append records, and wait until they are there.

        Args:
            topic: Its name.
            records: They are taken one by one.
            timestamp: Their time, ms, as far as the topic does not set its own; None for the opening record of a round,
                whose time must be the broker's own.
            deadline: It goes on with each answer.

        Raises:
            RoundAbandonedError: One was not acknowledged.
            SetupError: The topic does not keep the broker's own time.
        """
        sent = _OUR_TIME if timestamp is None else timestamp
        try:
            acks = [self._producer.send(topic, value, key, timestamp_ms=sent) for key, value in records]
            self._flush(deadline, acks)
            got = [ack.get(0) for ack in acks]
        except KafkaError as error:
            # A limit on the writers' times (message.timestamp.before.max.ms) is applied to ours first.
            if timestamp is None and isinstance(error, InvalidTimestampError):
                raise SetupError(no_own_time(topic)) from error
            message = f"topic {topic} did not accept a record ({error_text(error)})"
            raise RoundAbandonedError(message) from error
        if timestamp is None and any(one.timestamp == _OUR_TIME for one in got):
            raise SetupError(no_own_time(topic))
        return [Acknowledged(one.partition, one.offset, one.timestamp) for one in got]

    def tend(self) -> None:
        """A broker looks after its topics itself."""

    def close(self) -> None:
        """Give up records without an acknowledgement, and close it."""
        with contextlib.suppress(KafkaError):
            self._producer.close(timeout=_CLOSE_S)
            return
        # kafka-python 3.0.12: a close whose flush times out leaves the sender running.
        self._producer._sender.force_close()  # noqa: SLF001
        self._producer._sender.join(_CLOSE_S)  # noqa: SLF001
        with contextlib.suppress(KafkaError):
            self._producer.close(timeout=_CLOSE_S)

    def _flush(self, deadline: Deadline, acks: Sequence[Any]) -> None:
        left = deque(acks)

        def flushed(seconds: float) -> bool:
            try:
                self._producer.flush(seconds)
            except KafkaTimeoutError:
                while left and left[0].is_done:
                    left.popleft()
                    deadline.answered()
                return False
            return True

        deadline.begin()
        deadline.wait(flushed)


class FolderAppender:
    """Appends to the logs of a folder."""

    def __init__(self, objects: FolderObjects, keep_ms: int) -> None:
        """Create the bus where there is none.

        Args:
            objects: The cluster's objects.
            keep_ms: How long records are kept.

        Raises:
            BusFolderError: The folder cannot be read or written.
            SetupError: The store ignores the conditions of writes.
        """
        if objects.create_bus():
            _LOG.info("Created the bus in %s.", objects)
        self._objects, self._keep_ms, self._id = objects, keep_ms, objects.bus_id()
        self._logs: dict[str, FolderLog] = {}

    def append(
        self, topic: str, records: Iterable[KeyValue], timestamp: int | None, deadline: Deadline
    ) -> list[Acknowledged]:
        """As `KafkaAppender.append`; the opening record has the folder's own time."""
        log = self._logs.setdefault(topic, FolderLog(self._objects, topic))
        acknowledged: list[Acknowledged] = []
        deadline.begin()
        try:
            if timestamp is None and self._objects.bus_id() != self._id:
                message = f"the folder {self._objects} has another bus than before"
                raise RoundAbandonedError(message)
            for some in _parts(records):
                appended = log.append(some, timestamp or 0)
                deadline.answered()
                offsets = range(appended.offset, appended.offset + len(some))
                acknowledged += [Acknowledged(0, offset, appended.time) for offset in offsets]
        except BusFolderError as error:
            raise RoundAbandonedError(str(error)) from error
        return acknowledged

    def tend(self) -> None:
        """Put old objects together, and delete those beyond the retention."""
        try:
            for log in self._logs.values():
                log.tend(self._keep_ms)
        except BusFolderError as error:
            _LOG.warning("Old records of the bus stay as they are for now: %s.", error)

    def close(self) -> None:
        """Nothing is held."""


# Appends to the bus, wherever it is.
Appender = KafkaAppender | FolderAppender


def _parts(records: Iterable[KeyValue]) -> Iterator[list[KeyValue]]:
    some: list[KeyValue] = []
    size = 0
    for record in records:
        if some and size + len(record[1]) > _APPENDED_BYTES:
            yield some
            some, size = [], 0
        some.append(record)
        size += len(record[1])
    if some:
        yield some


T = TypeVar("T")

_LOOKBACK = 16
"""The last closing record is among the last two records, unless rounds failed; each further step goes 16 times back."""


def read_back(
    settings: Settings, deadline: Deadline, make: Callable[[RoundClosed, Iterable[Event], Iterable[Event]], T]
) -> T | None:
    """Make a memory of the last closed round; None when there is none, or its events are past their retention.

    By this memory a group or a topic that was deleted while no probe ran is found missing. After an outage beyond the
    retention it is not: nothing is known of it any more.

    Args:
        settings: All settings.
        deadline: Goes on with what is read.
        make: Gets the closing record, the round's events, and the resting events before it (as `recall`).

    Raises:
        RoundAbandonedError: The topics could not be read.
    """
    try:
        with closing(open_bus_reader(settings)) as reader:
            newest = _closed(reader, settings, deadline, None)
            if not newest:
                return None
            closed = newest[-1]
            resting: Iterable[Event] = ()
            if closed.untold or closed.topics_since is not None:
                resting = _resting(reader, settings, closed, deadline)
            return make(closed, _events(reader, settings, {closed.round: closed.events}, deadline), resting)
    except (KafkaError, UnreadableTopicError) as error:
        message = f"the last round could not be read back ({error_text(error)})"
        raise RoundAbandonedError(message) from error


def _closed(reader: TopicReader, settings: Settings, deadline: Deadline, since: int | None) -> list[RoundClosed]:
    """The newest closed rounds, the oldest first: back to one from before a time, or at least one for None."""
    topic = settings.probe.rounds_topic
    end = reader.ends(topic).get(0, 0)
    first, lookback = end, _LOOKBACK
    found: list[RoundClosed] = []
    while first > 0 and not (found and (since is None or found[0].time < since)):
        first, lookback = max(0, end - lookback), lookback * 16
        wanted = [OffsetRange(topic, 0, first, end)]
        told = (decode_round(value) for _, (*_, value) in records(reader, wanted, deadline))
        found = [each for each in told if isinstance(each, RoundClosed) and each.cluster == settings.cluster]
    return found


def _resting(reader: TopicReader, settings: Settings, closed: RoundClosed, deadline: Deadline) -> list[Event]:
    """Events of idle groups, of groups that are gone and of topics, from the rounds of a heartbeat; the oldest first.

    Every group without events in the newest round became idle, or was reported as idle, within these rounds. The newest
    events of topics can be older after an outage.
    """
    since = closed.time - settings.job.heartbeat_ms
    since = since if closed.topics_since is None else min(since, closed.topics_since)
    before = _closed(reader, settings, deadline, since)
    resting = {each.round: each.resting for each in before if each.round < closed.round}
    return sorted(_events(reader, settings, resting, deadline), key=lambda event: event.saw.round)


def _events(
    reader: TopicReader, settings: Settings, positions: Mapping[int, Mapping[str, tuple[int, int]]], deadline: Deadline
) -> Iterator[Event]:
    """The events between positions: per round, as its closing record gives them.

    What lies between them is fetched, too, and not decoded: a request for each round would take longer.
    """
    wanted: dict[int, list[tuple[int, int]]] = {}
    for between in positions.values():
        for partition, place in between.items():
            wanted.setdefault(int(partition), []).append(place)
    ranges = [
        OffsetRange(settings.probe.events_topic, partition, min(places)[0], max(end for _, end in places))
        for partition, places in wanted.items()
    ]
    for where, (offset, _, _, value) in records(reader, ranges, deadline):
        if not any(first <= offset < end for first, end in wanted[where.partition]):
            continue
        record = decode_event(value)
        if isinstance(record, RejectedEvent | UnknownType) or record.cluster != settings.cluster:
            continue
        for event in record.events() if isinstance(record, GroupsEvent) else (record,):
            first, end = positions.get(event.saw.round, {}).get(str(where.partition), (0, 0))
            if first <= offset < end:
                yield event


def records(
    reader: TopicReader, ranges: Iterable[OffsetRange], deadline: Deadline
) -> Iterator[tuple[OffsetRange, Record]]:
    """What ranges still hold, in order per partition; the deadline goes on with each batch that is read.

    Raises:
        KafkaError, UnreadableTopicError: They could not be read.
        RoundAbandonedError, StopRequestedError: As `Deadline.remaining`.
    """
    deadline.begin()
    for where, batch in reader.read(ranges):
        deadline.answered()
        if isinstance(batch, FetchedBatch):
            yield from ((where, record) for record in walk(batch, where.start, where.end))
