"""Files of a closed day sorted by group: no row is lost or doubled, and a group's rows are in few files."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.maintain import Maintainer
from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.table.delta_table import open_table
from streaming.maintain.table.plan import Sorting
from streaming.maintain.table.sorting import Sorter, read_slice, slices_of
from streaming.tables import ALL_TABLES, DeltaLake, DeltaLogTail, table_named
from streaming.times import DAY_MS
from tests.examples import examples
from tests.maintain.build import KEEP, NOW, SMALL, Writer, maintain, new_lake, row, rows_of

pytestmark = pytest.mark.turn(6)

LAG = table_named("lag")

# Nothing is joined, so files of a few rows stand for those of two million.
UNJOINED = replace(SMALL, piece_files=1, sort_files=3, sort_rows=6)


def write_files(lake: DeltaLake, files: list[dict[str, int]], day: int = -1) -> None:
    """Files of `lag`, each with so many rows of each group, and a round today."""
    writer, numbers = Writer(lake), itertools.count()
    for groups in files:
        rows = [(group, next(numbers)) for group, count in groups.items() for _ in range(count)]
        writer.append("lag", *(row("lag", day, n, group_id=group, topic="t", partition=n % 2) for group, n in rows))
    writer.round(0, 1_000)


def groups_by_file(lake: DeltaLake) -> dict[str, Counter[str]]:
    """Rows of each group, by the name of a file."""
    paths = [Path(uri) for uri in DeltaTable(lake.path("lag")).file_uris()]
    groups = {path.name: pq.ParquetFile(path).read(columns=["group_id"])["group_id"].to_pylist() for path in paths}
    return {name: Counter(rows) for name, rows in groups.items()}


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return new_lake(tmp_path)


def test_each_group_is_in_one_file_where_it_was_in_all(lake: DeltaLake) -> None:
    write_files(lake, [{"a": 1, "b": 1, "c": 1, "d": 1}] * 3)
    before = rows_of(lake, "lag")
    done = maintain(lake, limits=UNJOINED)
    assert [(d.what, d.rows, d.files) for d in done if d.table == "lag"] == [("sorting", 6, 0), ("sorting", 6, 3)]
    assert sorted(map(dict, groups_by_file(lake).values()), key=str) == [{"a": 3, "b": 3}, {"c": 3, "d": 3}]
    assert rows_of(lake, "lag") == before


def test_a_group_larger_than_a_slice_is_cut_by_files_and_bounds_the_memory(lake: DeltaLake) -> None:
    write_files(lake, [{"a": 1, "huge": 5}, {"huge": 5, "z": 1}, {"huge": 4}])
    before = rows_of(lake, "lag")
    maintain(lake, limits=UNJOINED)
    found = sorted(map(dict, groups_by_file(lake).values()), key=str)
    assert found == [{"a": 1}, {"huge": 4}, {"huge": 5}, {"huge": 5}, {"z": 1}]
    assert rows_of(lake, "lag") == before


_FILES = st.lists(
    st.dictionaries(
        st.sampled_from(["a", "b", "ä", "\U0001f600", "\ufffd", "x" * 40_000]), st.integers(1, 4), min_size=1
    ),
    min_size=2,
    max_size=7,
)


@pytest.mark.nightly
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_FILES)
def test_whatever_the_groups_no_row_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, files: list[dict[str, int]]
) -> None:
    lake = new_lake(tmp_path_factory.mktemp("sorting"))
    write_files(lake, files)
    before = rows_of(lake, "lag")
    limits = replace(UNJOINED, sort_rows=24)
    maintain(lake, limits=limits)
    assert rows_of(lake, "lag") == before
    assert sum(not name.startswith("sorted-") for name in groups_by_file(lake)) <= 1
    assert not [d for d in maintain(lake, limits=limits) if d.table == "lag"]


def test_followers_see_no_new_rows_in_sorted_files(lake: DeltaLake) -> None:
    write_files(lake, [{"a": 2, "b": 2}] * 3)
    tail = DeltaLogTail(lake.root, LAG, "round_time")
    tail.look()
    maintain(lake, limits=UNJOINED)
    assert all(name.startswith("sorted-") for name in groups_by_file(lake))
    found = tail.look()
    assert found.files == ()
    assert not found.is_snapshot


def test_what_was_begun_and_left_is_begun_again(lake: DeltaLake) -> None:
    write_files(lake, [{"a": 3, "b": 3}] * 3)
    before = rows_of(lake, "lag")
    keep_days = {table.name: KEEP for table in ALL_TABLES}
    first = Maintainer(lake.root, keep_days, UNJOINED, now=lambda: NOW)
    assert next(done for done in first.work() if done.table == "lag").what == "sorting"
    assert rows_of(lake, "lag") == before
    maintain(lake, limits=UNJOINED)
    assert rows_of(lake, "lag") == before
    assert all(name.startswith("sorted-") for name in groups_by_file(lake))


def test_late_rows_between_two_slices_are_kept(lake: DeltaLake) -> None:
    write_files(lake, [{"a": 3, "b": 3}] * 2)
    keep_days = {table.name: KEEP for table in ALL_TABLES}
    work = Maintainer(lake.root, keep_days, UNJOINED, now=lambda: NOW).work()
    next(done for done in work if done.table == "lag")
    lake.append("lag", [row("lag", -1, 77, group_id="late")], "query", 77)
    before = rows_of(lake, "lag")
    assert [done.files for done in list(work) if done.what == "sorting"][-1] == 3
    assert rows_of(lake, "lag") == before


def test_a_slice_that_somebody_deletes_before_the_commit_leaves_the_table_as_it_is(lake: DeltaLake) -> None:
    write_files(lake, [{"a": 4, "b": 4}] * 2)
    before = rows_of(lake, "lag")
    opened = open_table(lake.root, LAG)
    assert opened is not None
    of_day = tuple(sorted((f for f in opened.files()), key=lambda f: f.path))
    sorter = Sorter.begin(opened, Sorting(of_day[0].day, of_day), most_rows=8)
    sorter.step()
    (Path(lake.root) / "lag" / sorter.added[0].path).unlink()
    while len(sorter.left) > 1:
        sorter.step()
    with pytest.raises(MaintenanceError, match="are gone, so nothing was changed"):
        sorter.step()
    assert rows_of(lake, "lag") == before


def test_files_that_are_larger_than_a_piece_are_left_to_the_engine_that_made_them(lake: DeltaLake) -> None:
    write_files(lake, [{"a": 7}, {"a": 3, "b": 4}])
    before = groups_by_file(lake)
    assert not [d for d in maintain(lake, limits=UNJOINED) if d.table == "lag"]
    assert groups_by_file(lake) == before


@pytest.mark.nightly
def test_ids_of_32_kb_take_as_much_memory_as_there_are_of_them(lake: DeltaLake) -> None:
    long = "x" * 32_000
    write_files(lake, [{long: 3_000}] * 2)
    opened = open_table(lake.root, LAG)
    assert opened is not None
    files = tuple(opened.files())
    (part,) = slices_of(LAG, Sorting(files[0].day, files), 10_000, opened.folder)
    rows = read_slice(LAG, part, opened.folder)
    assert (rows.num_rows, rows["group_id"].num_chunks) == (6_000, 1)
    assert rows.nbytes < 10_000_000


def test_slices_hold_no_more_rows_than_asked_for(lake: DeltaLake) -> None:
    write_files(lake, [{f"g{n}": 1 + n % 3 for n in range(20)}] * 4)
    opened = open_table(lake.root, LAG)
    assert opened is not None
    files = tuple(opened.files())
    slices = slices_of(LAG, Sorting(files[0].day, files), 20, opened.folder)
    assert max(part.rows for part in slices) <= 20
    assert sum(part.rows for part in slices) == sum(file.rows for file in files)
    assert all(one.last < other.first for one, other in itertools.pairwise(slices))


def test_a_day_that_is_written_now_is_not_sorted(lake: DeltaLake) -> None:
    write_files(lake, [{"a": 4, "b": 4}] * 3, day=0)
    assert not [d for d in maintain(lake, limits=UNJOINED, now=NOW - DAY_MS // 2) if d.what == "sorting"]
