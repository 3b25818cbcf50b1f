"""Reads back the probe's own records: the last closed round, from which a new probe knows the groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from kafka import TopicPartition
from kafka.errors import KafkaError

from streaming.config import Settings
from streaming.events import Event, GroupsEvent, RejectedEvent, UnknownType, decode_event, decode_round
from streaming.probe.clients import open_consumer
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError, error_text
from streaming.probe.kafka.memory import Memory, recall
from streaming.record_batches import ask_offsets
from streaming.records import RoundClosed

T = TypeVar("T")

_LOOKBACK = 16
"""The last closing record is among the last two records, unless rounds failed; each further step goes 16 times back."""

_READ_THROUGH = 1_000
"""Gaps between two ranges up to this many records are read, not skipped: a seek discards what was already fetched."""

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
        consumer = open_consumer(settings.bus_kafka)
        try:
            closed = _last_closed(consumer, settings, deadline)
            if closed is None:
                return None
            is_partial = closed.untold or closed.topics_since is not None
            resting = _resting(consumer, settings, closed, deadline) if is_partial else ()
            return make(closed, _events(consumer, settings, {closed.round: closed.events}, deadline), resting)
        finally:
            consumer.close()
    except KafkaError as error:
        message = f"the last round could not be read back ({error_text(error)})"
        raise RoundAbandonedError(message) from error


def _last_closed(consumer: Any, settings: Settings, deadline: Deadline) -> RoundClosed | None:
    tp = TopicPartition(settings.probe.rounds_topic, 0)
    first, end = bounds(consumer, [tp], deadline)[tp]
    upper, lookback = end, _LOOKBACK
    while upper > first:
        lower = max(first, end - lookback)
        last = None
        for _, _, _, value in records(consumer, {tp: [(lower, upper)]}, deadline):
            found = decode_round(value)
            if isinstance(found, RoundClosed) and found.cluster == settings.cluster:
                last = found
        if last is not None:
            return last
        upper, lookback = lower, lookback * 16
    return None


def _resting(consumer: Any, settings: Settings, closed: RoundClosed, deadline: Deadline) -> Iterator[Event]:
    """Events of idle groups, of groups that are gone and of topics, from the rounds of a heartbeat; the oldest first.

    Every group without events in the newest round became idle, or was reported as idle, within these rounds. The newest
    events of topics can be older after an outage.
    """
    tp = TopicPartition(settings.probe.rounds_topic, 0)
    first, end = bounds(consumer, [tp], deadline)[tp]
    since = closed.time - settings.job.heartbeat_ms
    since = max(0, since if closed.topics_since is None else min(since, closed.topics_since))
    found = consumer.offsets_for_times({tp: since}, timeout_ms=limit_ms(deadline))[tp]
    begin = max(first, found.offset) if found is not None else first
    rounds = (decode_round(value) for _, _, _, value in records(consumer, {tp: [(begin, end)]}, deadline))
    resting = {
        before.round: before.resting
        for before in rounds
        if isinstance(before, RoundClosed) and before.cluster == settings.cluster and before.round < closed.round
    }
    yield from _events(consumer, settings, resting, deadline)


def _events(
    consumer: Any, settings: Settings, positions: Mapping[int, Mapping[str, tuple[int, int]]], deadline: Deadline
) -> Iterator[Event]:
    """The events between positions: per round, as its closing record gives them."""
    topic = settings.probe.events_topic
    ranges: dict[Any, list[tuple[int, int]]] = {}
    for between in positions.values():
        for partition, (first, end) in between.items():
            ranges.setdefault(TopicPartition(topic, int(partition)), []).append((first, end))
    # Retention may have taken the oldest.
    left = bounds(consumer, list(ranges), deadline)
    there = {
        tp: [(max(first, left[tp][0]), min(end, left[tp][1])) for first, end in sorted(of_rounds)]
        for tp, of_rounds in ranges.items()
    }
    for tp, offset, _, value in records(consumer, there, deadline):
        record = decode_event(value)
        if isinstance(record, RejectedEvent | UnknownType) or record.cluster != settings.cluster:
            continue
        for event in record.events() if isinstance(record, GroupsEvent) else (record,):
            first, end = positions.get(event.saw.round, {}).get(str(tp.partition), (0, 0))
            if first <= offset < end:
                yield event


def bounds(consumer: Any, partitions: list[Any], deadline: Deadline) -> dict[Any, tuple[int, int]]:
    """First offset and exclusive end of each partition.

    Raises:
        KafkaError: A partition has no leader, or the brokers did not answer in time.
        RoundAbandonedError: There is no time left.
    """
    first = ask_offsets(consumer.beginning_offsets, partitions, limit_ms(deadline))
    end = ask_offsets(consumer.end_offsets, partitions, limit_ms(deadline))
    return {tp: (first[tp], end[tp]) for tp in partitions}


def limit_ms(deadline: Deadline) -> int:
    """How long one question about offsets may take, ms; raises as `Deadline.remaining`."""
    return int(min(_ASK_S, deadline.remaining()) * 1000)


def records(
    consumer: Any, ranges: Mapping[Any, Sequence[tuple[int, int]]], deadline: Deadline
) -> Iterator[tuple[Any, int, int, bytes | None]]:
    """The records of the given offsets [first, end), in order per partition; some outside the ranges may come too.

    Args:
        consumer: A consumer of our own; its assignment is replaced.
        ranges: Per partition, in order.
        deadline: Goes on with what is read.

    Returns:
        Partition, offset, time in ms and value of each.
    """
    deadline.begin()
    waiting = {tp: deque(each for each in of_tp if each[0] < each[1]) for tp, of_tp in ranges.items()}
    waiting = {tp: of_tp for tp, of_tp in waiting.items() if of_tp}
    consumer.assign(list(waiting))
    for tp, of_tp in waiting.items():
        consumer.seek(tp, of_tp[0][0])
    while waiting:
        polled = consumer.poll(timeout_ms=int(min(0.2, deadline.remaining()) * 1000))
        if polled:
            deadline.answered()
        for tp, found in polled.items():
            yield from ((tp, record.offset, record.timestamp, record.value) for record in found)
        for tp, of_tp in list(waiting.items()):
            position = consumer.position(tp)
            while of_tp and of_tp[0][1] <= position:
                of_tp.popleft()
            if not of_tp:
                # Not paused: kafka-python remembers that for a partition that is assigned again, together with the
                # records it had fetched.
                del waiting[tp]
            elif of_tp[0][0] > position + _READ_THROUGH:
                consumer.seek(tp, of_tp[0][0])
