"""One Delta table for maintenance: its files, commits that replace some, its log and its tombstones.

delta-rs 1.6.6 rewrites files by itself (`optimize.compact`, `optimize.z_order`), but not in bounded pieces, and only
`z_order` by key, in four to six times the time and memory. So the files are ours, and the commits are delta-rs's.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.table.add_action import OF_A_FILE, concerns, file_of
from streaming.maintain.table.plan import (
    Compaction,
    Expiry,
    File,
    Log,
    Sorting,
    day_of_clock,
    present_file_name,
    sorted_file_name,
)
from streaming.maintain.table.rewrite import encoded_data_set, unknown_columns
from streaming.stores import on_object_store
from streaming.tables import (
    RETENTION_COMMIT,
    Table,
    all_rows,
    data_set,
    file_system,
    partition_of,
    path_in,
    refuse_features,
    statistics,
    write_data_file,
)

# A job commits every few seconds and a commit takes some ms, so a second try nearly always succeeds.
_TRIES = 20

# Tries at a commit that a store does not answer, and the pause between two: for connections that were reset. A store
# that is away for longer costs the piece, which is done later.
_UNANSWERED = 3
_PAUSE_S = 0.5

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\b.*\.parquet")


class MaintainedTable:
    """One table of a lake. Not thread-safe.

    What writes rows again reads them by the schema of this release. A column that only the log has (a newer release's,
    or a user's own) would be NULL afterwards, in a commit that says that nothing has changed, and vacuum would delete
    the files that have its values. So `replace`, `replace_by` and `put` refuse such a table, and `refuse_unknown` does
    before anything is read; vacuum, checkpoints and reading go on.
    """

    def __init__(self, root: str, table: Table, opened: DeltaTable, *, keeps: bool = False) -> None:
        """Take an opened table; see `open_table`."""
        self.table = table
        self.uri = f"{root.rstrip('/')}/{table.name}"
        self.folder: Any = file_system(self.uri)
        self._opened = opened
        self._listed: tuple[int, list[dict[str, Any]], list[File]] | None = None
        self._keeps = keeps
        self._is_read = False
        self._unknown: tuple[str, ...] = ()

    def files(self) -> list[File]:
        """All data files of the newest version.

        Raises:
            LakeUnreadableError: As `open_table`: somebody has turned such a feature on since.
        """
        return list(self._actions()[2])

    def unknown(self) -> tuple[str, ...]:
        """Columns that this release does not know, by name: while there are any, no row is written again.

        Raises:
            LakeUnreadableError: As `files`.
        """
        self._actions()
        return self._unknown

    def refuse_unknown(self) -> None:
        """Refuse to write rows again where some of their columns would be lost.

        Raises:
            MaintenanceError: The table has columns that this release does not know.
        """
        if unknown := self.unknown():
            message = (
                f"The table {self.uri} has columns that this release does not know ({', '.join(unknown)}), and "
                "would lose them: maintain it with the release that wrote it, and keep columns of your own elsewhere."
            )
            raise MaintenanceError(message)

    def look_again(self) -> None:
        """Read the log again the next time that somebody asks for its files."""
        self._is_read = False

    def _actions(self) -> tuple[int, list[dict[str, Any]], list[File]]:
        """The newest version, what the log says of its files, and the files, in the same order; once per version."""
        if self._listed is not None and self._is_read:
            return self._listed
        self._opened.update_incremental()
        self._is_read = self._keeps
        version = self._opened.version()
        if self._listed is None or self._listed[0] != version:
            refuse_features(self._opened, self.uri)
            self._unknown = unknown_columns(self.table, self._opened)
            actions = pa.table(self._opened.get_add_actions(flatten=True))
            found = actions.select([name for name in OF_A_FILE if name in actions.column_names]).to_pylist()
            self._listed = version, found, [file_of(self.table, action) for action in found]
        return self._listed

    def rows(self) -> ds.FileSystemDataset:
        """All rows of the newest version, as a data set."""
        self._opened.update_incremental()
        return all_rows(self.table, self._opened, self.uri)

    def replace(self, piece: Compaction | Expiry, rows: pa.Table | None, now: int) -> int:
        """Replace the files of a piece by one with these rows, in one commit.

        Compaction changes no rows, and the commit says so (`dataChange` false): Delta's followers pass over it. What
        retention removes has `dataChange` true, and what it keeps false: nothing in it is new.

        Args:
            piece: What was done.
            rows: Rows of the new file; None for no file.
            now: The clock, ms since the epoch.

        Returns:
            Bytes of the new file.

        Raises:
            MaintenanceError: Somebody else has removed one of the files, or commits all the time; or as
                `refuse_unknown`.
        """
        self.refuse_unknown()
        is_expiry = isinstance(piece, Expiry)
        removed_at = time.time_ns() // 1_000_000
        unique = str(uuid.uuid4())
        name = present_file_name(day_of_clock(now), unique) if is_expiry else f"compacted-{unique}.zstd.parquet"
        partition = partition_of(self.table, piece.partition_day)
        path = path_in(partition, name)
        # A follower that lost its place tells new rows by this time: these are no newer than they were.
        written = max(file.written for file in piece.files)
        actions: list[AddAction | RemoveAction] = [
            RemoveAction(file.path, is_expiry, removed_at, file.size, partition) for file in piece.files
        ]
        size = 0
        if rows is not None:
            size = self._written(rows, path)
            stats = statistics(self.table, rows)
            actions.insert(0, AddAction(path, size, partition, written, data_change=False, stats=stats))
        mark = dict(RETENTION_COMMIT) if is_expiry else None
        self._commit(actions, {file.path for file in piece.files}, mark)
        return size

    def add_sorted(self, sorting: Sorting, rows: pa.Table) -> AddAction:
        """Write a file of some of the rows of a sorting; it becomes part of the table with `replace_by`."""
        partition = partition_of(self.table, sorting.partition_day)
        path = path_in(partition, sorted_file_name(str(uuid.uuid4())))
        size = self._written(rows, path)
        written = max(file.written for file in sorting.files)
        stats = statistics(self.table, rows)
        return AddAction(path, size, partition, written, data_change=False, stats=stats)

    def replace_by(self, files: Sequence[File], added: Sequence[AddAction]) -> None:
        """Replace files by others that have the same rows and are written already, in one commit.

        Raises:
            MaintenanceError: As `replace`.
        """
        there = self.folder.get_file_info([action.path for action in added])
        if [info.size for info in there] != [action.size for action in added]:
            message = f"Files that were written for the table {self.uri} are gone, so nothing was changed: try again."
            raise MaintenanceError(message)
        now = time.time_ns() // 1_000_000
        gone = [
            RemoveAction(file.path, False, now, file.size, partition_of(self.table, file.partition_day))
            for file in files
        ]
        self._commit([*added, *gone], {file.path for file in files}, None)

    def forget(self, paths: Iterable[str]) -> None:
        """Delete files that are not part of the table."""
        for path in paths:
            with suppress(OSError):
                self.folder.delete_file(path)

    def put(self, day: date, rows: pa.Table, stale: ds.Expression) -> int:
        """Write rows of one day in place of those that are there, in one commit.

        Args:
            day: The day.
            rows: The new rows, all columns.
            stale: Which rows of the day they replace.

        Returns:
            Bytes of the new file; 0 where no rows are left, which makes none.

        Raises:
            MaintenanceError: As `replace`.
        """
        of_day = [file for file in self.files() if file.partition_day == day]
        touched, kept = [], []
        for file in of_day:
            there = data_set([(file.place, day)], self._schema, self.folder)
            if there.count_rows(filter=stale):
                touched.append(file)
                kept.append(there.to_table(filter=~stale))
        if not rows.num_rows and not touched:
            return 0
        if touched:
            self.refuse_unknown()
        now = time.time_ns() // 1_000_000
        stored = pa.concat_tables([*kept, rows.cast(self._schema)]).drop_columns(list(self.table.partition_by))
        partition = partition_of(self.table, day)
        path = path_in(partition, f"history-{uuid.uuid4()}.zstd.parquet")
        actions: list[AddAction | RemoveAction] = [
            RemoveAction(
                file.path, data_change=True, deletion_timestamp=now, size=file.size, partition_values=partition
            )
            for file in touched
        ]
        size = 0
        if stored.num_rows:
            size = self._written(stored, path)
            stats = statistics(self.table, stored)
            actions.insert(0, AddAction(path, size, partition, now, data_change=True, stats=stats))
        self._commit(actions, {file.path for file in touched}, None)
        return size

    def rows_of(self, first: date, last: date, rounds: tuple[int, int] | None = None) -> ds.FileSystemDataset:
        """Rows of some days, as a data set whose texts are dictionary-encoded.

        Args:
            first: The first day.
            last: The last one.
            rounds: Files that have only earlier rounds than the first of these, or only later ones than the second, are
                left out; None for all.
        """
        places = [(file.place, file.day) for file in self._files_of(first, last, rounds)]
        return encoded_data_set(places, self._schema, self.folder)

    def weight_of(self, first: date, last: date, rounds: tuple[int, int]) -> tuple[int, int]:
        """Files and rows that `rows_of` would read."""
        files = self._files_of(first, last, rounds)
        return len(files), sum(file.rows for file in files)

    def _files_of(self, first: date, last: date, rounds: tuple[int, int] | None) -> list[File]:
        _, actions, files = self._actions()
        return [file for action, file in zip(actions, files, strict=True) if concerns(action, first, last, rounds)]

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([field.remove_metadata() for field in self.table.arrow_schema])

    def _written(self, rows: pa.Table, path: str) -> int:
        """Write a file, and return its size; if that fails, nothing of it stays (after a `kill -9` vacuum removes it).

        Once a commit was tried, the file is left alone unless the table says that it was not made: a store may have
        made it although its answer was lost, and the file would be part of the table.
        """
        try:
            write_data_file(self.table, rows, path, self.folder)
            size: int = self.folder.get_file_info(path).size
        except BaseException:
            with suppress(OSError):
                self.folder.delete_file(path)
            raise
        return size

    def _commit(self, actions: list[AddAction | RemoveAction], removed: set[str], mark: dict[str, str] | None) -> None:
        added = {action.path for action in actions if isinstance(action, AddAction)}
        unanswered = 0
        for attempt in range(_TRIES):
            self.look_again()
            files = self.files()
            present = {file.path for file in files}
            # An attempt that seemed to fail was made after all. (Without a file of ours: what was to go is gone.)
            is_made = any(file.place in added for file in files) if added else removed.isdisjoint(present)
            if attempt and is_made:
                return
            if not removed <= present:
                if not attempt:
                    # (Later nobody knows: another maintainer may have joined some of them since.)
                    self.forget(added)
                message = (
                    f"Files of the table {self.uri} were replaced by another program meanwhile: run only one that "
                    "compacts it, and try again."
                )
                raise MaintenanceError(message)
            if removed and self._unknown:
                # (The columns have come since the rows were read. What was to go is there, so nothing was committed.)
                self.forget(added)
                self.refuse_unknown()
            try:
                # delta-rs would commit after any other commit, even one that has removed the same files, and their rows
                # would be there twice. So this commit must be the very next one, or we look again.
                self._opened.create_write_transaction(
                    actions,
                    "append",
                    self._opened.schema(),
                    list(self.table.partition_by),
                    commit_properties=CommitProperties(max_commit_retries=0, custom_metadata=mark),
                )
                self.look_again()
            except CommitFailedError:
                continue
            except OSError:
                # A store did not answer, which does not say whether the commit was made.
                unanswered += 1
                if unanswered == _UNANSWERED or not on_object_store(self.uri):
                    raise
                time.sleep(_PAUSE_S)
                continue
            return
        message = f"The table {self.uri} is written all the time, so nothing could be committed: try again."
        raise MaintenanceError(message)

    def vacuum(self, *, dry_run: bool) -> tuple[int, int]:
        """Delete the files that nobody may read any more: removed, or never committed, before the tombstones' time.

        Returns:
            Files and bytes; with `dry_run` those that would be deleted.
        """
        self._opened.update_incremental()
        paths = self._opened.vacuum(dry_run=True, full=True)
        if not paths:
            return 0, 0
        size = sum(found.size or 0 for found in self.folder.get_file_info(paths))
        if not dry_run:
            self._opened.vacuum(dry_run=False, full=True)
        return len(paths), size

    def log(self) -> Log:
        """The log since its last checkpoint."""
        found = self.folder.get_file_info(pa_fs.FileSelector("_delta_log"))
        commits = {int(m[1]): info.size for info in found if (m := _COMMIT.fullmatch(info.base_name))}
        checkpoints: dict[int, int] = {}
        for info in found:
            if match := _CHECKPOINT.fullmatch(info.base_name):
                checkpoints[int(match[1])] = checkpoints.get(int(match[1]), 0) + info.size
        newest = max(checkpoints, default=-1)
        since = [size for version, size in commits.items() if version > newest]
        return Log(len(since), sum(since), checkpoints.get(newest, 0))

    def checkpoint(self) -> None:
        """Write a checkpoint of the log, and delete the commits before it that are past their time."""
        self._opened.update_incremental()
        self._opened.create_checkpoint()
        self._opened.cleanup_metadata()
        found = {info.base_name for info in self.folder.get_file_info(pa_fs.FileSelector("_delta_log"))}
        # (Hadoop's own sums, which Spark leaves beside what it writes on a file system that has none.)
        for name in found:
            if name.startswith(".") and name.endswith(".crc") and name[1:-4] not in found:
                self.folder.delete_file(f"_delta_log/{name}")


def open_table(root: str, table: Table, *, keeps: bool = False) -> MaintainedTable | None:
    """Open a table; None when it is not there.

    Args:
        root: Folder or URI of the lake.
        table: The table.
        keeps: What was read of the log is kept until `look_again`, or until a commit of ours. Otherwise it is read each
            time that somebody asks for files, which is a request to a store.

    Raises:
        LakeUnreadableError: It has features with which its files are not all there is to its rows.
    """
    uri = f"{root.rstrip('/')}/{table.name}"
    try:
        opened = DeltaTable(uri)
    except TableNotFoundError:
        return None
    refuse_features(opened, uri)
    return MaintainedTable(root, table, opened, keeps=keeps)
