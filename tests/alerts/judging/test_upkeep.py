"""A lake whose files nobody joins is an alert; one that is maintained is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.alerts.build import INTERVAL, Writer
from tests.alerts.watched import Watched

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
