"""Reads back what the probe itself wrote: the last closed round, from which a new start knows its groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaError

from streaming.config import Settings
from streaming.events import Event, Rejected, RoundClosed, decode_event, decode_round
from streaming.probe.clients import open_consumer
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError, told
from streaming.probe.observe import Memory, recall

__all__ = ["remember"]

_LOOKBACK = 16
"""The last closing record is among the last two records, unless rounds failed; each further look goes 16 times back."""


def remember(settings: Settings, deadline: Deadline) -> Memory:
    """Read the memory of the last closed round; empty when there is none, or its events are past their retention.

    A group that was deleted while no probe ran is found missing by this memory. After an outage beyond the
    retention it is not: nothing is known of it any more.

    Raises:
        RoundAbandonedError: The topics could not be read.
    """
    try:
        consumer = open_consumer(settings.kafka)
        try:
            closed = _last_closed(consumer, settings, deadline)
            return Memory() if closed is None else recall(closed, _events(consumer, settings, closed, deadline))
        finally:
            consumer.close()
    except KafkaError as error:
        message = f"the last round could not be read back ({told(error)})"
        raise RoundAbandonedError(message) from error


def _last_closed(consumer: Any, settings: Settings, deadline: Deadline) -> RoundClosed | None:
    place = TopicPartition(settings.probe.rounds_topic, 0)
    first, end = _bounds(consumer, [place])[place]
    upper, lookback = end, _LOOKBACK
    while upper > first:
        lower = max(first, end - lookback)
        last = None
        for record in _records(consumer, {place: (lower, upper)}, deadline):
            found = decode_round(record.value)
            if isinstance(found, RoundClosed) and found.cluster == settings.cluster:
                last = found
        if last is not None:
            return last
        upper, lookback = lower, lookback * 16
    return None


def _events(consumer: Any, settings: Settings, closed: RoundClosed, deadline: Deadline) -> list[Event]:
    places = {
        TopicPartition(settings.probe.events_topic, int(partition)): positions
        for partition, positions in closed.events.items()
    }
    bounds = _bounds(consumer, list(places))
    there = {
        place: (max(first, bounds[place][0]), min(end, bounds[place][1])) for place, (first, end) in places.items()
    }
    events = [decode_event(record.value) for record in _records(consumer, there, deadline)]
    return [
        event
        for event in events
        if not isinstance(event, Rejected) and event.round == closed.round and event.cluster == closed.cluster
    ]


def _bounds(consumer: Any, places: list[Any]) -> dict[Any, tuple[int, int]]:
    if not places:
        return {}
    first, end = consumer.beginning_offsets(places), consumer.end_offsets(places)
    return {place: (first[place], end[place]) for place in places}


def _records(consumer: Any, ranges: Mapping[Any, tuple[int, int]], deadline: Deadline) -> Iterator[Any]:
    """The records of the given offsets [first, end), in order per partition."""
    open_ranges = {place: end for place, (first, end) in ranges.items() if first < end}
    consumer.assign(list(open_ranges))
    for place in open_ranges:
        consumer.seek(place, ranges[place][0])
    while open_ranges:
        polled = consumer.poll(timeout_ms=int(min(0.2, deadline.remaining()) * 1000))
        for place, records in polled.items():
            yield from (record for record in records if record.offset < open_ranges.get(place, 0))
        for place in [place for place, end in open_ranges.items() if consumer.position(place) >= end]:
            del open_ranges[place]
            consumer.pause(place)
