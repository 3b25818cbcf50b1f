"""A batch's rounds as one partition of the events topic needs them, and which events contradict theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streaming.events import LOG, GroupEvent, GroupGone, SeenEvent, SeenGroupEvent, SeenGroupGone, TopicEvent
from streaming.job.source.brokers import epochs_of, moves_of
from streaming.job.source.plan import LATEST_MS, TakenRound
from streaming.offsets_log import Windows, partition_for
from streaming.records import CoordinatorMove, Window
from streaming.times import DAY_MS

_LARGEST = 2**63 - 1


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
        cluster_id: Kafka's own id of the cluster; None when unknown.
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
    cluster_id: str | None = None


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
            t.closed.cluster_id,
        )
        for t in taken
        for name, (first, end) in t.closed.events.items()
        if int(name) == partition and first < end
    )


def windows_of(rounds: Iterable[EventRound]) -> Windows:
    """The windows of the partition, each named by the round above it, with whose events it is read."""
    above = sorted(rounds, key=lambda current: current.end)
    windows: list[Window] = []
    day = 0
    for current in above:
        day = max(day, current.elapsed // DAY_MS)
        windows.append(Window(current.round, day))
    return Windows([current.end for current in above[:-1]], windows or [Window()])


def wrong_event(event: GroupEvent | GroupGone | TopicEvent | SeenEvent, current: EventRound) -> str | None:
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
    return None


def _wrong_position(event: GroupEvent | GroupGone, current: EventRound) -> str | None:
    if event.log_partition >= len(current.log) or event.log_position != current.log[event.log_partition]:
        return f"position {event.log_position} of log partition {event.log_partition} is not the round's"
    if partition_for(event.group, len(current.log), current.cluster_id) != event.log_partition:
        return f"the group's log partition is not {event.log_partition}"
    return None
