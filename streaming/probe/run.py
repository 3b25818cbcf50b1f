"""The probe as a process: a round every interval, through outages, until it is asked to stop; and its own health."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from streaming.config import Settings, host_and_port, load_settings
from streaming.health import LIVE, READY, Condition, health_served
from streaming.lifecycle import exit_code, room_log, set_up_log, stop_signals
from streaming.probe.deadline import AnotherProbeError, RoundAbandonedError, StopRequestedError
from streaming.probe.kafka.run import Probe
from streaming.probe.preflight import ensure_ready
from streaming.probe.rocketmq.run import RocketMQProbe
from streaming.records import SILENT_INTERVALS

_LOG = room_log(__name__)

_STUCK_INTERVALS: Final = 10
_STUCK_LEAST_S: Final = 300.0
"""A round has a deadline of two intervals, reading back its events one of a minute, and a request to a broker may wait
half a minute: a loop that has not come around for so long hangs, and only a restart helps."""

_LATE_LEAST_S: Final = 30.0
"""A broker's restart costs a round or two, whatever the interval."""


class ProbeHealth:
    """Told by the probe's loop, asked by other threads: every change is one assignment."""

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin: no round has closed yet.

        Args:
            interval_s: The probe's interval.
            clock: Seconds that only grow.
        """
        self._interval_s, self._clock = interval_s, clock
        self._beat_at = clock()
        self._closed_at: float | None = None
        self._stands_by = ""
        self._trouble = ""

    def beat(self) -> None:
        """The loop has come around."""
        self._beat_at = self._clock()

    def closed(self, interval_ms: int) -> None:
        """A round has closed; `interval_ms` is how often they come."""
        self._interval_s = interval_ms / 1000
        self._closed_at, self._stands_by, self._trouble = self._clock(), "", ""
        self.beat()

    def stands_by(self, why: str) -> None:
        """Another probe makes the rounds; `why` names it, without a full stop."""
        self._stands_by, self._closed_at, self._trouble = why, None, ""
        self.beat()

    def failed(self, what: str) -> None:
        """An attempt failed; `what` says of what and why, without a full stop."""
        self._trouble = what
        self.beat()

    def live(self) -> Condition:
        """Whether the loop runs."""
        quiet = self._clock() - self._beat_at
        if quiet > max(_STUCK_LEAST_S, _STUCK_INTERVALS * self._interval_s):
            return Condition(False, (f"The probe's loop has not come around for {quiet:.0f} s.",))
        return Condition(True)

    def ready(self) -> Condition:
        """Whether rounds close: this probe's, or those of another for which it stands by."""
        trouble = (f"{self._trouble}.",) if self._trouble else ()
        if self._stands_by:
            return Condition(not trouble, (f"It stands by: {self._stands_by}.", *trouble))
        if self._closed_at is None:
            return Condition(False, ("No round has closed yet.", *trouble))
        quiet = self._clock() - self._closed_at
        if quiet > max(_LATE_LEAST_S, SILENT_INTERVALS * self._interval_s):
            return Condition(False, (f"No round has closed for {quiet:.0f} s.", *trouble))
        return Condition(True, trouble)


T = TypeVar("T")

_NO_ROUND: Final = ("No round closes", "Rounds close again")

_NO_SIGHT: Final = ("The other probe's rounds cannot be followed", "The other probe's rounds can be followed again")

_FIRST_RETRY_S, _LAST_RETRY_S = 0.5, 10.0
"""A broker's restart takes seconds, so the first retries come soon; an outage of hours costs an attempt every 10 s."""


def run(settings: Settings, stop: threading.Event, health: ProbeHealth) -> None:
    """Run rounds until `stop` is set; while another probe makes them, stand by; tell `health` of it.

    The first starts at once, or when the other probe's next one would have, and each further one an interval after the
    scheduled start of the one before; those whose time a long round or an outage has taken are skipped.

    Raises:
        SetupError: A person must fix something; the probe ends.
    """
    interval = settings.probe.interval_ms / 1000
    beat = _Beat(interval, stop)
    with RocketMQProbe(settings, stop) if settings.rocketmq else Probe(settings, stop) as probe:
        try:
            while beat.wait():
                try:
                    closed = _persistently(probe.round, interval, stop, _NO_ROUND, health.failed)
                    health.closed(closed.interval_ms)
                except AnotherProbeError as another:
                    followed = partial(health.stands_by, str(another))
                    waits = partial(probe.stand_by, followed)
                    beat.begin(_persistently(waits, interval, stop, _NO_SIGHT, health.failed))
        except StopRequestedError:
            return


def main(settings: Settings | None = None) -> int:
    """Check, then run until SIGTERM or SIGINT; the process's exit code.

    Problems found at the start are printed, one sentence a line, and end it with `SETUP_EXIT_CODE`.
    """
    # Its clients report each failed connection, some with a stack trace; we report an outage once.
    set_up_log({"kafka": logging.CRITICAL})
    with stop_signals() as stop:
        return exit_code(lambda: _watch(settings or load_settings(), stop))


def _watch(settings: Settings, stop: threading.Event) -> None:
    health = ProbeHealth(settings.probe.interval_ms / 1000)
    address = settings.probe.health and host_and_port(settings.probe.health)
    setting = "[probe] health in evenkeel.toml or EVENKEEL_PROBE__HEALTH"
    with health_served(address or None, "The probe's health", setting, {LIVE: health.live, READY: health.ready}):
        ensure_ready(settings)
        _tell_what_is_watched(settings)
        run(settings, stop, health)
    _LOG.info("Stopped.")


def _tell_what_is_watched(settings: Settings) -> None:
    if settings.rocketmq is not None:
        _LOG.info("Watching RocketMQ cluster %r at %s.", settings.cluster, "; ".join(settings.rocketmq.addresses))
    else:
        _LOG.info("Watching cluster %r at %s.", settings.cluster, settings.kafka.bootstrap_servers)
    if settings.bus_folder is not None or settings.bus is not None:
        _LOG.info("Rounds are written to %s.", settings.bus_folder or settings.bus_kafka.bootstrap_servers)


def _persistently(
    attempt: Callable[[], T],
    interval: float,
    stop: threading.Event,
    told: tuple[str, str],
    failed: Callable[[str], None],
) -> T:
    """Try until it succeeds; an outage is logged in two lines, its begin and its end.

    Args:
        attempt: Raises RoundAbandonedError where it fails.
        interval: From one round to the next, s.
        stop: Ends it.
        told: What is wrong in an outage, and what is right again after it.
        failed: Called with each failure.

    Raises:
        StopRequestedError: `stop` was set.
        AnotherProbeError: Another probe makes rounds.
        SetupError: A person must fix something.
    """
    began = time.monotonic()
    pause, longest = _FIRST_RETRY_S, min(_LAST_RETRY_S, max(1.0, interval))
    warned = False
    while True:
        try:
            found = attempt()
        except RoundAbandonedError as error:
            why = f"{told[0]}: {error}"
            failed(why)
            if not warned:
                _LOG.warning("%s. Still trying.", why)
            warned = True
            # Probes that lost the same broker do not all come back at once.
            if stop.wait(random.uniform(0, pause)):  # noqa: S311 - no secret
                message = "the probe was asked to stop"
                raise StopRequestedError(message) from error
            pause = min(2 * pause, longest)
        else:
            if warned:
                _LOG.warning("%s, after %.0f s.", told[1], time.monotonic() - began)
            return found


class _Beat:
    """When rounds begin: call `wait` before each."""

    def __init__(self, interval: float, stop: threading.Event, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval, self._stop, self._clock = interval, stop, clock
        self._due = clock()
        self._began = False

    def wait(self) -> bool:
        """Wait until the next round is due; False if the probe is to stop."""
        if self._began:
            late = max(0.0, self._clock() - self._due)
            self._due += (int(late / self._interval) + 1) * self._interval
        self._began = True
        return not self._stop.wait(max(0.0, self._due - self._clock()))

    def begin(self, due: float) -> None:
        """Start again, with a round that is due then."""
        self._due, self._began = due, False
