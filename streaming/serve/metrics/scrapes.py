"""Scrapes: bytes that are made once per round and mode, and the few lines that say how old they are."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from streaming.serve.metrics.exposition import Family, few, label_value, within, written
from streaming.serve.metrics.families import families
from streaming.serve.metrics.modes import MODES, OWN
from streaming.serve.model import Model, Snapshot, round_age_s

# What was not scraped for so long is not made any more before it is asked for.
_WANTED_S = 300.0


class StartingError(Exception):
    """The tables are still being read, so sums would be too small."""


class NoRoundsError(Exception):
    """The lake has no round, so there is nothing to show: most likely it is another lake than the job's."""


class WhichClusterError(Exception):
    """The names that were asked for have no label for the cluster, and the lake has several."""


@dataclass(frozen=True, slots=True)
class _What:
    mode: str
    open_metrics: bool
    cluster: str | None
    zipped: bool


@dataclass(frozen=True, slots=True)
class _Made:
    version: int
    silent: frozenset[str]
    body: bytes


class Scrapes:
    """The bytes of each scrape. Any thread may ask."""

    def __init__(self, model: Model, *, by_partition: bool, most_series: int) -> None:
        """Prepare.

        Args:
            model: What is shown.
            by_partition: Whether our own metrics of partitions are wanted.
            most_series: Most series of one scrape.
        """
        self._model = model
        self._by_partition = by_partition
        self._most = most_series
        self._made: dict[_What, _Made] = {}
        self._asked: dict[_What, float] = {}
        self._took_s: dict[str, float] = {}
        self._lock = threading.Lock()
        self._started = time.time()

    def scrape(
        self, mode: str, *, open_metrics: bool, cluster: str | None = None, zipped: bool = False
    ) -> bytes | None:
        """The metrics of one mode, as gzip if `zipped`; None for a cluster that is not known.

        Raises:
            StartingError: The tables were not read yet.
            NoRoundsError: The lake has no round.
            WhichClusterError: `cluster` must be given.
        """
        snapshot = self._model.snapshot
        if snapshot is None:
            raise StartingError
        if not snapshot.clusters:
            raise NoRoundsError
        there = self._model.there(snapshot)
        if cluster is None and MODES[mode].needs_cluster and len(there) > 1:
            raise WhichClusterError
        if cluster is not None and cluster not in there:
            return None
        what = _What(mode, open_metrics, cluster, zipped)
        self._asked[what] = time.monotonic()
        silent = self._model.silent(snapshot)
        body = self._body(what, snapshot, silent)
        end = b"# EOF\n" if open_metrics else b""
        shown = there if cluster is None else {cluster}
        live = written(self._live(snapshot, silent, shown), open_metrics=open_metrics) + end
        # Two members one after the other are one gzip file: RFC 1952, 2.2.
        return body + (_zipped(live) if zipped else live)

    def warm(self) -> None:
        """Make what was scraped in the last minutes again, if it has changed; the model's thread calls it."""
        snapshot = self._model.snapshot
        if snapshot is None:
            return
        silent = self._model.silent(snapshot)
        for what, asked in list(self._asked.items()):
            if time.monotonic() - asked > _WANTED_S or (what.cluster and what.cluster not in snapshot.clusters):
                self._asked.pop(what, None)
                self._made.pop(what, None)
            else:
                self._body(what, snapshot, silent)

    def _body(self, what: _What, snapshot: Snapshot, silent: frozenset[str]) -> bytes:
        made = self._made.get(what)
        if made is None or (made.version, made.silent) != (snapshot.version, silent):
            # A second request finds it made.
            with self._lock:
                made = self._made.get(what)
                if made is None or (made.version, made.silent) != (snapshot.version, silent):
                    made = self._make(what, snapshot, silent)
                    self._made[what] = made
        return made.body

    def _make(self, what: _What, snapshot: Snapshot, silent: frozenset[str]) -> _Made:
        began = time.perf_counter()
        shown = [name for name in snapshot.clusters if name not in silent and what.cluster in {None, name}]
        by_partition = self._by_partition or what.mode != OWN
        made = families(MODES[what.mode], snapshot, shown, by_partition=by_partition)
        kept, left_out = within(made, self._most)
        body = written([*kept, *self._self(left_out)], open_metrics=what.open_metrics)
        self._took_s[what.mode] = time.perf_counter() - began
        return _Made(snapshot.version, silent, _zipped(body) if what.zipped else body)

    def _self(self, left_out: Sequence[Family]) -> list[Family]:
        """What the server says of itself."""
        return [
            few(
                "evenkeel_series_left_out",
                "Series beyond serve.most_series, by the metric that was left out whole.",
                [(f'metric="{family.name}"', family.series) for family in left_out],
            ),
            few(
                "evenkeel_render_duration_seconds",
                "How long the rendering of a mode's metrics took, the last time before this.",
                [(f'mode="{mode}"', took) for mode, took in sorted(self._took_s.items())],
            ),
            few("evenkeel_server_start_timestamp_seconds", "When this server started.", [("", self._started)]),
            few("evenkeel_build_info", "1; the release of this server.", [(f'version="{version("evenkeel")}"', 1)]),
        ]

    def _live(self, snapshot: Snapshot, silent: frozenset[str], clusters: Collection[str]) -> list[Family]:
        """What is true at the moment of the scrape alone."""
        shown = {n: (f'cluster="{label_value(n)}"', c) for n, c in snapshot.clusters.items() if n in clusters}
        return [
            few(
                "evenkeel_round_age_seconds",
                "Age of the newest round, by this machine's clock and the broker's.",
                [(at, round(round_age_s(c), 3)) for at, c in shown.values()],
            ),
            few(
                "evenkeel_batch_age_seconds",
                "Time since this server last read a new round, by its own steady clock.",
                [(at, round(self._model.quiet_s(n), 3)) for n, (at, _) in shown.items()],
            ),
            few(
                "evenkeel_cluster_silent",
                "1 if no round has come for longer than alerts and page allow: nothing else is served of it.",
                [(at, int(n in silent)) for n, (at, _) in shown.items()],
            ),
            few(
                "evenkeel_lake_readable",
                "1 if the last look at the tables succeeded.",
                [("", int(self._model.lake.followed))],
            ),
        ]


def _zipped(body: bytes) -> bytes:
    # The fastest level makes a tenth of a scrape; the best one half of that, in five times the time.
    return gzip.compress(body, 1)
