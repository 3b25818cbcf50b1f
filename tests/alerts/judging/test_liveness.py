"""The newest round is found in `rounds` alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.alerts.judging.itself import NewestRound
from streaming.tables import LakeUnreadableError
from tests.alerts.build import Writer


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
