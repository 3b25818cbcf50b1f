"""Which rounds make a batch, and how far it reads: decided from offsets and closing records alone.

A batch is a whole number of rounds (docs/architecture.md). The same decision is made twice: by the driver when it looks
for new data, and again, possibly in another process after a crash, when Spark asks to read between two offsets that it
kept. So nothing here depends on a clock, on memory, or on how earlier batches were split. The judgement of a closing
record follows from the positions before it, the record, and a limit (`ReadLimits`): the ends of the topics when the
driver asks, the end of the batch when it is planned again. Both limits give the same judgement, because positions only
grow: positions beyond the topics are beyond the batch, and those that were taken are not. A round that came too late is
passed over before it is compared with either: its positions may lie between the two.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from streaming.events import RejectedEvent, UnknownType
from streaming.job.source.positions import Positions
from streaming.records import LOG, LONGEST_INTERVAL_MS, SILENT_INTERVALS, ClosedRound, Round, RoundClosed


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One record of the rounds topic.

    Attributes:
        offset: Its offset.
        timestamp: Its append time, ms.
        key: Key bytes; None when null.
        value: Value bytes; None when null.
        content: The decoded record.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    content: Round | UnknownType | RejectedEvent

    @property
    def closed(self) -> RoundClosed | None:
        """The closing record's content; None for any other."""
        return self.content if isinstance(self.content, RoundClosed) else None


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Ends that no round may point beyond, per partition; a partition that is missing does not exist.

    Attributes:
        log: Last stable offsets of the offsets log, requested after the closing records were read.
        events: The same of the events topic.
    """

    log: Mapping[int, int]
    events: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class MostRead:
    """Limits of one batch, so that a backlog fits into memory. One round is always taken.

    Attributes:
        rounds: Rounds.
        records: Offsets of the log and events together.
        size: Bytes of events, as the rounds give them. (Nobody knows the bytes of the log's records before they are
            read: tasks hand over what they hold before it is too much, `read.py`.)
    """

    rounds: int
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class VoidRecord:
    """A record of the rounds topic that cannot count.

    Attributes:
        record: The record.
        reason: Why, in one sentence.
        keep: It goes to `quarantine`; False for a sound round that merely came too late to be taken.
    """

    record: RoundRecord
    reason: str
    keep: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: its end, the rounds it takes, and the records it refuses.

    Attributes:
        end: Where it ends; equal to its start when there is nothing to take.
        rounds: The rounds taken, in order of their closing records, all with the same number of log partitions.
        void: Records in the range of the batch that do not count.
    """

    end: Positions
    rounds: tuple[ClosedRound, ...]
    void: tuple[VoidRecord, ...]


class _Order(enum.Enum):
    """What to do after a record was judged."""

    GO_ON = enum.auto()
    STOP_BEFORE = enum.auto()


@dataclass(slots=True)
class _Running:
    """Positions after the records judged so far."""

    log: dict[int, int]
    events: dict[int, int]
    round: int
    rounds: int
    time: int
    elapsed: int
    base: int
    rounds_of: str | None
    source: str | None
    records: int = 0
    size: int = 0
    taken: list[ClosedRound] = field(default_factory=list)
    void: list[VoidRecord] = field(default_factory=list)


def plan_batch(
    start: Positions,
    records: Iterable[RoundRecord],
    limits: ReadLimits,
    cluster: str,
    most: MostRead | None = None,
    source: str | None = None,
) -> Batch:
    """Take rounds until the limits are reached, or the records end.

    A closing record is void when it points beyond what exists, has fewer log partitions than a round before it, or is
    not a record of ours: these go to `quarantine`. It is passed over when this round or a newer one was taken, when a
    batch without rounds has already gone beyond it, or when it belongs to another cluster by its name; if it belongs to
    another by Kafka's own id it goes to `quarantine`.

    A batch ends before a round with another number of log partitions than the rounds already in it, so that every
    stretch of the log is read with the number of partitions that its round saw.

    A query follows one source of groups, because their decisions are numbered either by the log's offsets or by rounds:
    a round of another source is passed over.

    Args:
        start: Where the batch starts.
        records: Records of the rounds topic from `start.rounds` on, in order.
        limits: What exists, or the end of the batch when it is planned again.
        cluster: Configured name of the cluster.
        most: Limits of the batch; None takes all.
        source: The source to follow, where `start` does not say; None takes that of the first round.
    """
    running = _Running(
        dict(start.log),
        dict(start.events),
        start.round,
        start.rounds,
        start.time,
        start.elapsed,
        start.base,
        start.rounds_of,
        start.follows or source,
    )
    for record in records:
        if record.offset < start.rounds:
            continue
        if most is not None and len(running.taken) >= most.rounds:
            break
        if _judge(running, record, limits, cluster, most) is _Order.STOP_BEFORE:
            break
    end = replace(
        start,
        log=running.log,
        events=running.events,
        rounds=running.rounds,
        round=running.round,
        time=running.time,
        elapsed=running.elapsed,
        rounds_of=running.rounds_of,
        source=None if running.source == LOG else running.source,
        inside=False,
    )
    return Batch(
        end=end if running.taken else start,
        rounds=tuple(running.taken),
        void=tuple(running.void),
    )


def _judge(running: _Running, record: RoundRecord, limits: ReadLimits, cluster: str, most: MostRead | None) -> _Order:
    content = record.content
    if isinstance(content, RejectedEvent | UnknownType):
        running.void.append(VoidRecord(record, content.reason, keep=True))
        return _Order.GO_ON
    if not isinstance(content, RoundClosed):
        return _Order.GO_ON
    if content.cluster != cluster:
        reason = f"a round of cluster {content.cluster[:100]!r}; this job watches {cluster!r}"
        running.void.append(VoidRecord(record, reason, keep=False))
        return _Order.GO_ON
    if running.source is not None and content.source != running.source:
        reason = f"a round with groups from the source {content.source!r}; this query follows {running.source!r}"
        running.void.append(VoidRecord(record, reason, keep=False))
        return _Order.GO_ON
    wrong = _impossible(running, content)
    if wrong is not None:
        running.void.append(VoidRecord(record, wrong, keep=True))
        return _Order.GO_ON
    # Before the comparison with the limits: see the head of this module.
    beyond = any(position < running.log.get(p, 0) for p, position in enumerate(content.log))
    if beyond or running.base + content.round <= running.round:
        reason = f"round {content.round} closed after the job had gone beyond it"
        running.void.append(VoidRecord(record, reason, keep=False))
        return _Order.GO_ON
    wrong = _beyond_limits(content, limits)
    if wrong is not None:
        running.void.append(VoidRecord(record, wrong, keep=True))
        return _Order.GO_ON
    if running.taken and len(running.taken[0].closed.log) != len(content.log):
        return _Order.STOP_BEFORE
    distance = _distance(running, content)
    if running.taken and most is not None:
        too_many = running.records + distance + _events(running, content) > most.records
        if too_many or running.size + content.size > most.size:
            return _Order.STOP_BEFORE
    _take(running, record, content, distance)
    return _Order.GO_ON


def _impossible(running: _Running, closed: RoundClosed) -> str | None:
    known, own = running.rounds_of, closed.cluster_id
    if known is not None and own is not None and known != own:
        return f"a round of the Kafka cluster {own[:100]!r}; so far all were of {known!r}"
    if running.log and len(closed.log) <= max(running.log):
        return f"the offsets log had {max(running.log) + 1} partitions, the round tells {len(closed.log)}"
    return None


def _beyond_limits(closed: RoundClosed, limits: ReadLimits) -> str | None:
    for partition, position in enumerate(closed.log):
        if position > limits.log.get(partition, -1):
            return f"position {position} of partition {partition} lies beyond the offsets log"
    for name, (_, end) in closed.events.items():
        if end > limits.events.get(int(name), -1):
            return f"position {end} of partition {name} lies beyond the events topic"
    return None


def _distance(running: _Running, closed: RoundClosed) -> int:
    return sum(position - running.log.get(p, 0) for p, position in enumerate(closed.log))


def _events(running: _Running, closed: RoundClosed) -> int:
    """Number of records of the events topic that the round makes a batch read, by its positions."""
    return sum(max(0, end - running.events.get(int(name), 0)) for name, (_, end) in closed.events.items())


def elapsed_after(time: int, elapsed: int, closed: RoundClosed) -> int:
    """Time that has passed at a round since the first one, ms.

    Steps from round to round are summed, each clamped to 0 to 3 of the probe's intervals. So a broker whose clock is a
    day ahead for one round adds three intervals, and its return nothing; and nobody knows what was true during a longer
    pause.

    Args:
        time: Time of the round before, ms; -1 when there is none.
        elapsed: Elapsed time at that round, ms.
        closed: The round.
    """
    if time < 0:
        return 0
    most = SILENT_INTERVALS * min(closed.interval_ms, LONGEST_INTERVAL_MS)
    return elapsed + max(0, min(closed.time - time, most))


def _take(running: _Running, record: RoundRecord, closed: RoundClosed, distance: int) -> None:
    running.elapsed = elapsed_after(running.time, running.elapsed, closed)
    running.time = closed.time
    running.source = closed.source
    running.rounds_of = running.rounds_of or closed.cluster_id
    number = running.base + closed.round
    running.taken.append(
        ClosedRound(closed, number, record.offset, record.timestamp, running.elapsed, log_records=distance)
    )
    running.records += distance + _events(running, closed)
    running.size += closed.size
    running.log.update(enumerate(closed.log))
    for name, (_, end) in closed.events.items():
        running.events[int(name)] = max(running.events.get(int(name), 0), end)
    running.round = number
    running.rounds = record.offset + 1
