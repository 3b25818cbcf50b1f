"""The job of a deployment: one JVM, and in it a query for each cluster, each in a thread that starts it again alone.

A cluster that cannot be reached, whose log cannot be decoded, or whose query fails in every batch, changes nothing in
the others. The process ends only when nothing in it can work: the JVM is gone, or no query runs.

What imports pyspark is imported in functions: a job that is refused ends before that, and Spark starts meanwhile.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from streaming.config import FleetFile, Settings, host_and_port, secret_names
from streaming.exceptions import EvenkeelError, SetupError
from streaming.health import LIVE, READY, health_served
from streaming.job.health import JobHealth
from streaming.lifecycle import room_log, stop_signals
from streaming.process import JOB, only_one

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.job.maintenance import JobMaintenance

_LOG = room_log(__name__)

_POLL_S = 0.2
"""How soon the end of a query, and a request to stop, are noticed."""

_FILE_S = 2.0
"""How soon a change of the settings file is."""

_REST_S = 300.0
"""The longest pause of a query that waits for a person, as of a program (`process/programs.py`)."""

_WELL_S = 60.0
"""After a run of this length a query starts again at once, and later pauses begin from 1 s again."""

_LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class Start:
    """How queries are started.

    Attributes:
        available_now: Process what is there now, then end.
        checkpoint: Place of the checkpoint, for one cluster alone; None for the settings' own.
        rebuild_state: Move the checkpoint aside and read again, for one cluster alone.
    """

    available_now: bool = False
    checkpoint: str | None = None
    rebuild_state: bool = False


@dataclass(slots=True)
class _Cluster:
    """One cluster's thread.

    Attributes:
        settings: Its settings.
        stop: Ends its query between two batches, and the thread.
        failure: Why its last query ended, while it waits for the next one; None while one runs.
        is_named: Whether its name may be recorded: nothing speaks against it (`_refuse_renamed`).
        thread: The thread; it has ended when `stop` was set, or nothing is left to process.
    """

    settings: Settings
    stop: threading.Event = field(default_factory=threading.Event)
    failure: Exception | None = None
    is_named: bool = False
    thread: threading.Thread | None = None

    @property
    def runs(self) -> bool:
        """Whether its thread has not ended."""
        return self.thread is not None and self.thread.is_alive()


class Fleet:
    """Runs the queries of all clusters of the settings file, and follows the file while it does."""

    def __init__(self, file: FleetFile, start: Start) -> None:
        """Prepare; nothing starts yet.

        Args:
            file: The clusters.
            start: How their queries are started.

        Raises:
            SetupError: Something that is one cluster's own is given for several.
        """
        if len(file.clusters) > 1 and (start.checkpoint or start.rebuild_state):
            message = "--checkpoint and --rebuild-state are for one cluster: choose it with --cluster."
            raise SetupError(message)
        self._file, self._start = file, start
        self._clusters: dict[str, _Cluster] = {}
        self._secrets = secret_names(file.clusters.values())
        self._starts = threading.Lock()
        self._beside: Callable[[], SparkSession] | None = None
        self._spark: SparkSession | None = None
        self._gone: EvenkeelError | None = None
        self._has_rows = threading.Event()
        self._is_recorded = True
        self.health = JobHealth()

    def run(self, stop: threading.Event) -> None:
        """Run until asked to stop; with `available_now` until everything is processed.

        Raises:
            EvenkeelError: No query runs: the JVM is gone, or why the last of them ended.
        """
        address = next(iter(self._file.clusters.values())).job.health
        where = host_and_port(address) if address else None
        setting = "[job] health in evenkeel.toml or EVENKEEL_JOB__HEALTH"
        try:
            with health_served(where, "The job's health", setting, {LIVE: self.health.live, READY: self.health.ready}):
                self._run_until(stop)
        finally:
            # Those that run when another one's end is the job's end need not be waited for.
            for one in self._clusters.values():
                one.stop.set()

    def _run_until(self, stop: threading.Event) -> None:
        self._follow({})
        began, looked_at, maintenance = time.monotonic(), -math.inf, None
        while not stop.wait(_POLL_S) and any(one.runs for one in self._clusters.values()):
            self.health.beat()
            self._refuse_to_go_on()
            is_late = self._has_rows.is_set() or time.monotonic() - began > _WELL_S
            if maintenance is None and is_late and not self._start.available_now:
                maintenance = self._begin_maintenance()
            if time.monotonic() - looked_at > _FILE_S:
                looked_at = time.monotonic()
                self._read_again()
                self._record()
            if maintenance is not None:
                maintenance.work(stop)
        self._refuse_to_go_on()
        _end(self._clusters.values())
        if self._spark is not None:
            self._spark.stop()

    def _begin_maintenance(self) -> JobMaintenance:
        """Begin what would have delayed the first rows: maintenance of the lake, and the JVM's archive of classes."""
        from streaming.job.class_archive import begin_to_write  # noqa: PLC0415
        from streaming.job.maintenance import JobMaintenance  # noqa: PLC0415

        begin_to_write()
        return JobMaintenance(next(iter(self._file.clusters.values())))

    def _refuse_to_go_on(self) -> None:
        """Raise why the process must end, if it must."""
        if self._gone is not None:
            raise self._gone
        failures = [one.failure for one in self._clusters.values()]
        if failures and None not in failures and failures[-1] is not None:
            raise failures[-1]

    def _read_again(self) -> None:
        """Follow a changed settings file."""
        before = dict(self._file.clusters)
        try:
            if self._file.poll():
                self._follow(before)
                self._is_recorded = False
        except SetupError as error:
            _LOG.warning("The settings file is not taken over: %s", error)

    def _record(self) -> None:
        """Let readers know which clusters are watched, so that they expect nothing of one that was removed."""
        if self._is_recorded:
            return
        from streaming.catalog import WatchedCluster, record_fleet  # noqa: PLC0415

        named = [one.settings for one in self._clusters.values() if one.is_named]
        watched = [WatchedCluster(settings.cluster, None, settings.renamed_from) for settings in named]
        shared = next(iter(self._file.clusters.values()))
        try:
            self._is_recorded = True
            record_fleet(shared.lake, watched, self._file.names)
        except Exception as error:  # noqa: BLE001 - whatever it is, the queries go on
            self._is_recorded = False
            _LOG.warning("Which clusters are watched could not be recorded, and is tried again: %s", error)

    def _follow(self, before: Mapping[str, Settings]) -> None:
        """End the queries of clusters that are gone or changed, and start those that are new or changed."""
        after = self._file.clusters
        ended = {name for name in self._clusters if after.get(name) != before.get(name)}
        _end(self._clusters.pop(name) for name in ended)
        for name in ended:
            self.health.forget(name)
        for name in ended - after.keys():
            _LOG.info("cluster %s is watched no more: it is not in the settings file", name)
        for name, settings in after.items():
            if name not in self._clusters:
                one = self._clusters[name] = _Cluster(settings)
                one.thread = threading.Thread(target=self._keep, args=(one,), name=f"query {name}", daemon=True)
                one.thread.start()

    def _keep(self, one: _Cluster) -> None:
        """Run one cluster's query again and again, until it is to stop or everything is processed."""
        name, pause_s, again = one.settings.cluster, 1.0, self._start.rebuild_state
        while not one.stop.is_set():
            began, one.failure = time.monotonic(), None
            try:
                self._run(one, rebuild_state=again)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
                one.failure = error
            else:
                return
            again = False
            if time.monotonic() - began > _WELL_S:
                pause_s = 1.0
            longest = _REST_S if isinstance(one.failure, SetupError) else _LONGEST_PAUSE_S
            wait_s, pause_s = pause_s, min(2 * pause_s, longest)
            said = str(one.failure) if isinstance(one.failure, EvenkeelError) else repr(one.failure)
            self.health.failed(name, said)
            if len(self._clusters) > 1:
                _LOG.error("cluster %s: %s (Its query starts again in %.0f s; the others go on.)", name, said, wait_s)
            one.stop.wait(wait_s)

    def _run(self, one: _Cluster, *, rebuild_state: bool) -> None:
        settings, start = one.settings, self._start
        if unknown := secret_names([settings]) - self._secrets:
            message = (
                f"The workers of Spark do not have {', '.join(sorted(unknown))}, which came after the job's start: put "
                "the secret into a file, or start the job again."
            )
            raise SetupError(message)

        def done(number: int, written: dict[str, int]) -> None:
            self._has_rows.set()
            self.health.worked(settings.cluster)
            rows = ", ".join(f"{n} {table}" for table, n in written.items()) or "no rows"
            _LOG.info("%s batch %d: %s", settings.cluster, number, rows)

        with only_one(JOB, settings.lake, settings.cluster, stop=one.stop) as check:
            session = self._session()
            self._refuse_renamed(settings)
            one.is_named, self._is_recorded = True, False
            from streaming.job.run import JvmGoneError, run  # noqa: PLC0415

            try:
                run(
                    settings,
                    available_now=start.available_now,
                    checkpoint=start.checkpoint,
                    rebuild_state=rebuild_state,
                    done=done,
                    check=check,
                    session=session,
                    started=partial(self.health.started, settings.cluster),
                    stop=one.stop,
                    clusters=len(self._clusters),
                )
            except JvmGoneError as error:
                self._gone = error
                raise

    def _refuse_renamed(self, settings: Settings) -> None:
        """Refuse a new name for a cluster whose rows are in the lake under one that the settings no longer have.

        Raises:
            SetupError: That is so, and `renamed_from` does not say that it is meant.
        """
        from streaming.catalog import WatchedCluster, recorded_clusters, rename_problem  # noqa: PLC0415

        recorded = recorded_clusters(settings.lake)
        if settings.cluster in recorded or recorded.keys() <= self._file.names:
            return
        from streaming.job.source.connection import cluster_id_of  # noqa: PLC0415
        from streaming.job.source.settings import SourceSettings  # noqa: PLC0415

        cluster = WatchedCluster(settings.cluster, cluster_id_of(SourceSettings.of(settings)), settings.renamed_from)
        problem = rename_problem(cluster, self._file.names, recorded)
        if problem is not None:
            raise SetupError(problem)

    def _session(self) -> Callable[[], SparkSession]:
        """Let Spark start, once, beside what imports it; returns what waits for a session of one cluster's own."""
        from streaming.job.session import start_beside  # noqa: PLC0415

        with self._starts:
            if self._beside is None:
                self._beside = start_beside(tuple(self._file.clusters.values()), self._start.checkpoint)
        started = self._beside

        def wait() -> SparkSession:
            from streaming.job.data_source import EvenkeelSource  # noqa: PLC0415

            self._spark = started()
            session = self._spark.newSession()
            session.dataSource.register(EvenkeelSource)
            return session

        return wait


def run_fleet(
    clusters: Sequence[Settings],
    *,
    available_now: bool = False,
    checkpoint: str | None = None,
    rebuild_state: bool = False,
) -> None:
    """Run the job of these clusters until SIGINT or SIGTERM; arguments as in `Start`. Raises what `Fleet` raises."""
    with stop_signals() as stop:
        Fleet(FleetFile(clusters), Start(available_now, checkpoint, rebuild_state)).run(stop)


def _end(clusters: Iterable[_Cluster]) -> None:
    """Ask threads to end, then wait for all of them: each ends between two batches."""
    ending = list(clusters)
    for one in ending:
        one.stop.set()
    for one in ending:
        if one.thread is not None:
            one.thread.join()
