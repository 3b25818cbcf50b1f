from __future__ import annotations

import io
from pathlib import Path

from deltalake import DeltaTable, TableFeatures
from rich.console import Console

from streaming.tables import DeltaLake, LakeReader, table_named
from streaming.up.live import render, shown
from streaming.up.run import _View
from streaming.up.summary import print_summary

_HOSTILE = ("[bold red]markup[/]", "\x1b[31mred\x07", "two\nlines", "\u202eright to left", "x" * 32_000)


def _drawn(reader: LakeReader) -> str:
    console = Console(file=io.StringIO(), width=160, force_terminal=False)
    console.print(render(reader, 50))
    print_summary(console, reader)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_an_empty_lake_is_a_sentence(tmp_path: Path) -> None:
    assert "waiting for the first round" in _drawn(LakeReader(tmp_path / "nothing"))


def _drawn_by_up(view: _View) -> str:
    console = Console(file=io.StringIO(), width=250, force_terminal=False)
    console.print(view.draw(50, "page at http://127.0.0.1:8501"))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_tables_that_cannot_be_read_for_a_while_are_a_sentence_too(tmp_path: Path) -> None:
    DeltaLake(str(tmp_path)).create()
    view = _View(str(tmp_path))
    assert "waiting for the first round" in _drawn_by_up(view)
    rounds, away = tmp_path / "rounds", tmp_path / "rounds.away"
    rounds.rename(away)
    rounds.write_text("a broken store")
    for told in (_drawn_by_up(view), _drawn_by_up(_View(str(tmp_path)))):
        assert told.startswith("the tables cannot be read now: ")
        assert "page at http://127.0.0.1:8501" in told
    rounds.unlink()
    away.rename(rounds)
    assert "waiting for the first round" in _drawn_by_up(view)


def test_a_feature_that_no_reader_has_does_not_end_everything(tmp_path: Path) -> None:
    DeltaLake(str(tmp_path)).create()
    DeltaTable(str(tmp_path / "rounds")).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    assert "turn that feature off" in _drawn_by_up(_View(str(tmp_path)))


def test_hostile_names_are_text_and_no_control_character_reaches_the_terminal(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    lake.create()
    columns = [column.name for column in table_named("group_health").columns]
    health = {"cluster": "c", "round": 1, "round_time": 1_000, "event_date": 0, "closed": False, "state": "Stable",
              "verdict": "drifted", "members": 1, "findings": [], "lag_status": "ok"}  # fmt: skip
    rows = [[(health | {"group_id": name}).get(column) for column in columns] for name in _HOSTILE]
    lake.append("group_health", rows, "query", 0)
    lake.append("rounds", [[{"cluster": "c", "round": 1, "round_time": 1_000}.get(c.name)
                            for c in table_named("rounds").columns]], "query", 0)  # fmt: skip
    drawn = _drawn(LakeReader(tmp_path))
    assert "[bold red]markup[/]" in drawn
    assert "\\x1b[31mred\\x07" in drawn
    assert "two\\x0alines" in drawn
    assert all(character.isprintable() or character == "\n" for character in drawn)


def test_a_long_name_is_cut_in_the_middle_so_that_both_ends_tell() -> None:
    assert shown("payments-" + "x" * 100 + "-eu-west-1").plain == "payments-" + "x" * 14 + "…" + "x" * 14 + "-eu-west-1"
