"""One table of a lake as of one version: its files by what the log says of them, and the rows of some of them.

The one way to read a table. Only files that can hold the answer are opened: a table may have billions of rows, and
opening each file of a day of batches that was never compacted would take minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.tables.data_file import DAY, LakeUnreadableError, file_system, naming_what_is_lost
from streaming.tables.memory import fetched_dicts, in_memory, limited
from streaming.tables.schema import Table

_T = TypeVar("_T")

CUT_AT: Final = 32
"""Writers cut long texts in statistics, and not all of them make the highest one higher then: Spark cuts at 32
characters, delta-rs at 64 bytes."""


# What a reader of plain Parquet files would get wrong.
_UNREADABLE_FEATURES = frozenset({"deletionVectors", "columnMapping"})


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file, as the Delta log has it. A bound is None where the log does not tell it.

    Attributes:
        path: Path inside the table's folder.
        day: The day that its folder stands for; None for rows without a day, and where the table is not partitioned.
        clusters: First and last cluster in it, by name; two files of one job have the same.
        newest: Newest time in it.
        rounds: First and last round in it.
        written: When it was written, ms since the epoch.
        rows: Rows in it.
        oldest: Oldest time in it.
        groups: First and last group id in it, as texts, which may have been cut.
        size: Bytes.
    """

    path: str
    day: date | None
    clusters: tuple[str, str] | None
    newest: datetime | None
    rounds: tuple[int, int] | None
    written: int
    rows: int | None = None
    oldest: datetime | None = None
    groups: tuple[str, str] | None = None
    size: int = 0

    def may_have(self, cluster: str) -> bool:
        """Whether it can have rows of a cluster."""
        return has_text(self.clusters, cluster)


class OpenedTable:
    """One table. Not thread-safe.

    Attributes:
        table: The table.
        uri: Where it is.
        folder: The same as Arrow's file system.
    """

    def __init__(self, root: str, table: Table, time: str | None = None) -> None:
        """Prepare; nothing is read before the first `refresh`.

        Args:
            root: Folder or URI of the lake.
            table: The table.
            time: The column of `DataFile.oldest` and `newest`; None for `Table.time`.
        """
        self.table = table
        self._time = time or table.time
        self.uri = f"{root.rstrip('/')}/{table.name}"
        self.folder: Any = file_system(self.uri)
        self._delta: DeltaTable | None = None
        self._stamp: datetime | None = None
        self._files: tuple[int, list[DataFile]] | None = None

    def refresh(self) -> bool:
        """Look at the newest version; False where there is no table.

        Raises:
            LakeUnreadableError: It has features with which its files are not all there is to its rows.
        """
        if self._delta is not None and self.committed(self._delta.version()) == self._stamp:
            self._delta.update_incremental()
        else:
            # The first look, or the table was deleted, and perhaps made again: the commit seen last is another one now.
            self._delta = self._files = None
            try:
                self._delta = DeltaTable(self.uri)
            except TableNotFoundError:
                return False
        self._stamp = self.committed(self._delta.version())
        if self._files is None or self._files[0] != self._delta.version():
            _refuse_features(self._delta, self.uri)
        return True

    def committed(self, version: int) -> datetime | None:
        """When the commit of a version was written, by the clock of the store; None where there is no such commit.

        A table that was deleted and made again has another time there.
        """
        time: datetime | None = self.folder.get_file_info(f"_delta_log/{version:020d}.json").mtime
        return time

    @property
    def is_there(self) -> bool:
        """Whether there was such a table at the last look; without one it has no files and no rows."""
        return self._delta is not None

    @property
    def delta(self) -> DeltaTable:
        """The table of delta-rs; there must be one."""
        assert self._delta is not None  # noqa: S101 - `refresh` has said so
        return self._delta

    def transaction(self, application: str) -> int | None:
        """The newest version of an application's transactions; None without one, or without the table."""
        if self._delta is None:
            return None
        return self._delta.transaction_version(application)

    def files(
        self,
        days: tuple[date, date] | None = None,
        cluster: str | None = None,
        group: str | None = None,
        rounds: tuple[int, int] | None = None,
        times: tuple[datetime, datetime] | None = None,
    ) -> list[DataFile]:
        """The files that can have rows of some days, one cluster, one group, some rounds, or a time; all by default.

        Args:
            days: First and last day. Rows without a day are of none; a table without days has all.
            cluster: Name.
            group: Group id.
            rounds: First and last round.
            times: Oldest and newest time, by `Table.time`.
        """
        if self._delta is None:
            return []
        version = self._delta.version()
        if self._files is None or self._files[0] != version:
            self._files = version, self._listed(self._delta)
        has_days = DAY in self.table.partition_by
        return [
            file
            for file in self._files[1]
            if (days is None or not has_days or (file.day is not None and days[0] <= file.day <= days[1]))
            and (cluster is None or file.may_have(cluster))
            and (group is None or has_text(file.groups, group))
            and (rounds is None or file.rounds is None or _meet(file.rounds, rounds))
            and (
                times is None or file.oldest is None or file.newest is None or _meet((file.oldest, file.newest), times)
            )
        ]

    def rows(self, files: Iterable[DataFile] | None = None, *, encoded: bool = False) -> ds.FileSystemDataset:
        """The rows of some files, by the schema of this release: what an older file does not have is NULL.

        A file promises nothing but its day. delta-rs's own data set makes every filter on a column without statistics
        false: a table compacted by an engine that keeps those of its first 32 columns would have no rows of the 33rd.

        Args:
            files: Those that `files` gives; None for all, none where there is no table.
            encoded: Texts are dictionary-encoded, which halves time and memory of queries over all rows; then no row
                group is passed over by its texts.
        """
        schema = pa.schema([field.remove_metadata() for field in self.table.arrow_schema])
        texts = [field.name for field in schema if encoded and pa.types.is_string(field.type)]
        kind = pa.dictionary(pa.int32(), pa.string())
        schema = pa.schema([field.with_type(kind) if field.name in texts else field for field in schema])
        form = ds.ParquetFileFormat(dictionary_columns=set(texts)) if texts else ds.ParquetFileFormat()
        fragments = [
            form.make_fragment(
                file.path,
                filesystem=self.folder,
                partition_expression=None if file.day is None else ds.field(DAY) == pa.scalar(file.day),
            )
            for file in (self.files() if files is None else files)
        ]
        return ds.FileSystemDataset(fragments, schema, form, self.folder)

    def ask(
        self,
        sql: str,
        parameters: Mapping[str, Any],
        files: Iterable[DataFile] | None = None,
        *,
        beside_viewers: bool = False,
    ) -> list[dict[str, Any]]:
        """Run a query over the rows of some files, under the table's name; one dict per row.

        Args:
            sql: The query.
            parameters: Its parameters by name.
            files: Those that `files` gives; None for all.
            beside_viewers: The question is no viewer's, and must not wait for memory that a question of theirs holds.

        Raises:
            LakeUnreadableError: A data file is gone.
        """
        connection = in_memory() if beside_viewers else limited()
        with connection, naming_what_is_lost(f"The table {self.uri}"):
            connection.register(self.table.name, self.rows(files))
            return fetched_dicts(connection, sql, dict(parameters))

    def _listed(self, delta: DeltaTable) -> list[DataFile]:
        bounds = ("cluster", "group_id", "round", self._time)
        names = ("path", "size_bytes", "modification_time", "num_records", f"partition.{DAY}")
        wanted = (*names, *(f"{side}.{name}" for side in ("min", "max") for name in bounds))
        actions = pa.table(delta.get_add_actions(flatten=True))
        picked = actions.select([name for name in wanted if name in actions.column_names])
        return [file_of(action, self._time) for action in picked.to_pylist()]


def file_of(action: Mapping[str, Any], time: str) -> DataFile:
    """The file of a flat add action.

    Args:
        action: As `DeltaTable.get_add_actions(flatten=True)` gives it.
        time: The column of times.
    """
    written, day = action["modification_time"], action.get(f"partition.{DAY}")
    low, high = (_time(action.get(f"{side}.{time}"), day if time == DAY else None) for side in ("min", "max"))
    return DataFile(
        path=unquote(action["path"]),
        day=day,
        clusters=_both(action, "cluster"),
        newest=high,
        rounds=_both(action, "round"),
        written=written if isinstance(written, int) else int(written.timestamp() * 1000),
        rows=action.get("num_records"),
        oldest=low,
        groups=_both(action, "group_id"),
        size=action.get("size_bytes", 0),
    )


def _both(action: Mapping[str, Any], name: str) -> Any:
    low, high = action.get(f"min.{name}"), action.get(f"max.{name}")
    if low is None or high is None:
        return None
    return (low, high)


def _time(value: str | datetime | None, day: date | None) -> datetime | None:
    # The log has no statistics of a partition's own column.
    if day is not None:
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if value is None or value.tzinfo is not None:
        return value
    return value.replace(tzinfo=UTC)


def has_text(bounds: tuple[str, str] | None, text: str) -> bool:
    """Whether a file with these bounds in the log can have a text; the upper one may have been cut."""
    return bounds is None or (bounds[0] <= text and (text <= bounds[1] or len(bounds[1].encode()) >= CUT_AT))


def _meet(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    return bool(one[0] <= other[1] and other[0] <= one[1])


def _refuse_features(table: DeltaTable, uri: str) -> None:
    """Refuse a table whose files are not all there is to its rows.

    Raises:
        LakeUnreadableError: It has deletion vectors or column mapping.
    """
    features = set(table.protocol().reader_features or ())
    if table.protocol().min_reader_version == 2 or features & _UNREADABLE_FEATURES:
        message = (
            f"The table {uri} needs a reader of {', '.join(sorted(features)) or 'column mapping'}: "
            "turn that feature off, as it was when the table was created."
        )
        raise LakeUnreadableError(message)
