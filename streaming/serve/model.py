"""What the server knows: the lake, followed by one thread, and an immutable snapshot of the present per change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dashboards import PageLake, server_queries
from streaming.config import Settings, Thresholds
from streaming.times import epoch_ms

_METRIC = "metric_"
_ROUNDS, _UNSTARTED = "metric_rounds", "unstarted"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster at its newest round.

    Attributes:
        name: Its configured name.
        round: Number of the round.
        round_ms: Its time by the broker's clock, ms since the epoch.
        interval_ms: The probe's interval.
    """

    name: str
    round: int
    round_ms: int
    interval_ms: int | None


class MetricRows:
    """Rows of each metric_<name>.sql by <name>, as columns. Any thread may ask.

    They are read when somebody asks for the first time: where nobody scrapes, a poll of the lake costs a third of the
    time. They are of the snapshot's poll, or of a later one.
    """

    def __init__(self, read: Callable[[Collection[str]], dict[str, pa.Table]]) -> None:
        """Read nothing yet."""
        self._read = read
        self._rows: dict[str, pa.Table] = {}
        self._lock = threading.Lock()

    def read(self, names: Collection[str]) -> dict[str, pa.Table]:
        """Rows by name; what is read now is all as of the same poll."""
        with self._lock:
            if missing := set(names) - self._rows.keys():
                self._rows |= self._read(missing)
            return {name: self._rows[name] for name in names}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The present as of one poll of the lake; never changed.

    Attributes:
        version: Grows with each snapshot.
        clusters: By name.
        unstarted: Clusters that are watched without a round yet.
        metrics: The rows behind the metrics; those of `rebalances` are none while older rows are still being read.
        whole: Whether older rows were read, too.
    """

    version: int
    clusters: dict[str, Cluster]
    unstarted: frozenset[str]
    metrics: MetricRows
    whole: bool

    def rows(self, name: str, cluster: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Some columns of a cluster's rows."""
        rows = self.metrics.read([name])[name]
        rows = rows.filter(pc.equal(rows["cluster"], cluster))
        return zip(*(rows[column].to_pylist() for column in columns), strict=True)


class Model:
    """The lake as the server sees it.

    Attributes:
        root: Folder or URI of the lake.
        lake: Answers to queries, from memory.
        snapshot: The newest; None until everything present was read once.
        burrow: Whether commits are held for Burrow's API.
    """

    def __init__(
        self,
        settings: Settings,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `lake.start` begins to read.

        Args:
            settings: The settings.
            steady: A clock that is never set, s: how long a cluster has been quiet is counted by it.
        """
        self.root = settings.lake
        self.thresholds = Thresholds.load(settings.alerts.rules)
        self.snapshot: Snapshot | None = None
        self._steady = steady
        self._seen = -1
        self._whole = False
        self.burrow = settings.serve.burrow_minutes > 0
        self._commits = timedelta(minutes=settings.serve.burrow_minutes)
        self._forget_s = settings.serve.forget_days * 86_400
        self.lake = PageLake(
            settings.lake,
            past=timedelta(hours=settings.serve.past_hours),
            heartbeat=timedelta(milliseconds=settings.job.heartbeat_ms),
            refresh=timedelta(milliseconds=settings.serve.refresh_ms),
            thresholds=self.thresholds,
            more={
                name: query for name, query in server_queries().items() if self.burrow or not name.startswith("burrow_")
            },
            spans={"lag": timedelta(minutes=settings.serve.burrow_minutes)},
            changed=self.renew_snapshot,
        )
        self._renewing = threading.Lock()
        # Per cluster: the newest round in the snapshot, and the steady time since which there is no newer one.
        self._quiet: dict[str, tuple[int, float]] = {}

    def renew_snapshot(self) -> None:
        """Make a snapshot if anything has changed since the last."""
        with self._renewing:
            version, whole = self.lake.version, not self.lake.unread
            if self.lake.present and (version != self._seen or whole != self._whole):
                self.snapshot = self._snapshot(version, whole=whole)
                self._seen, self._whole = version, whole
                for name, cluster in self.snapshot.clusters.items():
                    if self._quiet.get(name, (-1, 0.0))[0] != cluster.round:
                        self._quiet[name] = cluster.round, self._steady() - self.lake.quiet_s(name)

    def commits_since(self, cluster: Cluster) -> datetime:
        """Since when the commits of a cluster are held."""
        return datetime.fromtimestamp(cluster.round_ms / 1000, UTC) - self._commits

    def quiet_s(self, cluster: str) -> float:
        """Time since the newest round of a cluster in the snapshot was new, s; the lake may have been read further."""
        quiet = self.lake.quiet_s(cluster)
        if cluster in self._quiet:
            return max(quiet, self._steady() - self._quiet[cluster][1])
        return quiet

    def silent(self, snapshot: Snapshot) -> frozenset[str]:
        """Clusters without a new round for longer than alerts and page allow, or ever; what is known is the past."""
        return snapshot.unstarted | frozenset(
            name
            for name, cluster in snapshot.clusters.items()
            if self.quiet_s(name) > self.thresholds.silent_after_s(cluster.interval_ms)
        )

    def there(self, snapshot: Snapshot) -> frozenset[str]:
        """Clusters without those that have been silent for so long that they are forgotten, while another one lives.

        (Where none lives, the job may have died: that stays visible for ever.)
        """
        silent, everyone = self.silent(snapshot), snapshot.unstarted | snapshot.clusters.keys()
        if not self._forget_s or silent == everyone:
            return everyone
        return frozenset(name for name in everyone if name not in silent or self.quiet_s(name) <= self._forget_s)

    def _snapshot(self, version: int, *, whole: bool) -> Snapshot:
        found = self.lake.columns([_ROUNDS, _UNSTARTED])
        rounds, unstarted = found[_ROUNDS].to_pylist(), frozenset(found[_UNSTARTED]["cluster"].to_pylist())
        clusters = {
            row["cluster"]: Cluster(row["cluster"], row["round"], epoch_ms(row["round_time"]), row["interval_ms"])
            for row in rounds
        }
        metrics = MetricRows(lambda names: self._metrics(names, whole=whole))
        return Snapshot(version, clusters, unstarted, metrics, whole)

    def _metrics(self, names: Collection[str], *, whole: bool) -> dict[str, pa.Table]:
        found = self.lake.columns([f"{_METRIC}{name}" for name in names])
        rows = {name: found[f"{_METRIC}{name}"] for name in names}
        if not whole and "rebalances" in rows:
            rows["rebalances"] = rows["rebalances"].slice(0, 0)
        return rows


def round_age_s(cluster: Cluster) -> float:
    """Age of a cluster's newest round by this machine's clock, s; not below 0."""
    return max(0.0, datetime.now(UTC).timestamp() - cluster.round_ms / 1000)
