"""The other probes of a cluster, as their records in the rounds topic show them. Pure: time comes as an argument."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from streaming.probe.writer import RoundInterval
from streaming.records import Round, RoundOpened

PATIENCE_INTERVALS: Final = 2.5
"""A probe that has closed no round for so many intervals is taken for dead. One round may be late, because of a garbage
collection or a slow broker. With three the rule `silence` would fire before the next probe has closed its first."""

SLACK_S: Final = 2.0
"""A round may take `RoundsProbe.LEAST_ROUND_S` however short the interval is: a living probe closes one within that
time and this."""

_FORGET: Final = 4
"""A run without a new round for so many times the patience is over, and is forgotten."""


def patience_s(interval_s: float, least_round_s: float) -> float:
    """How long a probe may close no round before another one takes over, s.

    Args:
        interval_s: Interval between rounds, as its records give it.
        least_round_s: How long a round may take, however short the interval is.
    """
    return max(PATIENCE_INTERVALS * interval_s, least_round_s + SLACK_S)


class RecordKind(enum.Enum):
    """What a record says of its probe."""

    OPENED = enum.auto()
    CLOSED = enum.auto()
    ENDED = enum.auto()


@dataclass(frozen=True, slots=True)
class RoundsRecord:
    """A record of the cluster in the rounds topic, as far as it concerns who makes the rounds.

    Attributes:
        offset: Its offset.
        time: Its append time by the broker, ms.
        kind: What it says.
        probe: Id of the probe.
        number: For an opening record the number of the run's first round, for a closing record that of its round.
        supervisor: What starts the probe again when it dies; None where nobody said, and in a closing record.
        interval_ms: Interval between rounds that it gives.
    """

    offset: int
    time: int
    kind: RecordKind
    probe: str
    number: int
    supervisor: str | None = None
    interval_ms: int = 0


def record_of(offset: int, time: int, record: Round) -> RoundsRecord:
    """What a record says.

    The first round of a run does not say `since`, and in a topic that was created again `since` is of the former one:
    then the run begins with this record.
    """
    if not isinstance(record, RoundOpened):
        return RoundsRecord(offset, time, RecordKind.CLOSED, record.probe, record.round, interval_ms=record.interval_ms)
    if record.ends:
        return RoundsRecord(offset, time, RecordKind.ENDED, record.probe, offset)
    number = offset if record.since is None or record.since > offset else record.since
    return RoundsRecord(offset, time, RecordKind.OPENED, record.probe, number, record.supervisor, record.interval_ms)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of another probe that has not said that it ended.

    Attributes:
        probe: Id of the probe.
        number: Number of its first round.
        opened: Number of its newest round.
        opened_at: When that was opened, s of our steady clock.
    """

    probe: str
    number: int
    opened: int
    opened_at: float


class Others:
    """The other probes. Call `saw` with each record in the order of the topic, then ask."""

    def __init__(self, probe: str, pace: RoundInterval, least_round_s: float) -> None:
        """Begin without any.

        Args:
            probe: Our own id: our records say nothing about others.
            pace: The interval between rounds, which the records of others stretch.
            least_round_s: How long a round may take, however short the interval is.
        """
        self._probe, self._pace, self._least_round_s = probe, pace, least_round_s
        self._runs: dict[str, Run] = {}
        self._sign_at: float | None = None
        self._beat_at: float | None = None
        self._closed = -1

    @property
    def patience_s(self) -> float:
        """How long another may close no round."""
        return patience_s(self._interval_s, self._least_round_s)

    @property
    def _interval_s(self) -> float:
        return self._pace.interval_ms / 1000

    def saw(self, seen: RoundsRecord, at: float) -> None:
        """Take a record.

        Args:
            seen: The record.
            at: When it was appended, s of our steady clock: now for one that has just been read.
        """
        if seen.probe == self._probe:
            return
        if seen.kind is RecordKind.ENDED:
            self._runs.pop(seen.probe, None)
        elif seen.kind is RecordKind.CLOSED:
            self._sign_at, self._closed = at, seen.offset
            run = self._runs.get(seen.probe)
            if run is not None and run.opened == seen.number:
                self._beat_at = run.opened_at
        else:
            long_ago = at - _FORGET * self.patience_s
            self._runs = {probe: run for probe, run in self._runs.items() if run.opened_at >= long_ago}
            # Only the first opening is a sign of life: a probe that opens rounds and closes none must not keep others
            # away for ever.
            if not self._runs:
                self._sign_at = at
            self._runs[seen.probe] = Run(seen.probe, seen.number, seen.offset, at)

    def blind(self, until: float) -> None:
        """The topic could not be read until then: rounds that were not seen are no sign that there were none."""
        if self._sign_at is not None:
            self._sign_at = max(self._sign_at, until)

    def holder(self, now: float) -> Run | None:
        """The run to stand by for, that with the newest round; None where nobody makes rounds, so that we may."""
        return None if self._are_silent(now) else max(self._runs.values(), key=lambda run: run.opened, default=None)

    def elder(self, number: int, since: int) -> Run | None:
        """A run with a lower number than ours.

        Args:
            number: Our run's number.
            since: Only runs with a round at this offset or behind it. Some of the older ones are dead.
        """
        elders = (run for run in self._runs.values() if run.number < number and run.opened >= since)
        return min(elders, key=lambda run: run.number, default=None)

    def closed_since(self, offset: int) -> bool:
        """Whether another probe has closed a round at this offset or behind it."""
        return self._closed >= offset

    @property
    def are_known(self) -> bool:
        """Whether any run has not said that it ended, dead or alive."""
        return bool(self._runs)

    @property
    def due_at(self) -> float | None:
        """When the next round is due, s of our steady clock; None where no closed round was seen."""
        return None if self._beat_at is None else self._beat_at + self._interval_s

    def quiet_s(self, now: float) -> float:
        """Seconds since a round of another probe closed."""
        return 0.0 if self._sign_at is None else max(0.0, now - self._sign_at)

    def _are_silent(self, now: float) -> bool:
        quiet = self.quiet_s(now)
        if quiet < self.patience_s or not self._runs:
            return not self._runs
        # One that was late, and has just opened a round, will probably close it. (A dead one's last opening record is
        # older than this, whenever in its round it died.)
        opened_s = now - max(run.opened_at for run in self._runs.values())
        return opened_s >= self.patience_s - self._interval_s or quiet >= 2 * self.patience_s
