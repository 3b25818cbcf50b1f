"""Real groups, followed all the way without Spark and Delta: the probe's rounds, the source's tasks, the core.

States and payloads are packed and unpacked in between, like in the job.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from streaming.config import Filters, JobSettings, KafkaSettings, OffsetsLog, ProbeSettings, Settings
from streaming.groups import Rows
from streaming.groups.rows import ChurnRow, DriftRow, GroupHealthRow, LagRow, MemberRow
from streaming.job.operator import advance_key, group_config
from streaming.job.source.connection import kept_readers
from streaming.job.source.planner import Planner
from streaming.job.source.positions import INITIAL
from streaming.job.source.read import task_rows
from streaming.job.source.settings import SourceSettings
from streaming.probe import Probe, RoundAbandonedError
from streaming.records import group_key
from tests.e2e.plain_job import PlainJob
from tests.patience import until

__all__ = ["Followed", "Rounds", "judged", "settings_of", "until"]


class Followed:
    """The groups of one test (those with its prefix), as in the tables. A context manager."""

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        *,
        grace_ms: int = 600_000,
        heartbeat_ms: int = 600_000,
        interval_ms: int = 10_000,
        offsets_log: OffsetsLog = "log",
        connect_config_topics: Mapping[str, str] | None = None,
    ) -> None:
        settings = Settings(
            cluster="real",
            offsets_log=offsets_log,
            kafka=KafkaSettings(bootstrap_servers=bootstrap),
            connect_config_topics=dict(connect_config_topics or {}),
            filters=Filters(groups=(f"/^{prefix}/",)),
            probe=ProbeSettings(
                events_topic=f"{prefix}.{offsets_log}.events",
                rounds_topic=f"{prefix}.{offsets_log}.rounds",
                interval_ms=interval_ms,
                cluster_topics=False,
            ),
            job=JobSettings(metadata_grace_ms=grace_ms, heartbeat_ms=heartbeat_ms),
        )
        self.rows: dict[str, Rows] = defaultdict(Rows)
        self._config = group_config(settings)
        self._source = SourceSettings.of(settings)
        self._settings = settings
        self.probe = Probe(settings)
        # With a clock that stands still a batch ends only at a round.
        self._planner = Planner(self._source, kept_readers, lambda: 0.0)
        self._at = INITIAL
        self._states: dict[str, tuple[int, bytes] | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.probe.close()

    def restart(self) -> None:
        """Go on with another probe, which knows what the topics of the one before say."""
        self.probe.__exit__(None, None, None)
        self.probe = Probe(self._settings)

    def round(self) -> None:
        """Let the probe make a round, and process everything since the previous one.

        There is no round where the members that are starting will be the broker's first group ever: Kafka creates the
        offsets log for that, and a moment passes before all of its partitions have a leader.
        """
        if self._at != INITIAL:
            until(self._closes_a_round)
        elif not self._closes_a_round():
            return
        while (end := self._planner.latest(self._at, 1)) != self._at:
            payloads = defaultdict(list)
            for task in self._planner.tasks(self._at, end):
                for key, payload in task_rows(task, self._source, kept_readers(self._source, 60.0)):
                    payloads[key].append(payload)
            for key, of_key in payloads.items():
                self._states[key], rows = advance_key(key, of_key, self._states.get(key), self._config)
                for table in Rows.__struct_fields__:
                    getattr(self.rows[key], table).extend(getattr(rows, table))
            self._at = end

    def _closes_a_round(self) -> bool:
        """Whether a round closes; a probe tries again, too, while a coordinator loads or the machine is busy."""
        try:
            self.probe.round()
        except RoundAbandonedError:
            return False
        return True

    def round_until(self, done: Callable[[], object]) -> None:
        """Make a round, and more until the condition holds."""
        self.round()
        until(done, self.round)

    def health(self, group: str) -> GroupHealthRow:
        """The newest row."""
        return self._of(group).group_health[-1]

    def churn(self, group: str) -> list[ChurnRow]:
        """The newest revision of each decision, oldest decision first."""
        newest: dict[int, ChurnRow] = {}
        for row in self._of(group).rebalance_churn:
            if row.decision not in newest or newest[row.decision].revision < row.revision:
                newest[row.decision] = row
        return [newest[offset] for offset in sorted(newest)]

    def drift(self, group: str) -> dict[int, DriftRow]:
        """Verdicts by the offset of the decision."""
        return {row.decision: row for row in self._of(group).drift}

    def lag(self, group: str) -> dict[tuple[str, int], LagRow]:
        """The newest row of each partition that is not closed."""
        newest = {(row.topic, row.partition): row for row in self._of(group).lag}
        return {place: row for place, row in newest.items() if not row.ended}

    def members(self, group: str) -> dict[str, MemberRow]:
        """The newest row of each member that is not closed."""
        newest = {row.member_id: row for row in self._of(group).members}
        return {name: row for name, row in newest.items() if not row.ended}

    def _of(self, group: str) -> Rows:
        return self.rows[group_key(group)]


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
