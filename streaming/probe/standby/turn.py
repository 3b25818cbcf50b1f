"""Whether it is this probe's turn to make the rounds: the rules of the room, applied to the topic."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kafka.errors import KafkaError

from streaming.bus import TopicReader
from streaming.config import Settings
from streaming.events import RejectedEvent, UnknownType, decode_round
from streaming.lifecycle import room_log
from streaming.probe.bus import open_bus_reader, records
from streaming.probe.deadline import AnotherProbeError, Deadline, RoundAbandonedError, error_text
from streaming.probe.standby.others import Identity, Others, Run
from streaming.probe.writer import Opened, RoundInterval, RoundWriter
from streaming.record_batches import OffsetRange, UnreadableTopicError
from streaming.records import Round
from streaming.terminal import visible

MOST_RECORDS: Final = 2_000
"""Records that are read at once, however old the topic is: those of a hundred clusters on a bus in a minute and a half
of the default interval. Where a probe's records lie further back, the first round shows it that there is another."""

_LOG = room_log(__name__)

_POLL_S: Final = 1.0
"""From one look at the topic to the next while standing by, or a quarter of the interval: two small requests."""

_READ_S: Final = 10.0
"""Limit for reading what is new while standing by: a record or two."""

SeenRecord = tuple[int, int, Round]
"""Offset, append time by the broker in ms, and content of a record."""


class Tail:
    """Reads the end of the rounds topic. Its consumer opens with the first call, and stays open until `close`.

    A bus is shared by clusters: records of others are passed over. Its methods raise RoundAbandonedError where the
    topic cannot be read, and StopRequestedError.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare; nothing is opened yet."""
        self._settings = settings
        self._topic = settings.probe.rounds_topic
        self._reader: TopicReader | None = None

    def read(self, first: int, end: int, deadline: Deadline) -> list[SeenRecord]:
        """The cluster's records that are left at the offsets [first, end), in order."""
        found: list[SeenRecord] = []
        wanted = OffsetRange(self._topic, 0, first, end)
        with self._opened() as reader:
            for _, (offset, time_, _, value) in records(reader, [wanted], deadline):
                record = decode_round(value)
                if not isinstance(record, RejectedEvent | UnknownType) and record.cluster == self._settings.cluster:
                    found.append((offset, time_, record))
        return found

    def end(self) -> int:
        """Offset behind the newest record. An answer shows that the topic can be read now."""
        with self._opened() as reader:
            return reader.ends(self._topic).get(0, 0)

    def close(self) -> None:
        """Close the consumer."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    @contextmanager
    def _opened(self) -> Iterator[TopicReader]:
        try:
            if self._reader is None:
                self._reader = open_bus_reader(self._settings)
            yield self._reader
        except (KafkaError, UnreadableTopicError) as error:
            # A consumer that has failed is not trusted with the next question.
            self.close()
            message = f"topic {self._topic} could not be read ({error_text(error)})"
            raise RoundAbandonedError(message) from error


class Turn:
    """One probe's view of whose turn it is. For one thread.

    Before the first round of a run call `begin`, then `open` for each round; `end` when there will be no more, and
    `over` after a round that failed. Where one of them raises AnotherProbeError, call `stand_by`, then begin again.
    All raise RoundAbandonedError and StopRequestedError as writer and reader do.
    """

    def __init__(
        self,
        cluster: str,
        who: Identity,
        reader: Tail,
        pace: RoundInterval,
        least_round_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            cluster: Name of the cluster, for messages.
            who: Who we are.
            reader: Reads the rounds topic.
            pace: The interval between rounds. The records of other probes stretch it.
            least_round_s: How long a round may take, however short the interval is.
            clock: Seconds that only grow.
        """
        self._cluster, self._who, self._reader, self._clock = cluster, who, reader, clock
        self._pace, self._least_round_s = pace, least_round_s
        self._began_at: int | None = None
        self._others = self._nobody()
        self._next = 0
        self._stood_by: Run | None = None
        self._lost = False
        self._run: int | None = None
        self._opened_at = 0.0

    @property
    def paused(self) -> bool:
        """Whether we have opened no round for so long that another probe may have taken over: the run is over."""
        return self._run is not None and self._clock() - self._opened_at > self._others.patience_s

    def begin(self, writer: RoundWriter, deadline: Deadline) -> None:
        """Look at the newest records before the first round of a run.

        Raises:
            AnotherProbeError: Another probe makes rounds.
        """
        if self._began_at is None:
            self._look_back(writer, deadline)
        if (holder := self._holder(deadline)) is not None:
            raise self._another(holder)

    def open(self, writer: RoundWriter, deadline: Deadline) -> Opened:
        """Open a round.

        Raises:
            AnotherProbeError: Another probe makes rounds, in an older run. This round is abandoned.
        """
        if writer.newest == self._next:
            self._next += 1  # our closing record, right behind the opening one
        run, self._opened_at = self._run, self._clock()
        opened = writer.open(deadline, run)
        if opened.number < self._next:
            # The topic was created again: to everybody who reads this record the run begins with it.
            self._next, run, self._others = 0, None, self._nobody()
        is_first = run is None
        self._run = opened.number if run is None else run
        first = self._next
        if opened.number == first:
            self._reader.close()  # nobody else writes: no connection is kept
        self._read_to(opened.number, deadline)
        self._next = opened.number + 1
        elder = self._others.elder(self._run, first)
        if elder is not None:
            self.end(writer, deadline)
            raise self._another(elder)
        if is_first and self._others.closed_since(first):
            message = "another probe closed a round after the last one was read back"
            raise RoundAbandonedError(message)
        self._tell_of_success()
        return opened

    def over(self) -> None:
        """The run is over: a round has failed, or the clients were closed."""
        self._run = None

    def end(self, writer: RoundWriter, deadline: Deadline) -> None:
        """Say that no further round follows, so that nobody has to wait; without a run there is nothing to say."""
        if self._run is not None:
            self._run = None
            writer.end(deadline)

    def stand_by(self, stop: threading.Event, followed: Callable[[], None] = lambda: None) -> float:
        """Follow the topic until it is our turn.

        Args:
            stop: Ends it.
            followed: Called after each look at the topic.

        Returns:
            When the next round is due, s of the clock.
        """
        while (holder := self._holder(Deadline.after(_READ_S, stop))) is not None:
            self._stood_by = holder
            followed()
            stop.wait(min(_POLL_S, self._pace.interval_ms / 4000))
        now, due = self._clock(), self._others.due_at
        if due is None:
            return now
        return max(now, due)

    def _look_back(self, writer: RoundWriter, deadline: Deadline) -> None:
        """Read the newest records before the first round of this process, and learn how old they are."""
        self._began_at = self._next = self._reader.end()
        newest = self._reader.read(max(0, self._next - MOST_RECORDS), self._next, deadline)
        self._note(newest, [self._clock()] * len(newest))
        if self._others.are_known:
            # Only a record of ours tells what time it is to the broker.
            mark, now = writer.end(deadline), self._clock()
            self._note(newest, [now - max(0, mark.time - time_) / 1000 for _, time_, _ in newest])

    def _note(self, newest: Sequence[SeenRecord], times: Sequence[float]) -> None:
        """Know nothing but these records, which were appended at these times by our clock."""
        self._others = self._nobody()
        for (offset, _, record), at in zip(newest, times, strict=True):
            self._others.note_record(offset, record, at)

    def _holder(self, deadline: Deadline) -> Run | None:
        """Read what is new, and say for whom to stand by; None where it is our turn."""
        deadline.remaining()  # ends where the probe is to stop
        try:
            end = self._reader.end()
            if not 0 <= end - self._next <= MOST_RECORDS:
                # The topic was created again, or could not be read for long.
                self._others, self._next = self._nobody(), max(0, end - MOST_RECORDS)
            self._read_to(end, deadline)
        except RoundAbandonedError:
            self._lost = True
            raise
        if self._lost:
            self._others.note_blindness(self._clock())
            self._lost = False
        return self._others.holder(self._clock())

    def _nobody(self) -> Others:
        return Others(self._who, self._began_at or 0, self._pace, self._least_round_s)

    def _read_to(self, end: int, deadline: Deadline) -> None:
        if end > self._next:
            for offset, _, record in self._reader.read(self._next, end, deadline):
                self._others.note_record(offset, record, self._clock())
            self._next = end

    def _another(self, holder: Run) -> AnotherProbeError:
        self._run = None
        if self._stood_by is None:
            _LOG.info(
                "Standing by: probe %s makes the rounds of cluster %r. This one takes over when that one ends, or "
                "closes no round for %.0f s.",
                visible(holder.probe),
                self._cluster,
                self._others.patience_s,
            )
        self._stood_by = holder
        return AnotherProbeError(f"probe {visible(holder.probe)} makes the rounds of cluster {self._cluster!r}")

    def _tell_of_success(self) -> None:
        if self._stood_by is None:
            return
        quiet = self._others.quiet_s(self._clock())
        why = f"has closed no round for {quiet:.0f} s" if self._others.are_known else "has ended"
        before, self._stood_by = visible(self._stood_by.probe), None
        _LOG.info("Took over the rounds of cluster %r: probe %s %s.", self._cluster, before, why)
