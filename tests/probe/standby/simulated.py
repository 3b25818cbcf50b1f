"""Probes that take turns on a topic in memory, in a time that a test moves: the real `Turn` of each, and no Kafka."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.probe import RoundAbandonedError
from streaming.probe.deadline import AnotherProbeError, Deadline
from streaming.probe.standby.others import Identity
from streaming.probe.standby.turn import SeenRecord, Tail, Turn
from streaming.probe.writer import Opened, RoundInterval, RoundWriter
from streaming.records import RoundClosed, RoundOpened

INTERVAL = 10.0
LEAST_ROUND = 10.0
CLUSTER = "prod"

LONGEST = 20.0
"""A round is given up when no answer has come for so long."""

NO_LIMIT = Deadline.after(86_400)


@dataclass(frozen=True, slots=True)
class Appended:
    """A record of the topic; `at` is the true time, `time` the broker's, ms."""

    offset: int
    at: float
    time: int
    record: RoundOpened | RoundClosed

    @property
    def probe(self) -> str:
        return self.record.probe


@dataclass
class World:
    """The topic, its broker, the true time, and the probes."""

    now: float = 1_000.0
    broker_ahead_s: float = 0.0
    down: bool = False
    log: list[Appended] = field(default_factory=list)
    probes: list[SimulatedProbe] = field(default_factory=list)

    def append(self, record: RoundOpened | RoundClosed) -> Appended:
        self.check()
        time = int((self.now + self.broker_ahead_s) * 1000)
        self.log.append(Appended(len(self.log), self.now, time, record))
        return self.log[-1]

    def check(self) -> None:
        if self.down:
            raise RoundAbandonedError("the broker is down")

    def start(self, supervisor: str | None = None, clock_ahead_s: float = 0.0) -> SimulatedProbe:
        probe = SimulatedProbe(self, Identity(f"p{len(self.probes)}", supervisor), clock_ahead_s)
        self.probes.append(probe)
        return probe

    def run(self, seconds: float, step: float = 0.25) -> None:
        """Let time pass; every living probe does what is due."""
        until = self.now + seconds
        while self.now < until:
            self.now += step
            for probe in self.probes:
                probe.act()

    @property
    def closed(self) -> list[Appended]:
        return [each for each in self.log if isinstance(each.record, RoundClosed)]


class _Reader(Tail):
    """Reads the topic as `Tail` does.

    Attributes:
        reads: How often records were read.
        read_records: How many.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.reads = self.read_records = 0

    def read(self, first: int, end: int, _: Deadline) -> list[SeenRecord]:
        self._world.check()
        self.reads += 1
        self.read_records += end - first
        log = self._world.log[first:end]
        return [(each.offset, each.time, each.record) for each in log if each.record.cluster == CLUSTER]

    def end(self) -> int:
        self._world.check()
        return len(self._world.log)

    def close(self) -> None:
        pass


class _Writer(RoundWriter):
    """Writes to the topic as `RoundWriter` does.

    Attributes:
        before_append: Called once before the next opening record, after the probe's last look at the topic.
    """

    def __init__(self, world: World, who: Identity, pace: RoundInterval) -> None:
        self._world, self._who, self._pace = world, who, pace
        self.newest: int | None = None
        self.before_append: Callable[[], None] | None = None

    def open(self, _: Deadline, since: int | None = None) -> Opened:
        hook, self.before_append = self.before_append, None
        if hook is not None:
            hook()
        return self._append(self._opening(since))

    def end(self, _: Deadline) -> Opened:
        return self._append(self._opening(None, ends=True))

    def close(self, opened: Opened, took_s: float) -> None:
        self._pace.note_own_round(int(took_s * 1000))
        number, time, interval_ms = opened.number, opened.time, self._pace.interval_ms
        self._append(RoundClosed(1, CLUSTER, self._who.probe, interval_ms, number, time, (), (), {}, 0, 0))

    def _opening(self, since: int | None, *, ends: bool = False) -> RoundOpened:
        who, interval_ms = self._who, self._pace.interval_ms
        return RoundOpened(1, CLUSTER, who.probe, interval_ms, since, who.supervisor, ends=ends)

    def _append(self, record: RoundOpened | RoundClosed) -> Opened:
        appended = self._world.append(record)
        self.newest = appended.offset
        return Opened(appended.offset, appended.time)


class _LookedError(Exception):
    """A probe that stands by has looked at the topic."""


class _OneLook(threading.Event):
    """Ends a standing by after one look: time passes outside."""

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - the signature of the method it replaces
        raise _LookedError


class SimulatedProbe:
    """A probe: call `act` whenever time has passed.

    Attributes:
        alive: Neither killed nor stopped.
        suspended: It stands still, as after a SIGSTOP.
        fails: So many of its next rounds fail between opening and closing record.
        takes: Seconds that its rounds take.
        retries_after: Seconds after a round that failed.
        stands_by: It waits for its turn.
        reader: Its reader, which counts.
        writer: Its writer.
    """

    def __init__(self, world: World, who: Identity, clock_ahead_s: float) -> None:
        self._world, self._ahead_s = world, clock_ahead_s
        self.name = who.probe
        self.reader = _Reader(world)
        pace = RoundInterval(int(INTERVAL * 1000))
        self.turn = Turn(CLUSTER, who, self.reader, pace, LEAST_ROUND, lambda: world.now + clock_ahead_s)
        self.writer = _Writer(world, who, pace)
        self.alive, self.suspended, self.stands_by, self.fails, self.takes = True, False, False, 0, 0.5
        self.retries_after = 1.0
        self._begins = True
        self._due = world.now
        self._open: tuple[Opened, float] | None = None
        self._acted_at = world.now

    def kill(self) -> None:
        """End it without a word."""
        self.alive = False

    def stop(self) -> None:
        """End it cleanly."""
        if self.alive:
            with contextlib.suppress(RoundAbandonedError):
                self.turn.end(self.writer, NO_LIMIT)
            self.alive = False

    def act(self) -> None:
        """Do what is due."""
        if not self.alive or self.suspended:
            return
        waited, self._acted_at = self._world.now - self._acted_at, self._world.now
        try:
            if self._open is not None:
                self._go_on(*self._open, waited)
            else:
                self._begin()
        except AnotherProbeError:
            self._open, self._begins, self.stands_by = None, True, True
            self.turn.over()
        except RoundAbandonedError:
            self._open, self._begins = None, True
            self._due = max(self._due, self._world.now + self.retries_after)
            self.turn.over()

    def _go_on(self, opened: Opened, began: float, waited: float) -> None:
        lasted = self._world.now - began
        if waited > LONGEST:
            raise RoundAbandonedError(f"no answer came within {LONGEST} s")
        if lasted < self.takes:
            return
        if self.fails:
            self.fails -= 1
            raise RoundAbandonedError("a broker did not answer")
        self.writer.close(opened, lasted)
        self._open = None
        self._due = max(began + INTERVAL, self._world.now)

    def _begin(self) -> None:
        if self.stands_by:
            try:
                self._due = self.turn.stand_by(_OneLook()) - self._ahead_s
            except _LookedError:
                return
            self.stands_by = False
        if self._world.now < self._due:
            return
        if self.turn.paused:
            self.turn.over()
            self._begins = True
        if self._begins:
            self.turn.begin(self.writer, NO_LIMIT)
            self._begins = False
        self._open = self.turn.open(self.writer, NO_LIMIT), self._world.now
