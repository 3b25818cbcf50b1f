"""Which rounds make a batch, and how far it reads: decided from positions and closing records alone; and their topic.

A batch is a whole number of rounds (docs/architecture.md). The same decision is made twice: by the driver when it looks
for new data, and again, possibly in another process after a crash, when Spark asks to read between two offsets that it
kept. So nothing here depends on a clock, on memory, on the ends of topics, or on how earlier batches were split: the
judgement of a closing record follows from the positions before it and the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka.errors import CorruptRecordError
from msgspec.structs import replace

from streaming.bus import TopicReader
from streaming.events import RejectedEvent, UnknownType, decode_round
from streaming.job.source.positions import Positions
from streaming.record_batches import FetchedBatch, Gone, OffsetRange, unwalkable, walk
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

    def closed(self, cluster: str) -> RoundClosed | None:
        """The closing record of a round of this cluster; None for any other."""
        content = self.content
        if isinstance(content, RoundClosed) and content.cluster == cluster:
            return content
        return None


@dataclass(frozen=True, slots=True)
class MostRead:
    """Limits of one batch, so that a backlog fits into memory. One round is always taken.

    Attributes:
        rounds: Rounds.
        records: Offsets of the log, and events.
        size: Bytes of events, each by itself, as the rounds give them. (Nobody knows the bytes of the log's records
            before they are read: tasks hand over what they hold before it is too much, `read.py`.)
    """

    rounds: int
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class VoidRecord:
    """A record of the rounds topic that cannot count, and goes to `quarantine`.

    Attributes:
        record: The record.
        reason: Why, in one sentence.
    """

    record: RoundRecord
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: its end, the rounds it takes, and the records it refuses.

    Attributes:
        end: Where it ends; equal to its start when there is nothing to take.
        rounds: The rounds taken, in order of their closing records, all with the same number of log partitions.
        void: The records read that do not count.
    """

    end: Positions
    rounds: tuple[ClosedRound, ...] = ()
    void: tuple[VoidRecord, ...] = ()


def plan_batch(
    start: Positions,
    records: Iterable[RoundRecord],
    cluster: str,
    most: MostRead | None = None,
    source: str | None = None,
) -> Batch:
    """Take rounds until the limits are reached, or the records end.

    A closing record is void when it belongs to another Kafka cluster by Kafka's own id, or has fewer log partitions
    than a round before it. It is passed over when it belongs to another cluster by its name, when this or a newer round
    was taken, when a batch without rounds has already gone beyond it, and when it shows groups from another source than
    the query follows: decisions are numbered either by the log's offsets or by rounds.

    A batch ends before a round with another number of log partitions than the rounds already in it, so that every
    stretch of the log is read with the number of partitions that its round saw.

    Args:
        start: Where the batch starts.
        records: Records of the rounds topic from `start.rounds` on, in order.
        cluster: Configured name of the cluster.
        most: Limits of the batch; None takes all.
        source: The source to follow, where `start` does not say; None takes that of the first round.
    """
    end = start
    taken: list[ClosedRound] = []
    void: list[VoidRecord] = []
    read = size = 0
    for record in records:
        if isinstance(record.content, RejectedEvent | UnknownType):
            void.append(VoidRecord(record, record.content.reason))
        closed = record.closed(cluster)
        if closed is None:
            continue
        if closed.source != (end.follows or source or closed.source) or _is_late(end, closed):
            continue
        strange = _strange(end, closed)
        if strange is not None:
            void.append(VoidRecord(record, strange))
            continue
        of_log = sum(position - end.log.get(p, 0) for p, position in enumerate(closed.log))
        of_events = sum(max(0, last - end.events.get(int(name), 0)) for name, (_, last) in closed.events.items())
        read, size = read + of_log + max(of_events, closed.written), size + closed.size
        if taken and len(closed.log) != len(end.log):
            break
        if taken and most is not None and (len(taken) >= most.rounds or read > most.records or size > most.size):
            break
        end = _behind(end, record, closed)
        taken.append(ClosedRound(closed, end.round, record.offset, record.timestamp, end.elapsed, log_records=of_log))
    return Batch(end, tuple(taken), tuple(void))


def _strange(end: Positions, closed: RoundClosed) -> str | None:
    """Why a round cannot be one of our cluster; None when it can."""
    known, own = end.rounds_of, closed.cluster_id
    if known is not None and own is not None and known != own:
        return f"a round of the Kafka cluster {own[:100]!r}; so far all were of {known!r}"
    if end.log and len(closed.log) <= max(end.log):
        return f"the offsets log had {max(end.log) + 1} partitions, the round tells {len(closed.log)}"
    return None


def _is_late(end: Positions, closed: RoundClosed) -> bool:
    """Whether a round closed after the query had gone beyond it."""
    beyond = any(position < end.log.get(p, 0) for p, position in enumerate(closed.log))
    return beyond or end.base + closed.round <= end.round


def _behind(end: Positions, record: RoundRecord, closed: RoundClosed) -> Positions:
    """The positions after a round."""
    reached = {int(name): last for name, (_, last) in closed.events.items()}
    return replace(
        end,
        log=dict(enumerate(closed.log)),
        events={**end.events, **{p: max(end.events.get(p, 0), last) for p, last in reached.items()}},
        rounds=record.offset + 1,
        round=end.base + closed.round,
        time=closed.time,
        elapsed=elapsed_after(end.time, end.elapsed, closed),
        rounds_of=end.rounds_of or closed.cluster_id,
        source=None if closed.source == LOG else closed.source,
        inside=False,
    )


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


# Records read in search of rounds; each round has an opening and a closing one. If there is no round among so many
# (openings of a probe that never closes, junk) the batch goes past them, so that they are not judged again and again.
_MOST_RECORDS = 2_000

# A look for new rounds delays the query's stop; the next trigger looks again.
_LOOK_S = 10.0


class RoundsTopic:
    """Reads the one partition of the rounds topic."""

    def __init__(self, topic: str) -> None:
        """Begin with nothing read; `topic` is its name."""
        self._topic = topic
        self._looked_at: tuple[int, int] | None = None
        self._found: list[RoundRecord] = []

    def upcoming(self, reader: TopicReader, start: int, until: int) -> tuple[list[RoundRecord], bool]:
        """The next records from `start` on, below `until`, and whether there are as many as one batch reads.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        # Most looks find what the one before has found.
        if self._looked_at != (start, until):
            self._found, _ = self._read(reader, start, until, _LOOK_S, _MOST_RECORDS)
            self._looked_at = start, until
        return self._found, len(self._found) >= _MOST_RECORDS

    def between(self, reader: TopicReader, start: int, end: int) -> tuple[list[RoundRecord], Gone | None]:
        """All records of [start, end), and the part that no longer exists.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        return self._read(reader, start, end)

    def _read(
        self, reader: TopicReader, start: int, end: int, patience_s: float | None = None, most: int | None = None
    ) -> tuple[list[RoundRecord], Gone | None]:
        """Read records, up to about `most`, and what is gone of them."""
        where = OffsetRange(self._topic, 0, start, end)
        gap: Gone | None = None
        records: list[RoundRecord] = []
        for _, item in reader.read([where], patience_s):
            if isinstance(item, Gone):
                gap = item if gap is None else Gone(gap.start, item.end, item.reason, item.before_log)
                continue
            records.extend(_records(item, where))
            if most is not None and len(records) >= most:
                break
        return records, gap


def _records(batch: FetchedBatch, where: OffsetRange) -> Iterator[RoundRecord]:
    try:
        for offset, timestamp, key, value in walk(batch, where.start, where.end):
            yield RoundRecord(offset, timestamp, key, value, decode_round(value))
    except CorruptRecordError as error:
        record, reason = unwalkable(batch, error)
        at = max(record.offset, where.start)
        yield RoundRecord(at, record.timestamp, None, None, RejectedEvent(reason))
