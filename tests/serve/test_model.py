"""What metrics and API have of a lake that is not read whole: no part of its groups as all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streaming.config import load_settings
from streaming.serve.model import Model
from streaming.tables import DeltaLake, table_named
from tests.empty_lake import empty_lake

# 21 November 2026, noon.
_MS = 1_795_262_400_000


def add(lake: DeltaLake, batch: int, table: str, **values: Any) -> None:
    given = {"cluster": "c", "round": batch, "round_time": _MS + batch, "event_date": _MS // 86_400_000, **values}
    lake.append(table, [[given.get(column.name) for column in table_named(table).columns]], "job", batch)


def groups(model: Model) -> list[str] | None:
    if model.snapshot is None:
        return None
    return sorted(model.snapshot.metrics.read(["groups"])["groups"]["group_id"].to_pylist())


def test_while_files_of_the_present_cannot_be_read_there_is_no_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.tables.cache._AT_FIRST", 1)
    monkeypatch.setattr("streaming.tables.cache._AT_ONCE", 1)
    lake = empty_lake(tmp_path / "lake")
    for number in range(1, 5):
        add(lake, number, "group_health", group_id=f"g{number}", ended=False, findings=[])
    add(lake, 5, "rounds", interval_ms=10_000)
    model = Model(load_settings(lake=lake.root))
    model.lake.poll()
    files = list(Path(lake.path("group_health")).rglob("*.parquet"))
    away = [file.rename(f"{file}.away") for file in files]
    assert model.lake.read_on() is False
    # The thread looks at the lake and then reads on, again and again.
    for go_on in (model.renew_snapshot, model.lake.poll, model.lake.read_on, model.renew_snapshot):
        go_on()
        assert model.lake.problem is not None
        assert (model.lake.present, groups(model)) == (False, None)
        assert model.lake.unread > 0
    for file, gone in zip(files, away, strict=True):
        gone.rename(file)
    model.lake.poll()
    while model.lake.read_on():
        pass
    model.renew_snapshot()
    assert (model.lake.problem, model.lake.unread) == (None, 0)
    assert groups(model) == ["g1", "g2", "g3", "g4"]
