"""Whether it is this probe's turn to make the rounds: the rules of the room, applied to the topic."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from streaming.lifecycle import SUPERVISOR, room_log
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import AnotherProbeError, RoundAbandonedError
from streaming.probe.standby.others import Others, RecordKind, RoundsRecord, Run
from streaming.probe.standby.tail import MOST_RECORDS, TopicEnd
from streaming.probe.writer import Opened, RoundInterval
from streaming.terminal import visible

LONGEST_SUPERVISOR: Final = 100
"""Characters of a supervisor's id: a UUID has 36, a host with the name of a unit some more."""

_LOG = room_log(__name__)

_LOOK_S: Final = 1.0
"""From one look at the topic to the next while standing by, or a quarter of the interval: two small requests."""

_SPAN: Final = 4
"""Records of so many times the patience are read before a run. A run that has opened no round within it is dead."""

_READ_S: Final = 10.0
"""Limit for reading what is new while standing by: a record or two."""

_PROCESS: Final = uuid.uuid4().hex[:12]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a probe is.

    Attributes:
        probe: Id of the process, new at each start.
        supervisor: What starts the probe again when it dies, and never two at a time. The last probe with the same one
            is known to be dead, so nobody waits for it. None where nobody said (`EVENKEEL_SUPERVISOR`).
    """

    probe: str = _PROCESS
    supervisor: str | None = field(default_factory=lambda: os.environ.get(SUPERVISOR, "")[:LONGEST_SUPERVISOR] or None)


class RoundsWriter(Protocol):
    """What a turn needs of `RoundWriter`."""

    @property
    def newest(self) -> int | None:
        """Offset of the newest record that it has written to the rounds topic; None before the first."""

    def open(self, deadline: Deadline, /, since: int | None = None) -> Opened:
        """Write an opening record."""

    def end(self, deadline: Deadline, /) -> Opened:
        """Write that the probe makes no further round for now."""


class RoundsReader(Protocol):
    """What a turn needs of `Tail`."""

    def newest(self, span_ms: int, deadline: Deadline, /) -> TopicEnd:
        """The newest records."""

    def read(self, first: int, end: int, deadline: Deadline, /) -> tuple[RoundsRecord, ...]:
        """The cluster's records between two offsets."""

    def end(self) -> int:
        """Offset behind the newest record."""

    def close(self) -> None:
        """Nothing is read for now."""


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
        reader: RoundsReader,
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
        self._others = self._nobody()
        self._next = 0
        self._began_at: int | None = None
        self._stood_by: Run | None = None
        self._watched = self._lost = False
        self._run: int | None = None
        self._opened_at = 0.0

    @property
    def paused(self) -> bool:
        """Whether we have opened no round for so long that another probe may have taken over: the run is over."""
        return self._run is not None and self._clock() - self._opened_at > self._others.patience_s

    def begin(self, writer: RoundsWriter, deadline: Deadline) -> None:
        """Look at the newest records before the first round of a run.

        Raises:
            AnotherProbeError: Another probe makes rounds.
        """
        if self._watched:
            # What was seen while standing by, by our own steady clock, is better than any look back.
            self._read_to(self._reader.end(), deadline)
        else:
            self._look_back(writer, deadline)
        holder = self._others.holder(self._clock())
        if holder is not None:
            raise self._another(holder)

    def open(self, writer: RoundsWriter, deadline: Deadline) -> Opened:
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
            self._mark(writer, deadline)
            raise self._another(elder)
        if is_first and self._others.closed_since(first):
            message = "another probe closed a round after the last one was read back"
            raise RoundAbandonedError(message)
        self._tell_of_success()
        return opened

    def over(self) -> None:
        """The run is over: a round has failed, or the clients were closed."""
        self._run, self._watched = None, False

    def end(self, writer: RoundsWriter, deadline: Deadline) -> None:
        """Say that no further round follows, so that nobody has to wait; without a run there is nothing to say."""
        if self._run is not None:
            self._mark(writer, deadline)

    def stand_by(self, stop: threading.Event) -> float:
        """Follow the topic until it is our turn.

        Returns:
            When the next round is due, s of the clock.
        """
        while (holder := self._holder_after_look(Deadline.after(_READ_S, stop))) is not None:
            self._stood_by = holder
            stop.wait(min(_LOOK_S, self._pace.interval_ms / 4000))
        self._watched = True
        now, due = self._clock(), self._others.due_at
        return now if due is None else max(now, due)

    def _holder_after_look(self, deadline: Deadline) -> Run | None:
        """Read what is new, and say for whom to stand by; None where it is our turn."""
        deadline.remaining()  # (ends where the probe is to stop)
        try:
            end = self._reader.end()
            if not 0 <= end - self._next <= MOST_RECORDS:
                # The topic was created again, or could not be read for days.
                self._forget(self._newest(deadline))
            self._read_to(end, deadline)
        except RoundAbandonedError:
            self._lost = True
            raise
        if self._lost:
            self._others.blind(self._clock())
            self._lost = False
        return self._others.holder(self._clock())

    @property
    def _span_ms(self) -> int:
        return int(_SPAN * self._others.patience_s * 1000)

    def _nobody(self) -> Others:
        return Others(self._who.probe, self._pace, self._least_round_s)

    def _newest(self, deadline: Deadline) -> TopicEnd:
        """The newest records; further back where they say that rounds come less often."""
        span_ms = self._span_ms
        newest = self._reader.newest(span_ms, deadline)
        for each in newest.records:
            self._hear_pace(each)
        return newest if self._span_ms <= span_ms else self._reader.newest(self._span_ms, deadline)

    def _hear_pace(self, seen: RoundsRecord) -> None:
        if seen.probe != self._who.probe and seen.kind is not RecordKind.ENDED:
            self._pace.note_other_interval(seen.interval_ms)

    def _look_back(self, writer: RoundsWriter, deadline: Deadline) -> None:
        newest = self._newest(deadline)
        if self._began_at is None:
            self._began_at = newest.end
        self._forget(newest)
        if not self._others.are_known:
            return
        # Only a record of ours tells what time it is to the broker, and so how old its last records are.
        mark = writer.end(deadline)
        seen = (*newest.records, *self._reader.read(newest.end, mark.number, deadline))
        now = self._clock()
        self._others = self._nobody()
        for each in seen:
            self._saw(each, now - max(0, mark.time - each.time) / 1000)
        self._next = mark.number + 1

    def _forget(self, newest: TopicEnd) -> None:
        """Know nothing but these records, and count from now."""
        self._others, self._next = self._nobody(), newest.end
        for each in newest.records:
            self._saw(each, self._clock())

    def _read_to(self, end: int, deadline: Deadline) -> None:
        if end > self._next:
            for each in self._reader.read(self._next, end, deadline):
                self._saw(each, self._clock())
            self._next = end

    def _saw(self, seen: RoundsRecord, at: float) -> None:
        self._hear_pace(seen)
        is_ours = seen.supervisor is not None and seen.supervisor == self._who.supervisor
        # A probe of the same supervisor that still writes after our start lives, whatever that supervisor says.
        if is_ours and self._began_at is not None and seen.offset < self._began_at:
            return
        self._others.saw(seen, at)

    def _mark(self, writer: RoundsWriter, deadline: Deadline) -> None:
        self._run = None
        writer.end(deadline)

    def _another(self, holder: Run) -> AnotherProbeError:
        self._run, self._watched = None, False
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
        self._watched = False
        if self._stood_by is None:
            return
        quiet = self._others.quiet_s(self._clock())
        why = f"has closed no round for {quiet:.0f} s" if self._others.are_known else "has ended"
        before, self._stood_by = visible(self._stood_by.probe), None
        _LOG.info("Took over the rounds of cluster %r: probe %s %s.", self._cluster, before, why)
