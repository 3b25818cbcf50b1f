"""Follow one Delta table by its log: all files at the first call, then only the files that came since.

Each further call costs one or two small reads, however many files the table has; opening it as a data set costs some
0.1 ms a file, and a day of 10 s batches leaves 8,640 files in each busy table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyarrow.fs import FileSelector

from streaming.stores import cause_of
from streaming.tables.dataset import DAY, LakeUnreadableError, data_set, file_system, refuse_features
from streaming.tables.lost import advice
from streaming.tables.opened import DataFile, file_of
from streaming.tables.schema import Table

_T = TypeVar("_T")

_COMMIT = re.compile(r"\d{20}\.json")

RETENTION_COMMIT: Final = {"evenkeel": "retention"}
"""Marks, in its `commitInfo`, a commit that deletes rows past their retention.

A removed file with `dataChange` may mean that a follower has read wrong rows. This commit only shortens the past, and
has no new rows: followers skip it.
"""


@dataclass(frozen=True, slots=True)
class NewFiles:
    """Files added since the last read.

    Attributes:
        files: New files with new rows, the newest first.
        is_snapshot: What was read before counts no more: these are all files there are.
    """

    files: tuple[DataFile, ...]
    is_snapshot: bool


class DeltaLogTail:
    """One table. Not thread-safe.

    Compaction only rewrites rows that were seen before, and retention only deletes old ones: both are no news.

    Attributes:
        table: The table.
        uri: Where it is.
    """

    def __init__(self, root: str, table: Table, time: str) -> None:
        """Prepare; nothing is read yet.

        Args:
            root: Folder or URI of the lake.
            table: The table.
            time: The column that gives a file's newest time.
        """
        self.table = table
        self._time = time
        self.uri = f"{root.rstrip('/')}/{table.name}"
        self._version = -1
        self._stamp: datetime | None = None
        self._fs: Any = None
        self._schema = table.arrow_schema

    def read_new_files(self) -> NewFiles:
        """Return the files added since the last call; the first returns all files, and an absent table has none.

        Raises:
            LakeUnreadableError: The table is there, and cannot be read.
        """
        try:
            if self._fs is None or self._replaced():
                return self._open()
            files: list[DataFile] = []
            while (actions := self._commit(self._version + 1)) is not None:
                found = self._new_files(actions)
                if found is None:
                    return self._open()
                files += found
                self._version += 1
        except TableNotFoundError:
            was_there, self._fs = self._fs is not None, None
            return NewFiles((), is_snapshot=was_there)
        except LakeUnreadableError:
            raise
        except Exception as error:  # delta-rs and Arrow raise whatever their storage does
            raise self._unreadable(error) from error
        return NewFiles(tuple(reversed(files)), is_snapshot=False)

    @property
    def version(self) -> int:
        """The version read last; -1 before the first read of a table that exists."""
        return self._version

    def forget(self) -> None:
        """Let the next call return all files again."""
        self._fs, self._version = None, -1

    def go_on_after(self, version: int) -> bool:
        """Let the next call return what came after a version; False if its commit is gone: it will return all."""
        try:
            self._fs = file_system(self.uri)
            self._version, self._stamp = version, self._stamp_of(version)
        except OSError:
            self._stamp = None
        if self._stamp is None:
            self.forget()
        return self._stamp is not None

    def go_on_since(self, time: int) -> None:
        """Let the next look find what was committed after a time, without commits that were cleaned up.

        Compaction writes old rows into new files, so the time of a file does not tell whether its rows are new. A table
        without commits is opened as at a first look.

        Args:
            time: By the clock of the store, ms since the epoch.

        Raises:
            LakeUnreadableError: The table is there, and cannot be read.
        """
        self.forget()
        try:
            log = file_system(self.uri)
            commits = {
                int(info.base_name.removesuffix(".json")): info.mtime.timestamp() * 1000
                for info in log.get_file_info(FileSelector("_delta_log", allow_not_found=True))
                if _COMMIT.fullmatch(info.base_name)
            }
            if commits:
                newer = [version for version, committed in commits.items() if committed > time]
                self._fs, self._version = log, min(newer, default=max(commits) + 1) - 1
                self._stamp = self._stamp_of(self._version)
        except OSError as error:
            raise self._unreadable(error) from error

    def read(self, files: Sequence[DataFile], columns: Collection[str], only: pc.Expression | None = None) -> pa.Table:
        """Read columns of files, in the table's types.

        Args:
            files: The files.
            columns: Names of columns.
            only: Which rows; None for all.

        Raises:
            LakeUnreadableError: A file is gone or broken.
        """
        try:
            return self._data(files).to_table(columns=self._known(columns), filter=only)
        except (OSError, pa.ArrowException) as error:
            raise self._unreadable(error) from error

    def pieces(
        self, files: Sequence[DataFile], columns: Collection[str], only: pc.Expression | None, rows: int
    ) -> Iterator[pa.Table]:
        """Read as `read` does, a piece at a time: what it takes in memory does not depend on how large the files are.

        Args:
            files: The files.
            columns: Names of columns.
            only: As in `read`.
            rows: About so many rows are read at once: whole small files, or row groups of a large one.

        Raises:
            LakeUnreadableError: A file is gone or broken.
        """
        for together in _portions(files, rows):
            if len(together) > 1 or (together[0].rows or rows) < rows:
                yield self.read(together, columns, only)
                continue
            try:
                data = self._data(together)
                for fragment in data.get_fragments(only):
                    for group in fragment.split_by_row_group(only, self._schema):
                        part = ds.FileSystemDataset([group], self._schema, data.format, self._fs)
                        yield part.to_table(columns=self._known(columns), filter=only)
            except (OSError, pa.ArrowException) as error:
                raise self._unreadable(error) from error

    def _data(self, files: Sequence[DataFile]) -> ds.FileSystemDataset:
        return data_set(((file.path, file.day) for file in files), self._schema, self._fs)

    def _known(self, columns: Collection[str]) -> list[str]:
        return [c.name for c in self.table.columns if c.name in columns]

    def _open(self) -> NewFiles:
        table = DeltaTable(self.uri)
        refuse_features(table, self.uri)
        self._fs = file_system(self.uri)
        self._version = table.version()
        self._stamp = self._stamp_of(self._version)
        actions = pa.table(table.get_add_actions(flatten=True))
        files = [file_of(row, self._time) for row in _thin(actions, self._time).to_pylist()]
        return NewFiles(tuple(sorted(files, key=lambda f: f.written, reverse=True)), is_snapshot=True)

    def _replaced(self) -> bool:
        """Whether the table was deleted and made again: the commit that was seen last is another one now."""
        return self._stamp_of(self._version) != self._stamp

    def _stamp_of(self, version: int) -> datetime | None:
        stamp: datetime | None = self._fs.get_file_info(_commit_path(version)).mtime
        return stamp

    def _commit(self, version: int) -> list[dict[str, Any]] | None:
        try:
            with self._fs.open_input_stream(_commit_path(version)) as stream:
                lines = stream.read().splitlines()
        except FileNotFoundError:
            return None
        self._stamp = self._stamp_of(version)
        return [json.loads(line) for line in lines if line.strip()]

    def _new_files(self, actions: list[dict[str, Any]]) -> list[DataFile] | None:
        """Files with new rows; None when the table must be opened again."""
        if any(RETENTION_COMMIT.items() <= action.get("commitInfo", {}).items() for action in actions):
            return []
        found = []
        for action in actions:
            if {"protocol", "metaData"} & action.keys():
                return None
            if action.get("remove", {}).get("dataChange"):
                return None
            add = action.get("add")
            if add is None or not add.get("dataChange", True):
                continue
            stats = json.loads(add.get("stats") or "{}")
            low, high = stats.get("minValues") or {}, stats.get("maxValues") or {}
            text = add.get("partitionValues", {}).get(DAY)
            day = date.fromisoformat(text) if text else None
            found.append(
                DataFile(
                    path=unquote(add["path"]),
                    day=day,
                    clusters=_both(low.get("cluster"), high.get("cluster")),
                    newest=self._bound(high.get(self._time), day),
                    rounds=_both(low.get("round"), high.get("round")),
                    written=add.get("modificationTime", 0),
                    rows=stats.get("numRecords"),
                    oldest=self._bound(low.get(self._time), day),
                )
            )
        return found

    def _bound(self, value: str | datetime | None, day: date | None) -> datetime | None:
        # (The log has no statistics of a partition's own column.)
        if self._time == DAY:
            return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)
        return _time(value)

    def _unreadable(self, error: Exception) -> LakeUnreadableError:
        what = advice(error, "check that the lake is whole and readable")
        message = f"The table {self.uri} cannot be read ({cause_of(error)}): {what}."
        return LakeUnreadableError(message)


def _commit_path(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def _thin(actions: pa.Table, time: str) -> pa.Table:
    bounds = ("min.cluster", "max.cluster", "min.round", "max.round", f"min.{time}", f"max.{time}")
    wanted = ("path", "modification_time", "num_records", f"partition.{DAY}", *bounds)
    return actions.select([name for name in wanted if name in actions.column_names])


def _portions(files: Sequence[DataFile], rows: int) -> Iterator[list[DataFile]]:
    """Files that are read together: no more rows than that, or one file."""
    together: list[DataFile] = []
    held = 0
    for file in files:
        # (A file of unknown size may be a large one.)
        size = rows if file.rows is None else file.rows
        if together and held + size > rows:
            yield together
            together, held = [], 0
        together.append(file)
        held += size
    if together:
        yield together


def _both(low: _T | None, high: _T | None) -> tuple[_T, _T] | None:
    return None if low is None or high is None else (low, high)


def _time(value: str | datetime | None) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
