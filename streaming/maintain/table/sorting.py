"""Rows of some files of one day as files of a range of groups each, in slices that fit into memory.

Compaction joins files as they come, so each of its files has all groups: a reader of one group's month would open a
thousand of them. Here twelve of them, say, are read once to count the rows of each group, and then once more, a range
of groups at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.transaction import AddAction

from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.table.delta_table import MaintainedTable
from streaming.maintain.table.plan import File, Limits, Sorting
from streaming.maintain.table.rewrite import encoded_data_set
from streaming.tables import Table, stored_schema

# Files that were written and not committed for this long are given up. Vacuum leaves them alone for twice that.
_LONGEST_S = 6 * 3_600

# Rows whose group ids are texts at once, before they are encoded.
_BATCH_ROWS = 4_096

GROUP = "group_id"
"""The column by which rows are sorted into files. Tables without it in their key are not sorted."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of one file to be written: a range of groups, of some files.

    Attributes:
        sorting: What it is a part of.
        files: Files that have such rows.
        first: The first group.
        last: The last one.
        rows: Number of rows.
    """

    sorting: Sorting
    files: tuple[File, ...]
    first: str
    last: str
    rows: int


@dataclass(slots=True)
class Sorter:
    """One sorting under way: a file for each slice, then one commit for all.

    A process that ends in between leaves files that are in no commit, which vacuum deletes, and begins again.

    Attributes:
        table: The table.
        sorting: What is sorted.
        left: Slices that are still to be written, in order.
        added: What was written.
        begun: When it began, by the monotonic clock.
    """

    table: MaintainedTable
    sorting: Sorting
    left: list[Slice]
    added: list[AddAction] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, table: MaintainedTable, sorting: Sorting, most_rows: int) -> Sorter:
        """Share the files out among slices of so many rows (see `slices_of`).

        Raises:
            MaintenanceError: Not all rows have a group, or as `MaintainedTable.refuse_unknown`.
            OSError: A file is gone or broken.
        """
        table.refuse_unknown()
        slices = slices_of(table.table, sorting, most_rows, table.folder)
        rows = sum(file.rows for file in sorting.files)
        if sum(part.rows for part in slices) != rows:
            message = (
                f"Rows of {sorting.day} in the table {table.uri} have no group, or their number in the log is wrong."
            )
            raise MaintenanceError(message)
        return cls(table, sorting, slices)

    def is_for(self, sorting: Sorting) -> bool:
        """Whether it can go on: for the same files, and not begun too long ago."""
        return self.sorting == sorting and time.monotonic() - self.begun < _LONGEST_S

    def step(self) -> int:
        """Write the next slice, and with the last one commit all; returns its bytes.

        Raises:
            MaintenanceError: A slice has not the rows that it should have, or as `MaintainedTable.replace_by`.
            OSError: A file cannot be read or written.
        """
        part = self.left[0]
        rows = read_slice(self.table.table, part, self.table.folder)
        if rows.num_rows != part.rows:
            message = f"A part of {part.sorting.day} in the table {self.table.uri} could not be read as a whole."
            raise MaintenanceError(message)
        self.added.append(self.table.add_sorted(self.sorting, rows))
        del self.left[0]
        if not self.left:
            self.table.replace_by(self.sorting.files, self.added)
        return self.added[-1].size

    def give_up(self) -> None:
        """Delete what was written."""
        self.table.forget([action.path for action in self.added])


@dataclass(frozen=True, slots=True)
class SortingStep:
    """One step of a sorting.

    Attributes:
        size: Bytes of the file that it wrote.
        replaced: Files that its commit has replaced; () if it was not the last one.
    """

    size: int
    replaced: tuple[File, ...]


class Sorters:
    """The sortings under way, one for each table at most. Not thread-safe."""

    def __init__(self) -> None:
        """Begin with none."""
        self._open: dict[str, Sorter] = {}
        self._failed: set[str] = set()

    def may_sort(self, table: Table) -> bool:
        """Whether no sorting of the table has failed to begin: the next would fail at the same file."""
        return table.name not in self._failed

    def next_slice(self, opened: MaintainedTable, sorting: Sorting, limits: Limits) -> Slice:
        """The next slice of a sorting, which begins if it is not under way.

        Raises:
            MaintenanceError: As `slices_of`.
            OSError: A file is gone or broken.
        """
        name = opened.table.name
        sorter = self._open.get(name)
        if sorter is None or not sorter.is_for(sorting):
            if sorter is not None:
                sorter.give_up()
            try:
                # (Not `piece_rows`, which a gap makes smaller: a busy job would make many files of few.)
                sorter = self._open[name] = Sorter.begin(opened, sorting, limits.sort_rows)
            except MaintenanceError:
                self._failed.add(name)
                raise
        return sorter.left[0]

    def step(self, opened: MaintainedTable) -> SortingStep:
        """Write the slice that `next_slice` gave.

        Raises:
            MaintenanceError: As `Sorter.step`.
            OSError: A file cannot be read or written.
        """
        name = opened.table.name
        sorter = self._open.pop(name)
        try:
            size = sorter.step()
        except BaseException:
            # (Once a commit was tried, the files may be part of the table, even if it seemed to fail.)
            if sorter.left:
                sorter.give_up()
            raise
        if sorter.left:
            self._open[name] = sorter
        return SortingStep(size, () if sorter.left else sorter.sorting.files)


def slices_of(table: Table, sorting: Sorting, most_rows: int, folder: Any) -> list[Slice]:
    """Share the rows of some files out among slices.

    Args:
        table: The table.
        sorting: The files.
        most_rows: Rows of a slice. A group that has more in one file makes a slice of its own.
        folder: The table's `file_system`.

    Raises:
        MaintenanceError: A row has no group; no job writes such rows.
        OSError: A file is gone or broken.
    """
    counts = [(file, _rows_by_group(table, file, folder)) for file in sorting.files]
    found: list[Slice] = []
    groups: list[str] = []
    rows = 0
    for group in sorted({group for _, counted in counts for group in counted}):
        parts = [(file, counted[group]) for file, counted in counts if group in counted]
        more = sum(of_file for _, of_file in parts)
        if groups and rows + more > most_rows:
            found.append(_of_groups(sorting, counts, groups, rows))
            groups, rows = [], 0
        if more > most_rows:
            found += (Slice(sorting, tuple(some), group, group, n) for some, n in _cut(parts, most_rows))
        else:
            groups.append(group)
            rows += more
    if groups:
        found.append(_of_groups(sorting, counts, groups, rows))
    return found


def read_slice(table: Table, part: Slice, folder: Any) -> pa.Table:
    """The rows of a slice.

    Raises:
        OSError: A file is gone or broken.
    """
    places = [(file.place, None) for file in part.files]
    # (Arrow passes over row groups by the bounds of texts, not of dictionaries.)
    found = encoded_data_set(places, stored_schema(table), folder, plain={GROUP})
    wanted = (ds.field(GROUP) >= part.first) & (ds.field(GROUP) <= part.last)
    # (Encoded in small batches: the same long id in each of two million rows would be too much.)
    batches = found.to_batches(filter=wanted, batch_size=_BATCH_ROWS, batch_readahead=0, fragment_readahead=0)
    encoded = [_encoded(batch) for batch in batches if batch.num_rows]
    if not encoded:
        return found.head(0)
    return pa.Table.from_batches(encoded).unify_dictionaries().combine_chunks()


def _encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    at = batch.schema.get_field_index(GROUP)
    return batch.set_column(at, GROUP, batch.column(at).dictionary_encode())


def _rows_by_group(table: Table, file: File, folder: Any) -> dict[str, int]:
    found = encoded_data_set([(file.place, None)], stored_schema(table), folder)
    counted = pc.value_counts(found.to_table(columns=[GROUP])[GROUP].combine_chunks())
    rows = {one["values"]: one["counts"] for one in counted.to_pylist()}
    if None in rows:
        message = (
            f"Rows of the table {table.name} have no group, so {file.place} is not sorted: find out who wrote them."
        )
        raise MaintenanceError(message)
    return rows


def _of_groups(
    sorting: Sorting, counts: Sequence[tuple[File, dict[str, int]]], groups: Sequence[str], rows: int
) -> Slice:
    names = set(groups)
    files = tuple(file for file, counted in counts if not names.isdisjoint(counted))
    return Slice(sorting, files, groups[0], groups[-1], rows)


def _cut(parts: Sequence[tuple[File, int]], most_rows: int) -> Iterator[tuple[list[File], int]]:
    """Files of a group that has too many rows for one slice, in parts that fit."""
    open_: list[File] = []
    rows = 0
    for file, more in parts:
        if open_ and rows + more > most_rows:
            yield open_, rows
            open_, rows = [], 0
        open_.append(file)
        rows += more
    yield open_, rows
