"""Rows of the rounds that were asked for, from no more files than have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.alerts.judging.new_rows import WaitingRows
from streaming.tables import LakeUnreadableError, table_named
from tests.alerts.build import Writer

_COLUMNS = ("cluster", "group_id", "round")


def _rows_of_three_files(folder: Path) -> tuple[Writer, WaitingRows]:
    """Rounds 1 and 2 in the first file, 3 and 4 in the second, 5 and 6 in the third."""
    writer = Writer(folder)
    for first in (1, 3, 5):
        writer.write(first, {"group_health": [{"group_id": "g"}]}, {"group_health": [{"group_id": "g"}]})
    return writer, WaitingRows(writer.root, table_named("group_health"), _COLUMNS, "c")


@pytest.mark.parametrize(
    ("after", "until", "rounds"),
    [
        (None, None, [1, 2, 3, 4, 5, 6]),
        (None, 3, [1, 2, 3]),
        (None, 2, [1, 2]),
        (4, None, [5, 6]),
        (3, None, [4, 5, 6]),
        (2, 5, [3, 4, 5]),
    ],
)
def test_rows_are_those_after_a_round_and_up_to_another(
    tmp_path: Path, after: int | None, until: int | None, rounds: list[int]
) -> None:
    _, table = _rows_of_three_files(tmp_path)
    files = table.snapshot()
    assert sorted(file.rounds for file in files if file.rounds) == [(1, 2), (3, 4), (5, 6)]
    assert sorted(table.rows(files, after, until)["round"].to_pylist()) == rounds


def test_files_without_a_round_that_was_asked_for_are_not_read(tmp_path: Path) -> None:
    writer, table = _rows_of_three_files(tmp_path)
    files = table.snapshot()
    for file in files:
        if file.rounds != (3, 4):
            Path(writer.root, "group_health", file.path).unlink()
    assert sorted(table.rows(files, 2, 4)["round"].to_pylist()) == [3, 4]
    for after, until in ((1, 4), (2, 5), (None, 4), (2, None)):
        with pytest.raises(LakeUnreadableError):
            table.rows(files, after, until)
