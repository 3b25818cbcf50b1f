"""Scrapes: bytes that are made once per round and mode, and the few lines that say how old they are."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from importlib.metadata import version

from starlette.exceptions import HTTPException

from streaming.config import ServeSettings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.serve.metrics.exposition import Family, few, within, written
from streaming.serve.metrics.families import families
from streaming.serve.metrics.modes import MODES, OWN
from streaming.serve.model import Model, Snapshot, round_age_s
from streaming.serve.page import RETRY, quoted

_NO_ROUNDS = "There is no round in the lake yet: if the job is running, check that `lake` is the same for both."


class Scrapes:
    """The bytes of each scrape, and the same metrics as families. Any thread may ask."""

    def __init__(
        self,
        model: Model,
        settings: ServeSettings,
        alerters: Callable[[Sequence[str]], Mapping[str, bool | None] | None] = lambda _: None,
    ) -> None:
        """Prepare.

        Args:
            model: What is shown.
            settings: Which metrics are wanted, how many series, and labels of all of them.
            alerters: By cluster whether its alerter judges rounds; None where that is not known.

        Raises:
            SetupError: A label of the settings has the name of one of ours.
        """
        ours = {label for mode in MODES.values() for label in mode.names}
        if taken := sorted(ours & settings.labels.keys()):
            message = (
                f"The setting serve.labels is wrong: a metric has a label {taken[0]!r} of its own. Choose another."
            )
            raise SetupError(message)
        self._model, self._settings, self._alerters = model, settings, alerters
        # By mode, cluster and whether it is zipped: the version and the silent clusters of which it was made, and it.
        self._made: dict[tuple[str, str | None, bool], tuple[tuple[int, frozenset[str]], bytes]] = {}
        self._lock = threading.Lock()

    def scrape(self, mode: str, *, cluster: str | None = None, zipped: bool = False) -> bytes:
        """The metrics of one mode, as gzip if `zipped`.

        Raises:
            HTTPException: There is no such mode or cluster, the tables were not read yet or have no round, or
                `cluster` must be given.
        """
        if mode not in MODES:
            raise HTTPException(404, f"There is no mode {quoted(mode)}: it may be {', '.join(MODES)}.")
        snapshot = self._snapshot()
        there = self._model.there(snapshot)
        if cluster is None and MODES[mode].needs_cluster and len(there) > 1:
            message = f"The names of {mode} have no label for the cluster: add ?cluster= and its name."
            raise HTTPException(400, message)
        if cluster is not None and cluster not in there:
            raise HTTPException(404, f"There is no cluster {quoted(cluster)} in the lake.")
        silent = self._model.silent(snapshot)
        body = self._body(mode, cluster, snapshot, silent, zipped=zipped)
        shown = there if cluster is None else {cluster}
        live = written(self._live(snapshot, silent, shown), self._settings.labels)
        # Two members one after the other are one gzip file: RFC 1952, 2.2.
        return body + (_zipped(live) if zipped else live)

    def families(self) -> list[Family]:
        """What a scrape of our own names has, of all clusters; without the labels of the settings.

        Raises:
            HTTPException: The tables were not read yet, or have no round.
        """
        snapshot = self._snapshot()
        silent = self._model.silent(snapshot)
        live = self._live(snapshot, silent, self._model.there(snapshot))
        return [*self._families(OWN, None, snapshot, silent), *live]

    def _snapshot(self) -> Snapshot:
        snapshot = self._model.snapshot
        if snapshot is None:
            raise HTTPException(503, "The tables are still being read: ask again in some seconds.", RETRY)
        if not snapshot.clusters:
            raise HTTPException(503, _NO_ROUNDS, RETRY)
        return snapshot

    def _body(
        self, mode: str, cluster: str | None, snapshot: Snapshot, silent: frozenset[str], *, zipped: bool
    ) -> bytes:
        key, as_of = (mode, cluster, zipped), (snapshot.version, silent)
        with self._lock:
            # A second request finds it made.
            if key not in self._made or self._made[key][0] != as_of:
                body = written(self._families(mode, cluster, snapshot, silent), self._settings.labels)
                self._made[key] = as_of, _zipped(body) if zipped else body
            return self._made[key][1]

    def _families(self, mode: str, cluster: str | None, snapshot: Snapshot, silent: frozenset[str]) -> list[Family]:
        shown = [name for name in snapshot.clusters if name not in silent and cluster in {None, name}]
        by_partition = self._settings.partition_series or mode != OWN
        made = families(MODES[mode], snapshot, shown, by_partition=by_partition)
        kept, left_out = within(made, self._settings.most_series)
        return [*kept, *_of_itself(left_out)]

    def _live(self, snapshot: Snapshot, silent: frozenset[str], clusters: Set[str]) -> list[Family]:
        """What is true at the moment of the scrape alone."""
        shown = {name: cluster for name, cluster in snapshot.clusters.items() if name in clusters}
        found: dict[str, tuple[str, Mapping[str, float]]] = {
            "evenkeel_round_age_seconds": (
                "Age of the newest round, by this machine's clock and the broker's.",
                {name: round(round_age_s(cluster), 3) for name, cluster in shown.items()},
            ),
            "evenkeel_batch_age_seconds": (
                "Time since this server last read a new round, by its own steady clock.",
                {name: round(self._model.quiet_s(name), 3) for name in shown},
            ),
            "evenkeel_cluster_silent": (
                "1 if no round has come for longer than alerts and page allow, or ever: nothing else is served of it.",
                {name: int(name in silent) for name in sorted(clusters)},
            ),
            "evenkeel_alerter_late": (
                "1 if the cluster's alerter has recorded no decision for a quarter of an hour of rounds.",
                self._late([name for name in shown if name not in silent]),
            ),
        }
        return [
            *(few(name, told, [({"cluster": c}, v) for c, v in of.items()]) for name, (told, of) in found.items()),
            few(
                "evenkeel_lake_readable",
                "1 if the last look at the tables succeeded.",
                [({}, int(self._model.lake.followed))],
            ),
        ]

    def _late(self, clusters: Sequence[str]) -> dict[str, int]:
        """By cluster whether its alerter is late, where that is known."""
        try:
            lives = self._alerters(sorted(clusters)) or {}
        except EvenkeelError:
            return {}  # the tables cannot be read, which has a metric of its own
        return {name: int(not judges) for name, judges in lives.items() if judges is not None}


def _of_itself(left_out: Sequence[Family]) -> list[Family]:
    """What the server says of itself."""
    return [
        few(
            "evenkeel_series_left_out",
            "Series beyond serve.most_series, by the metric that was left out whole.",
            [({"metric": family.name}, family.series) for family in left_out],
        ),
        few("evenkeel_build_info", "1; the release of this server.", [({"version": version("evenkeel")}, 1)]),
    ]


def _zipped(body: bytes) -> bytes:
    # The fastest level makes a tenth of a scrape; the best one half of that, in five times the time.
    return gzip.compress(body, 1)
