"""The newest round is found in `rounds` alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.alerts.judging.itself import NewestRound
from streaming.tables import LakeUnreadableError
from tests.alerts.build import INTERVAL, Writer
from tests.alerts.living import Watched


def test_each_look_gives_the_newest_new_round_of_its_own_cluster(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    newest = NewestRound(writer.root, "c")
    assert newest.read() is None
    for number in (1, 2, 3):
        writer.write(number, {})
    assert newest.read() == 3
    assert newest.read() is None
    other = Writer(tmp_path, "other")
    other._batch = writer._batch
    other.write(9, {})
    assert newest.read() is None
    assert NewestRound(writer.root, "other").read() == 9


def test_a_broken_file_is_said_and_hides_no_later_round(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(1, {})
    for file in Path(writer.root, "rounds").rglob("*.parquet"):
        file.write_bytes(b"PAR1")
    newest = NewestRound(writer.root, "c")
    with pytest.raises(LakeUnreadableError, match="rounds"):
        newest.read()
    assert newest.read() is None
    writer.write(2, {})
    assert newest.read() == 2


# A lake whose files nobody joins is an alert; one that is maintained is none.


UNMAINTAINED = """
  - name: unmaintained
    view: rounds_current
    when: most_files > 5
    value: most_files
    severity: warning
    message: "{most_files_table} has {value} files"
"""

NEXT_COUNT_S = 601


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path, UNMAINTAINED)


def rounds(writer: Writer, first: int, count: int) -> None:
    for number in range(first, first + count):
        writer.write(number, {"group_health": [{"group_id": "g"}] if number % 2 else []})


def test_a_table_of_many_files_fires_and_compaction_resolves_it(watched: Watched) -> None:
    rounds(watched.writer, 0, 5)
    assert watched.after(INTERVAL / 1000) == []
    rounds(watched.writer, 5, 2)
    assert watched.after(1) == [], "files are counted every ten minutes"
    assert watched.after(NEXT_COUNT_S) == [("unmaintained", None, "firing")]
    (row,) = watched.writer.transitions()
    assert row["message"] == "rounds has 7 files"
    DeltaTable(f"{watched.writer.root}/rounds").optimize.compact()
    assert watched.after(NEXT_COUNT_S) == [("unmaintained", None, "resolved")]


def test_without_a_lake_and_with_a_broken_table_nothing_is_claimed(watched: Watched) -> None:
    assert watched.after(1) == []
    rounds(watched.writer, 0, 7)
    for commit in Path(watched.writer.root, "rounds", "_delta_log").iterdir():
        commit.rename(commit.with_suffix(".away"))
    assert watched.after(NEXT_COUNT_S) == []
