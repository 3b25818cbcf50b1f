"""Which files of a table hold its present and its recent past, by what the log says of them, for a cache that starts.

A file of one cluster is judged by the newest file of that cluster. Compaction joins files of all clusters of a lake,
and of those the log has only the first and the last, by name. Any other may be in between, and may have been silent
since long before the file's newest row; joined files that were written later look the same, whether it is in them or
not. So a file of several clusters is judged by each cluster that may be in it, and when each had its newest round is
asked of the table `rounds` itself (`NewestRounds`).

(Files of one cluster each would say it all, but one file for each cluster and day, of 1,100 days in the tables of
history, is more than 6,000 files in a table from six clusters on, which is where the rule `unmaintained` fires.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import duckdb

from streaming.tables.held import HeldTable
from streaming.tables.log_tail import DeltaLogTail, NewFiles
from streaming.tables.opened import CUT_AT, DataFile

__all__ = ["NewestRounds", "Part", "parts_of"]

ROUND_TIME: Final = "round_time"
"""The column of times of all tables whose rows belong to rounds."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Part:
    """What is needed of a file.

    Attributes:
        file: The file.
        present: Whether the current view needs it.
        past: Whether the table itself does.
        since: Rows of an earlier time are not needed; None needs all. A file of a compacted day has all of it.
        present_since: The same for the current view alone.
        clusters: Rows of other clusters are not needed; None needs those of all.
    """

    file: DataFile
    present: bool
    past: bool
    since: datetime | None = None
    present_since: datetime | None = None
    clusters: frozenset[str] | None = None

    @property
    def since_either(self) -> datetime | None:
        """Rows of an earlier time are needed neither for the present nor for the past; None needs all."""
        return None if self.since is None or self.present_since is None else min(self.since, self.present_since)


class NewestRounds:
    """When each cluster of a lake had its newest round. Not thread-safe.

    Every cluster with rows has a round that retention keeps, however long it has been silent.

    Attributes:
        times: Time of the newest round, by cluster.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Know nothing yet.

        Args:
            connection: A database; "rounds_of_file" is registered with it for a moment.
        """
        self._connection = connection
        self.times: dict[str, datetime] = {}

    def take(self, found: NewFiles, log_tail: DeltaLogTail) -> None:
        """Take what a look at `rounds` has found.

        Files of several clusters, some hundreds in a year, are opened for the names in them, and the newest one of a
        cluster without a newer file of its own for its rounds.

        Raises:
            LakeUnreadableError: One of those is gone or broken: nobody knows whose rounds it has.
        """
        if found.is_snapshot:
            self.times.clear()
        mixed = []
        for file in found.files:
            if (cluster := _only_cluster(file)) is None or file.newest is None:
                mixed.append(file)
            else:
                self._see(cluster, file.newest)
        for file, clusters in _newest_of_each(mixed, log_tail.clusters_in(mixed)):
            wanted = {name for name in clusters if file.newest is None or self._is_unknown_since(name, file.newest)}
            if wanted:
                self._read(file, wanted, log_tail)

    def _is_unknown_since(self, cluster: str, time: datetime) -> bool:
        return cluster not in self.times or self.times[cluster] < time

    def _read(self, file: DataFile, clusters: Collection[str], log_tail: DeltaLogTail) -> None:
        rows = log_tail.read([file], ("cluster", "round", ROUND_TIME), clusters=clusters)
        self._connection.register("rounds_of_file", rows)
        # (By number: a round of a clock that was ahead is not the newest one.)
        sql = (
            f"SELECT cluster, max_by({ROUND_TIME}, round) FROM rounds_of_file "  # noqa: S608
            f"WHERE {ROUND_TIME} IS NOT NULL GROUP BY cluster"
        )
        for cluster, time in self._connection.execute(sql).fetchall():
            self._see(cluster, time)
        self._connection.unregister("rounds_of_file")

    def _see(self, cluster: str, time: datetime) -> None:
        self.times[cluster] = max(self.times.get(cluster, _LONG_AGO), time)


def _newest_of_each(
    files: Sequence[DataFile], clusters: Sequence[frozenset[str]]
) -> Iterator[tuple[DataFile, frozenset[str]]]:
    """The newest file that has each cluster, with those of which it is; and all files of unknown time."""
    seen: set[str] = set()
    both = sorted(zip(files, clusters, strict=True), key=lambda one: one[0].newest or _LONG_AGO, reverse=True)
    for file, names in both:
        if file.newest is None:
            yield file, names
        elif names - seen:
            yield file, names - seen
            seen |= names


def parts_of(held: HeldTable, files: Sequence[DataFile], newest_rounds: Mapping[str, datetime]) -> list[Part]:
    """What is needed of the files of a table.

    Args:
        held: What of the table is held.
        files: All its files, the newest first.
        newest_rounds: Time of the newest round of every cluster of the lake. Empty where nobody knows them: then the
            current view needs every file of several clusters.

    Returns:
        Parts, those of the present behind all others, and each kind the oldest first: they are read from the end.
    """
    # A round of the future, by a wrong clock, must not make all others old.
    now = datetime.now(UTC)
    newest: dict[tuple[str, str] | None, datetime] = {}
    for file in files:
        if file.newest is not None:
            newest[file.clusters] = max(newest.get(file.clusters, _LONG_AGO), file.newest)
    mixed = _MixedFiles(held, newest, newest_rounds, now)
    found = []
    for file in reversed(files):
        until = min(newest.get(file.clusters, now), now)
        is_of_one = file.newest is not None and _only_cluster(file) is not None
        past = bool(held.past) and (file.newest is None or until - file.newest <= held.span)
        clusters = None
        if not held.current or held.reach is None or file.newest is None:
            present = bool(held.current)
        elif is_of_one:
            present = until - file.newest <= held.reach
        else:
            clusters = mixed.present_in(file)
            present = clusters is None or bool(clusters)
        if present or past:
            of_past = until - held.span if is_of_one else None
            of_present = until - held.reach if is_of_one and held.reach is not None else None
            # (No rows have a name that was cut in the log.)
            only = None if past or any(map(_may_be_cut, clusters or ())) else clusters
            found.append(Part(file, present, past, of_past, of_present, only))
    return sorted(found, key=lambda part: part.present)


class _MixedFiles:
    """Whose present may be in a file of several clusters, in one table with a reach."""

    def __init__(
        self,
        held: HeldTable,
        newest: Mapping[tuple[str, str] | None, datetime],
        newest_rounds: Mapping[str, datetime],
        now: datetime,
    ) -> None:
        self._held, self._rounds = held, newest_rounds
        names = {name for clusters in newest for name in clusters or ()} | set(newest_rounds)
        # No row of the cluster is newer than this. (By its rounds alone, what is written days later would be too old:
        # the advice of a lake whose maintenance is behind.)
        self._until: dict[str, datetime] = {}
        for name in names:
            written = max((time for clusters, time in newest.items() if _may_hold(clusters, name)), default=now)
            self._until[name] = min(written, now, newest_rounds.get(name, now))

    def present_in(self, file: DataFile) -> frozenset[str] | None:
        """The clusters of which the file may have rows of the present; None where nobody knows which clusters are."""
        if not self._rounds:
            return None
        return frozenset(
            name
            for name, until in self._until.items()
            if _may_hold(file.clusters, name) and self._meet(file, name, until)
        )

    def _meet(self, file: DataFile, name: str, until: datetime) -> bool:
        """Whether the times of a file meet those of a cluster's present."""
        reach = self._held.reach
        if reach is None or file.newest is None:
            return True
        # (A batch writes `rounds` last, so rows may be a little newer than the newest round.)
        newest_round = self._rounds.get(name) if self._held.time == ROUND_TIME else None
        is_later = file.oldest is not None and newest_round is not None and file.oldest > newest_round + reach
        return until - file.newest <= reach and not is_later


def _only_cluster(file: DataFile) -> str | None:
    """The cluster of all rows of a file; None where there are several, or nobody knows."""
    return file.clusters[0] if file.clusters is not None and file.clusters[0] == file.clusters[1] else None


def _may_hold(clusters: tuple[str, str] | None, name: str) -> bool:
    """Whether files with these bounds in the log can have rows of a cluster; the upper one may have been cut."""
    return clusters is None or (clusters[0] <= name and (name <= clusters[1] or _may_be_cut(clusters[1])))


def _may_be_cut(name: str) -> bool:
    return len(name.encode()) >= CUT_AT
