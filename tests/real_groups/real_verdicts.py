"""The job's results for real groups: a real probe's rounds, the source's own reading of the log, the core; no Spark."""

from __future__ import annotations

import contextlib
import threading
from typing import Self

from streaming.config import Filters, JobSettings, KafkaSettings, ProbeSettings, Settings
from streaming.groups import Rows
from streaming.job.operator import group_config
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_readers
from streaming.probe import Probe, RoundAbandonedError
from tests.e2e.plain_job import PlainJob

__all__ = ["Rounds", "judged", "settings_of"]


def settings_of(bootstrap: str, prefix: str, metadata_ms: int) -> Settings:
    """Settings for monitoring the groups with this prefix, whose members' metadata has this maximum age."""
    return Settings(
        cluster=prefix,
        kafka=KafkaSettings(bootstrap_servers=bootstrap),
        filters=Filters(groups=(f"/^{prefix}/",)),
        probe=ProbeSettings(
            interval_ms=1_000, events_topic=f"{prefix}.events", rounds_topic=f"{prefix}.rounds", cluster_topics=False
        ),
        # Twice the age, as documented, and more because a loaded machine is late.
        job=JobSettings(metadata_grace_ms=2 * metadata_ms + 30_000),
    )


class Rounds:
    """Rounds of a real probe, one after the other; a context manager that ends with a round that has seen everything.

    Attributes:
        closed: Number of closed rounds.
    """

    def __init__(self, settings: Settings) -> None:
        self.closed = 0
        self._probe = Probe(settings)
        self._interval_s = settings.probe.interval_ms / 1000
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._round()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        with self._probe:
            self._round()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            # Like the probe's own process: a failed round is tried again.
            with contextlib.suppress(RoundAbandonedError):
                self._round()

    def _round(self) -> None:
        self._probe.round()
        self.closed += 1


def judged(settings: Settings) -> Rows:
    """The job's rows for all closed rounds."""
    job = PlainJob(SourceSettings.of(settings), kept_readers, 20, config=group_config(settings))
    job.run()
    # A round may be late on a loaded machine, but no records may be missing.
    assert not job.rows.quarantine, job.rows.quarantine
    assert {gap.kind for gap in job.rows.gaps} <= {"rounds"}, job.rows.gaps
    return job.rows
