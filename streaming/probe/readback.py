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
            if closed is None:
                return Memory()
            resting = _resting(consumer, settings, closed, deadline) if closed.untold else []
            return recall(closed, _events(consumer, settings, closed, closed.events, deadline), resting)
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


def _resting(consumer: Any, settings: Settings, closed: RoundClosed, deadline: Deadline) -> list[Event]:
    """What the rounds of a heartbeat told of idle groups and of those that are gone, the oldest first.

    Every group that is untold in the newest round became idle, or was told as such, within it.
    """
    place = TopicPartition(settings.probe.rounds_topic, 0)
    first, end = _bounds(consumer, [place])[place]
    since = max(0, closed.time - settings.job.heartbeat_ms)
    found = consumer.offsets_for_times({place: since})[place]
    begin = max(first, found.offset) if found is not None else first
    rounds = [decode_round(record.value) for record in _records(consumer, {place: (begin, end)}, deadline)]
    return [
        event
        for before in rounds
        if isinstance(before, RoundClosed) and before.cluster == settings.cluster and before.round < closed.round
        for event in _events(consumer, settings, before, before.resting, deadline)
    ]


def _events(
    consumer: Any,
    settings: Settings,
    closed: RoundClosed,
    positions: Mapping[str, tuple[int, int]],
    deadline: Deadline,
) -> list[Event]:
    """The events of a closed round that lie between positions."""
    places = {
        TopicPartition(settings.probe.events_topic, int(partition)): between for partition, between in positions.items()
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
            # Not paused: kafka-python remembers that of a partition that is assigned again, and what it had fetched.
            del open_ranges[place]
