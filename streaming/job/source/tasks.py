"""The tasks of a batch: what each one reads, and how a batch is divided among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from pyspark.sql.datasource import InputPartition

from streaming.events import UnknownType
from streaming.job.source.events import EventRound, event_rounds
from streaming.job.source.plan import Batch
from streaming.job.source.positions import Positions
from streaming.offsets_log import LogRecord, UnreadableRecords, Windows
from streaming.records import (
    ROUNDS_KEY,
    ClosedRound,
    CountedRecords,
    LogGap,
    PartitionInput,
    Window,
    WindowEnd,
    encode_inputs,
    partition_key,
    rows_of,
)
from streaming.times import DAY_MS

# An event is JSON and larger than a log record, but is only decoded, not folded: it takes the CPU time of about four
# commits.
_EVENT_WEIGHT = 4


@dataclass(frozen=True, slots=True)
class LogShare:
    """Offsets [start, end) of one partition of the offsets log.

    Attributes:
        partition: Partition of the offsets log.
        start: First offset wanted.
        end: Exclusive end.
        known: The partition was read before: then offsets that no longer exist are a gap. Otherwise it is read from its
            beginning, wherever that is.
        boundaries: The rounds' positions inside the range, ascending.
        windows: The stretches between rounds' positions, by which unreadable records are counted. None for those
            between `boundaries`.
    """

    partition: int
    start: int
    end: int
    known: bool
    boundaries: tuple[int, ...]
    windows: Windows | None = None


@dataclass(frozen=True, slots=True)
class EventsShare:
    """A batch's part of one partition of the events topic.

    Attributes:
        partition: Partition of the events topic.
        read_from: First offset that a round of the batch needs; may be below `start`.
        start: Where the batch starts: undecodable records before it were reported before.
        end: Exclusive end.
        known: As in `LogShare`.
        rounds: The batch's rounds with events here.
    """

    partition: int
    read_from: int
    start: int
    end: int
    known: bool
    rounds: tuple[EventRound, ...]


class SourceTask(InputPartition):  # type: ignore[misc]  # pyspark is not followed by mypy here
    """One task.

    Attributes:
        log_partitions: Partition count of the offsets log in this batch.
        log: Its shares of the offsets log.
        events: Its shares of the events topic.
        rows: Rows that the driver already had: (key, payload).
        cluster_id: Kafka's own id of the cluster; None where it is not known.
    """

    def __init__(
        self,
        log_partitions: int,
        log: tuple[LogShare, ...],
        events: tuple[EventsShare, ...],
        rows: tuple[tuple[str, bytes], ...],
        cluster_id: str | None = None,
    ) -> None:
        super().__init__(None)
        self.log_partitions = log_partitions
        self.log = log
        self.events = events
        self.rows = rows
        self.cluster_id = cluster_id


def share_out(
    start: Positions, end: Positions, batch: Batch, rows: Sequence[tuple[str, bytes]], tasks: int
) -> list[SourceTask]:
    """Divide a batch among tasks, the largest ranges first, each to the task with the least so far.

    Empty ranges make no share, and nothing at all makes no task.

    Args:
        start: Where the batch starts.
        end: Where it ends.
        batch: Its rounds.
        rows: Rows that the driver already had; they go to the first task.
        tasks: Tasks at the most.
    """
    shares: list[tuple[int, LogShare | EventsShare]] = []
    shares.extend((share.end - share.start, share) for share in _log_shares(start, end, batch))
    shares.extend((_EVENT_WEIGHT * _events_of(share), share) for share in _events_shares(start, end, batch))
    shares.sort(key=lambda weighed: weighed[0], reverse=True)
    # With fewer shares than tasks the other tasks would have nothing to do; rows alone need one task.
    count = min(tasks, max(len(shares), 1 if rows else 0))
    loads = [0] * count
    log: list[list[LogShare]] = [[] for _ in range(count)]
    events: list[list[EventsShare]] = [[] for _ in range(count)]
    for weight, share in shares:
        number = loads.index(min(loads))
        loads[number] += weight
        if isinstance(share, LogShare):
            log[number].append(share)
        else:
            events[number].append(share)
    return [
        SourceTask(
            len(end.log),
            tuple(log[number]),
            tuple(events[number]),
            tuple(rows) if number == 0 else (),
            end.cluster_id,
        )
        for number in range(count)
    ]


def gap_rows(gaps: Sequence[LogGap]) -> list[tuple[str, bytes]]:
    """Gaps under the keys of their partitions."""
    found: dict[tuple[str, int], list[PartitionInput]] = {}
    for gap in gaps:
        found.setdefault((gap.topic, gap.partition), []).append(gap)
    return [row for place, inputs in found.items() for row in rows_of(partition_key(*place), inputs)]


def ready_rows(topic: str, start: Positions, batch: Batch, gap: LogGap | None) -> list[tuple[str, bytes]]:
    """The rows from the rounds topic: the rounds taken, its unreadable records, its gap.

    Args:
        topic: The rounds topic.
        start: Where the batch starts.
        batch: The batch.
        gap: Records of the rounds topic that were deleted before they were read.
    """
    rows: list[tuple[str, bytes]] = []
    if batch.rounds:
        rows.append((ROUNDS_KEY, encode_inputs(batch.rounds)))
    marks = ((taken.offset + 1, taken) for taken in batch.rounds)
    unreadable = UnreadableRecords(0, _windows(marks, start, start.rounds, batch), topic, typed=False)
    for void in batch.void:
        record = LogRecord(void.record.offset, void.record.timestamp, void.record.key, void.record.value)
        if isinstance(void.record.content, UnknownType):
            unreadable.unknown(record, f"record/{void.record.content.name}", void.reason)
        else:
            unreadable.reject(record, void.reason)
    inputs: list[PartitionInput] = [gap] if gap else []
    rows.extend(rows_of(partition_key(topic, 0), inputs + unreadable.inputs()))
    for place, told in _told_unreadable(batch).items():
        rows.extend(rows_of(partition_key(*place), told))
    return rows


def _told_unreadable(batch: Batch) -> dict[tuple[str, int], list[PartitionInput]]:
    """Records of other topics that the probe could not decode, by topic and partition."""
    found: dict[tuple[str, int], list[PartitionInput]] = {}
    for taken in batch.rounds:
        window = Window(taken.round, taken.elapsed // DAY_MS)
        for told in taken.closed.unreadable:
            record = told.sample if isinstance(told, CountedRecords) else told
            found.setdefault((record.topic, record.partition), []).append(replace(told, window=window))
    return found


def window_ends(offsets_topic: str, rounds_topic: str, end: Positions) -> list[tuple[str, bytes]]:
    """The rows of the first batch with rounds after one without: what was counted there has not been written yet.

    One for every partition that such a batch may have read, because nobody here knows where it met unreadable records.

    Args:
        offsets_topic: The offsets log.
        rounds_topic: The rounds topic.
        end: Where the batch ends.
    """
    places = [*((offsets_topic, partition) for partition in end.log), (rounds_topic, 0)]
    return [(partition_key(*place), encode_inputs([WindowEnd()])) for place in places]


def _log_shares(start: Positions, end: Positions, batch: Batch) -> Iterable[LogShare]:
    for partition, last in end.log.items():
        first = start.log.get(partition, 0)
        if first >= last:
            continue
        positions = {taken.closed.log[partition] for taken in batch.rounds}
        boundaries = tuple(sorted(position for position in positions if first < position < last))
        marks = ((taken.closed.log[partition], taken) for taken in batch.rounds)
        windows = _windows(marks, start, first, batch)
        yield LogShare(partition, first, last, partition in start.log, boundaries, windows)


def _windows(marks: Iterable[tuple[int, ClosedRound]], start: Positions, first: int, batch: Batch) -> Windows:
    """The windows of a range, each named by the round below it, or by the one before the batch if that has none.

    Args:
        marks: The batch's rounds, each with the first offset behind it.
        start: Where the batch starts.
        first: Where the range starts.
        batch: The batch. One without rounds ends inside a window, whose end `window_ends` tells.
    """
    closed = bool(batch.rounds)
    positions: list[int] = []
    windows = [Window(start.round, start.elapsed // DAY_MS, closed)]
    for position, taken in sorted(marks, key=lambda mark: mark[0]):
        window = Window(taken.round, taken.elapsed // DAY_MS, closed)
        if position <= (positions[-1] if positions else first):
            windows[-1] = window
        else:
            positions.append(position)
            windows.append(window)
    return Windows(positions, windows)


def _events_of(share: EventsShare) -> int:
    """About how many events are in a share: a round's are spread evenly over its records."""
    found = share.end - share.read_from
    for current in share.rounds:
        closed = current.taken.closed
        records = sum(end - first for first, end in closed.events.values())
        found += closed.written * (current.end - current.first) // records
    return found


def _events_shares(start: Positions, end: Positions, batch: Batch) -> Iterable[EventsShare]:
    for partition, reached in end.events.items():
        first = start.events.get(partition, 0)
        rounds = event_rounds(batch.rounds, partition)
        # Rounds can be below what was read: two probes at once, or a topic that was created again.
        read_from = min([first, *(r.first for r in rounds)])
        last = max([reached if first < reached else 0, *(r.end for r in rounds)])
        if read_from < last:
            yield EventsShare(partition, read_from, first, last, partition in start.events, rounds)
