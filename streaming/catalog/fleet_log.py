"""Which clusters are watched, as the table `clusters` of a lake has it: how readers learn that one was removed.

A process that watches clusters records them when it starts, and after each change of the settings file
(`record_fleet`). Every row has the names that the file had then. So a name is closed only by a file that once had it
beside one that it still has: deployments with a file each over one lake close nothing of each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from streaming.tables import (
    FLEET_TABLES,
    VIEWS,
    OpenedTable,
    append_created,
    table_named,
)
from streaming.terminal import printable
from streaming.times import epoch_ms

WATCHED: Final = "watched"
CLOSED: Final = "closed"

_CURRENT: Final = VIEWS["clusters_current"]

# Clusters of a lake of release 0.6 have rounds alone.
_OF_ROUNDS: Final = (
    "SELECT cluster, max_by(cluster_id, round) AS cluster_id FROM rounds WHERE cluster IS NOT NULL GROUP BY cluster"
)


@dataclass(frozen=True, slots=True)
class WatchedCluster:
    """A cluster that a process watches.

    Attributes:
        name: Its name in the settings.
        cluster_id: Kafka's own id of it, or RocketMQ's name; None where it is not known yet.
        renamed_from: The name that it had before, by the setting `renamed_from`; None for none.
    """

    name: str
    cluster_id: str | None = None
    renamed_from: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedCluster(WatchedCluster):
    """A cluster as a lake has it.

    Attributes:
        closed: Whether it was removed.
        fleet: Names that the settings file had when that was recorded; none where nothing is recorded (release 0.6).
        written_ms: When, ms since the epoch; 0 where nothing is recorded.
    """

    closed: bool = False
    fleet: frozenset[str] = frozenset()
    written_ms: int = 0


class FleetLog:
    """The clusters that are recorded in a lake, read again only when their table has changed. For one thread."""

    def __init__(self, lake: str) -> None:
        """Prepare; nothing is read yet."""
        self._table = OpenedTable(lake, table_named("clusters"))
        self._version: int | None = None
        self._known: dict[str, RecordedCluster] = {}

    def read(self) -> Mapping[str, RecordedCluster]:
        """Recorded clusters by name; none in a lake of release 0.6.

        Raises:
            DeltaError, OSError, LakeUnreadableError: The table cannot be read now.
        """
        if self._table.refresh() and self._table.delta.version() != self._version:
            rows = self._table.ask(_CURRENT, {}, beside_viewers=True)
            self._known = {row["cluster"]: _recorded(row) for row in rows}
            self._version = self._table.delta.version()
        return self._known

    def closed(self) -> frozenset[str]:
        """Names of those that are closed; errors as of `read`."""
        return frozenset(name for name, one in self.read().items() if one.closed)


def recorded_clusters(lake: str) -> dict[str, RecordedCluster]:
    """Every cluster of a lake by name, also those of release 0.6, which only have rounds.

    Raises:
        DeltaError, OSError, LakeUnreadableError: A table cannot be read.
    """
    rounds = OpenedTable(lake, table_named("rounds"))
    found = {}
    if rounds.refresh():
        rows = rounds.ask(_OF_ROUNDS, {}, beside_viewers=True)
        found = {row["cluster"]: RecordedCluster(row["cluster"], row["cluster_id"]) for row in rows}
    for name, one in FleetLog(lake).read().items():
        found[name] = replace(one, cluster_id=one.cluster_id or found.get(name, one).cluster_id)
    return found


def record_fleet(
    lake: str,
    watched: Iterable[WatchedCluster],
    names: Collection[str],
    now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> None:
    """Record the clusters that this process watches, and close those that left its settings file.

    Nothing is written where nothing has changed. Call it when queries begin, and after each change of the file.

    Args:
        lake: Folder or URI.
        watched: Clusters that this process watches.
        names: Names of all clusters of the settings file: with `--cluster` more than it watches. Those that are not
            among them are closed where they were recorded beside one of these, or one of these carries on from them.
        now: The clock, ms.

    Raises:
        LakeUnwritableError: The store cannot be written.
    """
    known, time_ms = dict(FleetLog(lake).read()), now()
    fleet, watched = frozenset(names), tuple(watched)
    carried_on = {one.renamed_from for one in watched if one.renamed_from is not None}
    rows = []
    for one in watched:
        before = known.get(one.name)
        row = RecordedCluster(
            one.name,
            one.cluster_id or (before.cluster_id if before else None),
            one.renamed_from,
            closed=False,
            fleet=fleet,
        )
        rows += _changed(before, row, time_ms)
    for name, before in known.items():
        if name not in fleet and (before.fleet & fleet or name in carried_on):
            row = RecordedCluster(name, before.cluster_id, before.renamed_from, closed=True, fleet=fleet)
            rows += [] if before.closed else _changed(before, row, time_ms)
    # A cluster of release 0.6 is closed by name alone.
    for name in sorted(carried_on - known.keys() - fleet):
        rows += _changed(None, RecordedCluster(name, closed=True, fleet=fleet), time_ms)
    if rows:
        append_created(lake, FLEET_TABLES, FLEET_TABLES[0], rows)


def forget_record(lake: str, cluster: str, now: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
    """Close a cluster whose rows are deleted. Nothing is known of it any more but that: so the name is free again."""
    before = FleetLog(lake).read().get(cluster)
    if rows := _changed(before, RecordedCluster(cluster, closed=True), now()):
        append_created(lake, FLEET_TABLES, FLEET_TABLES[0], rows)


def rename_problem(
    cluster: WatchedCluster, names: Collection[str], recorded: Mapping[str, RecordedCluster]
) -> str | None:
    """Why a cluster's name must not be new, as one sentence; None where nothing is against it.

    Its rows under the old name would end, and those under the new one begin with nothing: no history, no mutes.

    Args:
        cluster: The cluster.
        names: Names of all clusters of the settings file.
        recorded: As of `recorded_clusters`.
    """
    if cluster.cluster_id is None or cluster.name in recorded:
        return None
    old = [one.name for one in recorded.values() if one.cluster_id == cluster.cluster_id and one.name not in names]
    if not old or cluster.renamed_from in old:
        return None
    was = printable(old[-1])
    return (
        f"The cluster {printable(cluster.name)} ({printable(cluster.cluster_id)}) is called {was} in the lake: give it "
        f'its old name, or say renamed_from = "{was}" in its entry of [[clusters]]. A new '
        "history then begins, and the old rows stay."
    )


def _changed(before: RecordedCluster | None, row: RecordedCluster, now: int) -> list[dict[str, Any]]:
    """The row to write; none where it says what is recorded already."""
    written = 0 if before is None else before.written_ms
    if before is not None and _says(before) == _says(row):
        return []
    # Two machines' clocks differ: the newest row must be the newest by its time.
    return [_as_row(row, max(now, written + 1))]


def _says(one: RecordedCluster) -> tuple[object, ...]:
    return (one.cluster_id, one.renamed_from, one.closed, one.fleet)


def _as_row(one: RecordedCluster, time_ms: int) -> dict[str, Any]:
    return {
        "cluster": one.name,
        "state": CLOSED if one.closed else WATCHED,
        "cluster_id": one.cluster_id,
        "renamed_from": one.renamed_from,
        "fleet": sorted(one.fleet),
        "written_time": time_ms,
    }


def _recorded(row: Mapping[str, Any]) -> RecordedCluster:
    return RecordedCluster(
        row["cluster"],
        row["cluster_id"],
        row["renamed_from"],
        closed=row["state"] == CLOSED,
        fleet=frozenset(row["fleet"] or ()),
        written_ms=epoch_ms(row["written_time"]),
    )
