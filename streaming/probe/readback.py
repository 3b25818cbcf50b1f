"""Reads back the probe's own records: the last closed round, from which a new probe knows the groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final, TypeVar

from kafka.errors import KafkaError

from streaming.bus import TopicReader
from streaming.config import Settings
from streaming.events import Event, GroupsEvent, RejectedEvent, UnknownType, decode_event, decode_round
from streaming.probe.bus import open_bus_reader
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError, error_text
from streaming.probe.kafka.memory import Memory, recall
from streaming.record_batches import (
    FetchedBatch,
    OffsetRange,
    Record,
    UnreadableTopicError,
    ask_offsets,
    walk,
)
from streaming.records import RoundClosed

T = TypeVar("T")

_LOOKBACK = 16
"""The last closing record is among the last two records, unless rounds failed; each further step goes 16 times back."""

_ASK_S: Final = 5.0
"""Limit for one question about offsets: brokers answer from memory, and a stop waits as long. kafka-python would wait
for its `request_timeout_ms`, 30 s, until a partition has a leader again."""


def remember(settings: Settings, deadline: Deadline) -> Memory:
    """Read the memory of the last closed round; empty when there is none, or its events are past their retention.

    By this memory a group or a topic that was deleted while no probe ran is found missing. After an outage beyond the
    retention it is not: nothing is known of it any more.

    Raises:
        RoundAbandonedError: The topics could not be read.
    """
    return read_back(settings, deadline, recall) or Memory()


def read_back(
    settings: Settings, deadline: Deadline, make: Callable[[RoundClosed, Iterable[Event], Iterable[Event]], T]
) -> T | None:
    """Make a memory of the last closed round; None when there is none.

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


def bounds(consumer: Any, partitions: list[Any], deadline: Deadline) -> dict[Any, tuple[int, int]]:
    """First offset and exclusive end of each partition.

    Raises:
        KafkaError: A partition has no leader, or the brokers did not answer in time.
        RoundAbandonedError: There is no time left.
    """
    limit_ms = int(min(_ASK_S, deadline.remaining()) * 1000)
    first = ask_offsets(consumer.beginning_offsets, partitions, limit_ms)
    end = ask_offsets(consumer.end_offsets, partitions, limit_ms)
    return {tp: (first[tp], end[tp]) for tp in partitions}


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
