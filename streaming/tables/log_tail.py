"""Follow one Delta table by its log: all files at the first call, then only the files that came since.

Each further call costs one or two small reads, however many files the table has; opening it as a data set costs some
0.1 ms a file, and a day of 10 s batches leaves 8,640 files in each busy table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import FileSelector

from streaming.stores import cause_of
from streaming.tables.data_file import DAY, LakeUnreadableError, advice
from streaming.tables.opened import DataFile, OpenedTable, file_of
from streaming.tables.schema import Table

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
        version: The version read last; -1 before the first read of a table that exists, and while the next call returns
            all files.
    """

    def __init__(self, root: str, table: Table, time: str | None = None) -> None:
        """Prepare; nothing is read yet.

        Args:
            root: Folder or URI of the lake.
            table: The table.
            time: The column that gives a file's times; None for `Table.time`.
        """
        self._root, self._time = root, time or table.time
        # It only reads files: which there are, the log tells.
        self._files = OpenedTable(root, table)
        self.table, self.uri = table, self._files.uri
        self.version = -1
        self._stamp: datetime | None = None

    def read_new_files(self) -> NewFiles:
        """Return the files added since the last call; the first returns all files, and an absent table has none.

        Raises:
            LakeUnreadableError: The table is there, and cannot be read.
        """
        try:
            if self.version < 0 or self._files.committed(self.version) != self._stamp:
                return self._open()
            files: list[DataFile] = []
            while (actions := self._commit(self.version + 1)) is not None:
                found = self._new_files(actions)
                if found is None:
                    return self._open()
                files += found
                self.version += 1
        except LakeUnreadableError:
            raise
        except Exception as error:  # delta-rs and Arrow raise whatever their storage does
            raise self._unreadable(error) from error
        return NewFiles(tuple(reversed(files)), is_snapshot=False)

    def forget(self) -> None:
        """Let the next call return all files again."""
        self.version = -1

    def go_on_after(self, version: int) -> bool:
        """Let the next call return what came after a version; False if its commit is gone: it will return all."""
        try:
            self._stamp = self._files.committed(version)
        except OSError:
            self._stamp = None
        self.version = -1 if self._stamp is None else version
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
            commits = {
                int(info.base_name.removesuffix(".json")): info.mtime.timestamp() * 1000
                for info in self._files.folder.get_file_info(FileSelector("_delta_log", allow_not_found=True))
                if _COMMIT.fullmatch(info.base_name)
            }
            if commits:
                newer = [version for version, committed in commits.items() if committed > time]
                self.version = min(newer, default=max(commits) + 1) - 1
                self._stamp = self._files.committed(self.version)
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
            return self._files.rows(files).to_table(columns=self._known(columns), filter=only)
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
                data = self._files.rows(together)
                for fragment in data.get_fragments(only):
                    for group in fragment.split_by_row_group(only, data.schema):
                        part = ds.FileSystemDataset([group], data.schema, data.format, self._files.folder)
                        yield part.to_table(columns=self._known(columns), filter=only)
            except (OSError, pa.ArrowException) as error:
                raise self._unreadable(error) from error

    def _known(self, columns: Collection[str]) -> list[str]:
        return [c.name for c in self.table.columns if c.name in columns]

    def _open(self) -> NewFiles:
        was_there = self.version >= 0
        opened = OpenedTable(self._root, self.table, self._time)
        if not opened.refresh():
            self.forget()
            return NewFiles((), is_snapshot=was_there)
        self.version = opened.delta.version()
        self._stamp = opened.committed(self.version)
        return NewFiles(tuple(sorted(opened.files(), key=lambda f: f.written, reverse=True)), is_snapshot=True)

    def _commit(self, version: int) -> list[dict[str, Any]] | None:
        try:
            with self._files.folder.open_input_stream(f"_delta_log/{version:020d}.json") as stream:
                lines = stream.read().splitlines()
        except FileNotFoundError:
            return None
        self._stamp = self._files.committed(version)
        return [json.loads(line) for line in lines if line.strip()]

    def _new_files(self, actions: list[dict[str, Any]]) -> list[DataFile] | None:
        """Files with new rows; None when the table must be opened again."""
        if any(RETENTION_COMMIT.items() <= action.get("commitInfo", {}).items() for action in actions):
            return []
        if any({"protocol", "metaData"} & action.keys() for action in actions):
            return None
        if any(action.get("remove", {}).get("dataChange") for action in actions):
            return None
        added = (action["add"] for action in actions if "add" in action)
        return [file_of(_flat(add), self._time) for add in added if add.get("dataChange", True)]

    def _unreadable(self, error: Exception) -> LakeUnreadableError:
        what = advice(error, "check that the lake is whole and readable")
        message = f"The table {self.uri} cannot be read ({cause_of(error)}): {what}."
        return LakeUnreadableError(message)


def _flat(add: Mapping[str, Any]) -> dict[str, Any]:
    """An add action of a commit under the names of `get_add_actions(flatten=True)`."""
    stats = json.loads(add.get("stats") or "{}")
    day = add.get("partitionValues", {}).get(DAY)
    return {
        "path": add["path"],
        "size_bytes": add.get("size", 0),
        "modification_time": add.get("modificationTime", 0),
        "num_records": stats.get("numRecords"),
        f"partition.{DAY}": date.fromisoformat(day) if day else None,
        **{f"min.{name}": value for name, value in (stats.get("minValues") or {}).items()},
        **{f"max.{name}": value for name, value in (stats.get("maxValues") or {}).items()},
    }


def _portions(files: Sequence[DataFile], rows: int) -> Iterator[list[DataFile]]:
    """Files that are read together: no more rows than that, or one file."""
    together: list[DataFile] = []
    held = 0
    for file in files:
        # A file of unknown size may be a large one.
        size = rows if file.rows is None else file.rows
        if together and held + size > rows:
            yield together
            together, held = [], 0
        together.append(file)
        held += size
    if together:
        yield together
