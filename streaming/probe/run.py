"""The probe as a process: a round every interval, through outages, until it is asked to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from kafka.errors import KafkaError
from tenacity import (
    RetryCallState,
    RetryError,
    Retrying,
    retry_if_exception_type,
    stop_when_event_set,
    wait_random_exponential,
)
from tenacity.nap import sleep_using_event

from streaming.config import KafkaSettings, Settings, load_settings
from streaming.events import LOG, RoundClosed
from streaming.exceptions import SetupError
from streaming.lifecycle import exit_code, room_log, set_up_log, stop_signals
from streaming.probe.clients import open_admin
from streaming.probe.exceptions import (
    AnotherProbeError,
    NoOffsetsLogError,
    RoundAbandonedError,
    StopRequestedError,
    error_text,
)
from streaming.probe.kafka import KafkaCluster
from streaming.probe.observe import Memory
from streaming.probe.preflight import check
from streaming.probe.readback import remember
from streaming.probe.rocketmq import RocketMQProbe
from streaming.probe.rounds import one_round
from streaming.probe.rounds_probe import RoundsProbe
from streaming.probe.source import Source, choose, is_readable
from streaming.probe.standby import Identity
from streaming.probe.writer import RoundWriter

_LOG = room_log(__name__)

T = TypeVar("T")

WATCHING: Final = "Watching"
"""How the sentence in the log begins with which each probe starts."""

_NO_ROUND: Final = ("No round closes", "Rounds close again")

_NO_SIGHT: Final = ("The other probe's rounds cannot be followed", "The other probe's rounds can be followed again")

_FIRST_RETRY_S, _LAST_RETRY_S = 0.5, 10.0
"""A broker's restart takes seconds, so the first retries come soon; an outage of hours costs an attempt every 10 s."""


class Probe(RoundsProbe):
    """Runs rounds against one Kafka cluster, written to it or to the bus."""

    LEAST_ROUND_S = 10.0
    """Interval settings can be shorter, for demos and tests; a broker's election takes seconds there as well."""

    KAFKA = "the cluster"

    def __init__(self, settings: Settings, stop: threading.Event | None = None, who: Identity | None = None) -> None:
        """Prepare, as `RoundsProbe` does."""
        super().__init__(settings, stop, who)
        self._admin: Any = None
        self._cluster: KafkaCluster | None = None
        self._memory: Memory | None = None
        self._source: Source | None = None

    @property
    def requests(self) -> dict[str, int]:
        """Requests sent since the clients were opened, by Kafka's name."""
        return dict(self._cluster.sent) if self._cluster else {}

    def _close(self) -> None:
        writer, admin = self._writer, self._admin
        self._writer = self._admin = self._cluster = self._memory = None
        try:
            if writer is not None:
                writer.close()
        finally:
            if admin is not None:
                admin.close()

    def _round(self) -> RoundClosed:
        cluster, writer, memory = self._opened()
        closed, self._memory = one_round(cluster, writer, self._turn, self._settings, memory, self._deadline())
        return closed

    def _opened(self) -> tuple[KafkaCluster, RoundWriter, Memory]:
        settings = self._settings
        if self._admin is None:
            self._admin = open_admin(settings.kafka)
        if self._writer is None:
            self._writer = (
                self._writer_on_bus(settings.bus) if settings.bus else self._writer_by(self._admin, settings.kafka)
            )
        if self._memory is None:
            self._turn.begin(self._writer, self._recall_deadline())
            self._memory = remember(settings, self._recall_deadline())
        source = self._source or self._choose(self._admin, self._memory)
        if self._cluster is None:
            self._cluster = KafkaCluster(
                self._admin,
                settings.job.offsets_topic,
                settings.filters,
                settings.job.heartbeat_ms,
                settings.probe.interval_ms,
                settings.watches_cluster_topic if settings.probe.cluster_topics else None,
                reads_log=source.name == LOG,
            )
        return self._cluster, self._writer, self._memory

    def _choose(self, admin: Any, memory: Memory) -> Source:
        """Decide for the life of this process where groups are read from."""
        deadline = self._deadline()
        source = choose(self._settings, memory.source, lambda: is_readable(admin, self._settings, deadline))
        if source is None:
            message = f"the cluster has no topic {self._settings.job.offsets_topic} yet, because it never had a group"
            raise NoOffsetsLogError(message)
        _LOG.info("%s", source.sentence)
        self._source = source
        return source

    def _writer_on_bus(self, bus: KafkaSettings) -> RoundWriter:
        try:
            admin = open_admin(bus)
            try:
                return self._writer_by(admin, bus)
            finally:
                admin.close()
        except KafkaError as error:
            # Named, because another team may run it than the watched cluster.
            message = f"the bus did not answer ({error_text(error)})"
            raise RoundAbandonedError(message) from error


def run(settings: Settings, stop: threading.Event) -> None:
    """Run rounds until `stop` is set; while another probe makes them, stand by.

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
                    _persistently(probe.round, interval, stop, _NO_ROUND)
                except AnotherProbeError:
                    beat.begin(_persistently(probe.stand_by, interval, stop, _NO_SIGHT))
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
    if problems := check(settings):
        raise SetupError("\n".join(map(str, problems)))
    if settings.rocketmq is not None:
        _LOG.info("%s RocketMQ cluster %r at %s.", WATCHING, settings.cluster, "; ".join(settings.rocketmq.addresses))
    else:
        _LOG.info("%s cluster %r at %s.", WATCHING, settings.cluster, settings.kafka.bootstrap_servers)
    if settings.bus is not None:
        _LOG.info("Rounds are written to %s.", settings.bus.bootstrap_servers)
    run(settings, stop)
    _LOG.info("Stopped.")


def _persistently(attempt: Callable[[], T], interval: float, stop: threading.Event, told: tuple[str, str]) -> T:
    """Try until it succeeds; an outage is logged in two lines, its begin and its end.

    Args:
        attempt: Raises RoundAbandonedError where it fails.
        interval: From one round to the next, s.
        stop: Ends it.
        told: What is wrong in an outage, and what is right again after it.

    Raises:
        StopRequestedError: `stop` was set.
        AnotherProbeError: Another probe makes rounds.
        SetupError: A person must fix something.
    """
    began = time.monotonic()
    warned = False

    def tell(state: RetryCallState) -> None:
        nonlocal warned
        if not warned and state.outcome is not None:
            _LOG.warning("%s: %s. Still trying.", told[0], state.outcome.exception())
        warned = True

    retrying = Retrying(
        retry=retry_if_exception_type(RoundAbandonedError),
        wait=wait_random_exponential(multiplier=_FIRST_RETRY_S, max=min(_LAST_RETRY_S, max(1.0, interval))),
        stop=stop_when_event_set(stop),
        sleep=sleep_using_event(stop),
        before_sleep=tell,
    )
    try:
        found = retrying(attempt)
    except RetryError as error:
        message = "the probe was asked to stop"
        raise StopRequestedError(message) from error
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
