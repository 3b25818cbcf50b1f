"""The lake in memory while the lake cannot be read: a sentence, nothing lost, and no part taken for the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables import DeltaLake, LakeUnreadableError
from tests.empty_lake import empty_lake
from tests.tables.cached import CURRENT, cache, health, read_all


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return empty_lake(tmp_path / "lake")


def test_a_broken_commit_is_a_sentence_and_nothing_is_lost_when_it_is_mended(lake: DeltaLake) -> None:
    lake.append("group_health", [health("a", 1)], "query", 0)
    followed = cache(lake)
    followed.update()
    log = Path(lake.path("group_health")) / "_delta_log"
    whole = max(log.glob("*.json"))
    lake.append("group_health", [health("b", 2)], "query", 1)
    newest = max(log.glob("*.json"))
    assert newest != whole
    text = newest.read_text()
    newest.write_text("{")
    with pytest.raises(LakeUnreadableError, match=r"group_health cannot be read \(.*\): check that the lake is whole"):
        followed.update()
    assert [row["group_id"] for row in followed.rows(CURRENT)] == ["a"]
    newest.write_text(text)
    assert followed.update() is True
    assert [row["group_id"] for row in followed.rows(CURRENT)] == ["a", "b"]


def test_a_missing_data_file_is_a_sentence(lake: DeltaLake) -> None:
    lake.append("group_health", [health("a", 1)], "query", 0)
    next(Path(lake.path("group_health")).rglob("*.parquet")).unlink()
    with pytest.raises(LakeUnreadableError, match="group_health cannot be read"):
        cache(lake).update()


def test_files_that_could_not_be_read_are_behind_until_they_are_read(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.tables.cache._AT_FIRST", 1)
    for number, group in enumerate(("a", "b", "c")):
        lake.append("group_health", [health(group, number)], "query", number)
    begun = cache(lake)
    begun.update()
    assert (begun.behind, begun.present_behind) == (5, 2)
    files = list(Path(lake.path("group_health")).rglob("*.parquet"))
    away = [file.rename(f"{file}.away") for file in files]
    for again in (begun.read_on, begun.update, begun.read_on):
        with pytest.raises(LakeUnreadableError):
            again()
        assert (begun.behind, begun.present_behind) == (5, 2)
        assert [row["group_id"] for row in begun.rows(CURRENT)] == ["c"]
    for file, gone in zip(files, away, strict=True):
        gone.rename(file)
    read_all(begun)
    assert [row["group_id"] for row in begun.rows(CURRENT)] == ["a", "b", "c"]


def test_what_was_read_whole_stays_whole_while_a_later_look_fails(lake: DeltaLake) -> None:
    lake.append("group_health", [health("a", 1)], "query", 0)
    followed = cache(lake)
    followed.update()
    read_all(followed)
    lake.append("group_health", [health("b", 2)], "query", 1)
    newest = max((Path(lake.path("group_health")) / "_delta_log").glob("*.json"))
    newest.write_text("{")
    with pytest.raises(LakeUnreadableError):
        followed.update()
    assert (followed.behind, followed.present_behind) == (0, 0)
