"""The other probes of a cluster, as their records in the rounds topic show them. Pure: time comes as an argument."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, field
from typing import Final

from streaming.lifecycle import SUPERVISOR
from streaming.probe.writer import RoundInterval
from streaming.records import Round, RoundClosed, RoundOpened

PATIENCE_INTERVALS: Final = 2.5
"""A probe that has closed no round for so many intervals is taken for dead. One round may be late, because of a garbage
collection or a slow broker. With three the rule `silence` would fire before the next probe has closed its first."""

SLACK_S: Final = 2.0
"""A round may take `RoundsProbe.LEAST_ROUND_S` however short the interval is: a living probe closes one within that
time and this."""

LONGEST_SUPERVISOR: Final = 100
"""Characters of a supervisor's id: a UUID has 36, a host with the name of a unit some more."""

_FORGET: Final = 4
"""A run without a new round for so many times the patience is over, and is forgotten."""


def patience_s(interval_s: float, least_round_s: float) -> float:
    """How long a probe may close no round before another one takes over, s.

    Args:
        interval_s: Interval between rounds, as its records give it.
        least_round_s: How long a round may take, however short the interval is.
    """
    return max(PATIENCE_INTERVALS * interval_s, least_round_s + SLACK_S)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a probe is.

    Attributes:
        probe: Id of the probe, new at each start.
        supervisor: What starts the probe again when it dies, and never two at a time. The last probe with the same one
            is known to be dead, so nobody waits for it. None where nobody said (`EVENKEEL_SUPERVISOR`).
    """

    probe: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    supervisor: str | None = field(default_factory=lambda: os.environ.get(SUPERVISOR, "")[:LONGEST_SUPERVISOR] or None)


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
    """The other probes. Call `note_record` with each record in the order of the topic, then ask."""

    def __init__(self, who: Identity, began_at: int, pace: RoundInterval, least_round_s: float) -> None:
        """Begin without any.

        Args:
            who: Who we are: our records say nothing about others.
            began_at: Where the topic ended when we started. A probe of our supervisor that still writes after that
                lives, whatever the supervisor says.
            pace: The interval between rounds, which the records of others stretch.
            least_round_s: How long a round may take, however short the interval is.
        """
        self._who, self._began_at, self._pace, self._least_round_s = who, began_at, pace, least_round_s
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

    def note_record(self, offset: int, record: Round, at: float) -> None:
        """Take in a record that was read at `at`, s of our steady clock."""
        if record.probe == self._who.probe:
            return
        if isinstance(record, RoundOpened) and record.ends:
            self._runs.pop(record.probe, None)
            return
        self._pace.note_other_interval(record.interval_ms)
        if isinstance(record, RoundClosed):
            self._sign_at, self._closed = at, offset
            run = self._runs.get(record.probe)
            if run is not None and run.opened == record.round:
                self._beat_at = run.opened_at
        elif record.supervisor is None or record.supervisor != self._who.supervisor or offset >= self._began_at:
            long_ago = at - _FORGET * self.patience_s
            self._runs = {probe: run for probe, run in self._runs.items() if run.opened_at >= long_ago}
            # Only the first opening is a sign of life: a probe that opens rounds and closes none must not keep others
            # away for ever.
            if not self._runs:
                self._sign_at = at
            # In a topic that was created again `since` is of the former one: then the run begins with this record.
            number = offset if record.since is None else min(record.since, offset)
            self._runs[record.probe] = Run(record.probe, number, offset, at)

    def note_blindness(self, until: float) -> None:
        """The topic could not be read until then: rounds that were not seen are no sign that there were none."""
        if self._sign_at is not None:
            self._sign_at = max(self._sign_at, until)

    def holder(self, now: float) -> Run | None:
        """The run to stand by for, that with the newest round; None where nobody makes rounds, so that we may."""
        if self._are_silent(now):
            return None
        return max(self._runs.values(), key=lambda run: run.opened, default=None)

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
        if self._beat_at is None:
            return None
        return self._beat_at + self._interval_s

    def quiet_s(self, now: float) -> float:
        """Seconds since a round of another probe closed."""
        if self._sign_at is None:
            return 0.0
        return max(0.0, now - self._sign_at)

    def _are_silent(self, now: float) -> bool:
        quiet = self.quiet_s(now)
        if quiet < self.patience_s or not self._runs:
            return not self._runs
        # One that was late, and has just opened a round, will probably close it. (A dead one's last opening record is
        # older than this, whenever in its round it died.)
        opened_s = now - max(run.opened_at for run in self._runs.values())
        return opened_s >= self.patience_s - self._interval_s or quiet >= 2 * self.patience_s
