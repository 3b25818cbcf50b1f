"""The newest round is found whatever is wrong with some files of `rounds`."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.alerts.judging.itself import NewestRound
from streaming.tables import LakeUnreadableError
from tests.alerts.build import Writer

TRIED = 20
"""Files that it tries, from the newest on."""


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def rounds(writer: Writer, first: int, last: int) -> list[Path]:
    """Write rounds in a file each; returns the files."""
    before = files(writer)
    for number in range(first, last + 1):
        writer.write(number, {})
    return sorted(files(writer) - before, key=lambda file: file.stat().st_mtime_ns)


def other_cluster(writer: Writer) -> Writer:
    """Writes another cluster's rows into the same lake."""
    other = Writer(Path(writer.root).parent, "other")
    other._batch = writer._batch
    return other


def files(writer: Writer) -> set[Path]:
    return set(Path(writer.root, "rounds").rglob("*.parquet"))


def test_each_look_gives_the_newest_new_round_of_its_own_cluster(writer: Writer) -> None:
    newest = NewestRound(writer.root, "c")
    assert newest.read() is None
    rounds(writer, 1, 3)
    assert newest.read() == 3
    assert newest.read() is None
    rounds(other_cluster(writer), 9, 9)
    assert newest.read() is None
    assert NewestRound(writer.root, "other").read() == 9


def test_behind_broken_files_the_newest_that_can_be_read_is_found(writer: Writer) -> None:
    for file in rounds(writer, 1, 5)[-2:]:
        file.write_bytes(b"PAR1")
    assert NewestRound(writer.root, "c").read() == 3


def test_where_no_file_can_be_read_it_says_so_until_one_can(writer: Writer) -> None:
    written = rounds(writer, 1, TRIED + 1)
    intact = [file.read_bytes() for file in written]
    for file in written[-TRIED:]:
        file.write_bytes(b"PAR1")
    newest = NewestRound(writer.root, "c")
    for _ in range(2):
        with pytest.raises(LakeUnreadableError, match="rounds"):
            newest.read()
    written[-1].write_bytes(intact[-1])
    assert newest.read() == TRIED + 1


def test_a_file_that_is_whole_again_is_not_reported_as_broken(writer: Writer) -> None:
    newest = NewestRound(writer.root, "c")
    rounds(writer, 1, 1)
    assert newest.read() == 1
    (broken,) = rounds(writer, 2, 2)
    intact = broken.read_bytes()
    broken.write_bytes(b"PAR1")
    assert newest.read() is None
    broken.write_bytes(intact)
    rounds(other_cluster(writer), 1, TRIED)
    # As after a pause in which the log was cleaned: all files are new again, and those of this cluster are older.
    newest._log_tail.forget()
    assert newest.read() is None
