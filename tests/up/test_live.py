from __future__ import annotations

import io
import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import DeltaTable, TableFeatures
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from streaming.config import Thresholds
from streaming.tables import LakeReader, table_named
from streaming.up import print_summary, watch
from streaming.up.live import Quiet, cell, live_rows, render
from streaming.up.run import _View
from tests.empty_lake import empty_lake

pytestmark = pytest.mark.turn(6)

HEARTBEAT = timedelta(minutes=10)

_HOSTILE = ("[bold red]markup[/]", "[/x]", "\x1b[31mred\x07", "two\nlines", "\u202eright to left", "x" * 32_000)


def _drawn(reader: LakeReader) -> str:
    console = Console(file=io.StringIO(), width=160, force_terminal=False)
    console.print(render(reader, "c", 50))
    print_summary(console, reader)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_an_empty_lake_is_a_sentence(tmp_path: Path) -> None:
    assert "waiting for the first round" in _drawn(LakeReader(tmp_path / "nothing"))


def _drawn_by_up(view: _View) -> str:
    console = Console(file=io.StringIO(), width=250, force_terminal=False)
    console.print(view.draw(50, "page at http://127.0.0.1:8090"))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_tables_that_cannot_be_read_for_a_while_are_a_sentence_too(tmp_path: Path) -> None:
    empty_lake(tmp_path)
    view = _View(str(tmp_path), "c", HEARTBEAT)
    assert "waiting for the first round" in _drawn_by_up(view)
    rounds, away = tmp_path / "rounds", tmp_path / "rounds.away"
    rounds.rename(away)
    rounds.write_text("a broken store")
    for told in (_drawn_by_up(view), _drawn_by_up(_View(str(tmp_path), "c", HEARTBEAT))):
        assert told.startswith("the tables cannot be read now: ")
        assert "page at http://127.0.0.1:8090" in told
    rounds.unlink()
    away.rename(rounds)
    assert "waiting for the first round" in _drawn_by_up(view)


def test_a_feature_that_no_reader_has_does_not_end_everything(tmp_path: Path) -> None:
    empty_lake(tmp_path)
    DeltaTable(str(tmp_path / "rounds")).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    assert "turn that feature off" in _drawn_by_up(_View(str(tmp_path), "c", HEARTBEAT))


def test_a_refresh_reads_new_files_alone(tmp_path: Path) -> None:
    lake = empty_lake(tmp_path)

    def write(batch: int, groups: list[str]) -> None:
        now = {"cluster": "c", "round": batch, "round_time": 1_000 * batch, "event_date": 0}
        health = [now | {"group_id": group, "ended": False, "findings": []} for group in groups]
        lake.append("group_health", named_rows("group_health", health), "job", batch)
        lake.append("rounds", named_rows("rounds", [now]), "job", batch)

    write(1, ["steady", "moving"])
    view = _View(str(tmp_path), "c", HEARTBEAT)
    assert "2 groups" in _drawn_by_up(view)
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    write(2, ["new"])
    drawn = _drawn_by_up(view)
    assert "3 groups" in drawn
    assert all(name in drawn for name in ("steady", "moving", "new"))


def named_rows(table: str, rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [[row.get(column.name) for column in table_named(table).columns] for row in rows]


def test_hostile_names_are_text_and_no_control_character_reaches_the_terminal(tmp_path: Path) -> None:
    lake = empty_lake(tmp_path)

    def append(table: str, rows: list[dict[str, Any]]) -> None:
        lake.append(table, named_rows(table, rows), "query", 0)

    health = {"cluster": "c", "round": 1, "round_time": 1_000, "event_date": 0, "ended": False, "state": "Stable",
              "verdict": "drifted", "members": 1, "findings": [], "lag_status": "ok"}  # fmt: skip
    # (A broker may report any state; the time of a decision, below, is NULL.)
    named = [health | {"group_id": text} for text in _HOSTILE]
    append("group_health", named + [health | {"group_id": f"g{n}", "state": s} for n, s in enumerate(_HOSTILE)])
    churn = {
        "cluster": "c",
        "decision": 1,
        "revision": 1,
        "kind": "rebalance",
        "generation": 1,
        "event_date": 0,
        "left": [],
    }
    append("rebalance_churn", [churn | {"group_id": text} for text in _HOSTILE])
    append("rounds", [{"cluster": "c", "round": 1, "round_time": 1_000}])
    drawn = _drawn(LakeReader(tmp_path))
    for shown in ("[bold red]markup[/]", "[/x]", "\\x1b[31mred\\x07", "two\\nlines", "\\u202eright to left"):
        assert drawn.count(shown) >= 3
    assert all(character.isprintable() or character == "\n" for character in drawn)


# (By their numbers: Hypothesis prints what it draws from, and one of them is very long.)
_TEXTS = st.none() | st.sampled_from(range(len(_HOSTILE))).map(lambda at: _HOSTILE[at]) | st.text(max_size=20)
_NUMBERS = st.none() | st.integers() | st.floats()
_TIMES = st.none() | st.datetimes(timezones=st.just(UTC))


class _Rows:
    """A reader whose tables contain any values of their types, with NULL in every column."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def count(self, _table: str) -> int:
        return 7

    def rows(self, sql: str, _given: object = None) -> list[dict[str, Any]]:
        texts = [
            "group_id",
            "state",
            "strategy",
            "verdict",
            "verdict_reason",
            "verdicts",
            "lag_status",
            "kind",
            "ended",
        ]
        numbers = ["members", "generation", "drifted_count", "lag_total", "imbalance", "imbalance_optimal", "joined",
                   "gone", "partitions_moved", "partitions_moved_optimal", "cost", "rebalances", "replaced", "n",
                   "round", "interval_ms"]  # fmt: skip
        row = dict.fromkeys(texts, _TEXTS) | dict.fromkeys(numbers, _NUMBERS)
        row |= {"groups": st.integers(min_value=0)}
        row |= {"record_time": _TIMES, "newest": _TIMES, "findings": st.none() | st.lists(_findings, max_size=2)}
        count = 1 if "newest" in sql else 2
        return self._data.draw(st.lists(st.fixed_dictionaries(row), min_size=count, max_size=count))


_findings = st.fixed_dictionaries({"finding": _TEXTS})


@pytest.mark.nightly
@settings(max_examples=150, deadline=None)
@given(st.data(), _TEXTS)
def test_any_row_can_be_drawn(data: st.DataObject, notice: str | None) -> None:
    reader = cast("LakeReader", _Rows(data))
    console = Console(file=io.StringIO(), width=160, force_terminal=False)
    console.print(render(reader, "c", 50, notice or ""))
    print_summary(console, reader)
    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(character.isprintable() or character == "\n" for character in drawn)


@given(
    st.one_of(_TEXTS, _NUMBERS, _TIMES, st.binary(), st.lists(st.text())), st.sampled_from(["", ",", ",.1f", "%H:%M"])
)
def test_a_cell_takes_any_value_and_has_a_bound(value: object, spec: str) -> None:
    shown = cell(value, spec)
    assert len(shown.plain) <= 48
    assert shown.plain.isprintable()
    assert shown.spans == []


def test_a_cell_shows_null_numbers_and_long_names_as_people_read_them() -> None:
    assert cell(None).plain == "-"
    assert cell(1_234_567, ",").plain == "1,234,567"
    assert cell("stalled", ",").plain == "stalled"
    long = cell("payments-" + "x" * 100 + "-eu-west-1").plain
    assert long == "payments-" + "x" * 14 + "…" + "x" * 14 + "-eu-west-1"


def test_what_cannot_be_drawn_is_noted_once_and_the_view_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_lake(tmp_path)
    stop, noted, drawn, clusters = threading.Event(), [], [], set()

    def broken(_reader: LakeReader, cluster: str, _height: int, notice: str, *_: object) -> str:
        drawn.append(notice)
        clusters.add(cluster)
        if len(drawn) == 2:
            message = "a row\x1b[31m"
            raise TypeError(message)
        if len(drawn) == 6:
            stop.set()
        return "[/x]" if len(drawn) < 5 else notice  # markup that rich refuses while drawing

    monkeypatch.setattr("streaming.up.run.render", broken)
    monkeypatch.setattr("streaming.up.run._REFRESH_S", 0.0)
    console = Console(file=io.StringIO(), width=160, height=20, force_terminal=True)
    watch(str(tmp_path), "c", console, stop, lambda: "page at http://127.0.0.1:8090", noted.append, HEARTBEAT)
    assert len(drawn) == 6
    assert clusters == {"c"}
    assert [re.sub(r"\(.*", "", line) for line in noted] == ["the tables cannot be drawn "] * 2
    assert "MarkupError" in noted[0]
    assert "TypeError: a row\\x1b[31m; test_live.py:" in noted[1]
    screen = console.file.getvalue()  # type: ignore[attr-defined]
    assert screen.count("the view cannot be drawn now: see up.log") == 4
    assert screen.rindex("page at") > screen.rindex("see up.log")


def test_silence_and_imbalance_are_told_by_the_bounds_of_the_alert_rules(tmp_path: Path) -> None:
    lake = empty_lake(tmp_path)
    now = round(datetime.now(UTC).timestamp() * 1000)

    def write(table: str, batch: int, **values: Any) -> None:
        named = {"cluster": "c", "round": batch, "round_time": now, "event_date": now // 86_400_000, **values}
        lake.append(table, named_rows(table, [named]), "job", batch)

    # (A broker whose clock is a day ahead: its round still counts as new, and the next one is newer.)
    write("rounds", 1, interval_ms=10_000, round_time=now + 86_400_000)
    write("group_health", 1, group_id="uneven", ended=False, imbalance=1.0, imbalance_optimal=0.3, findings=[])
    steady = [0.0]
    quiet = Quiet(lambda: steady[0])

    def drawn(thresholds: Thresholds | None = None) -> str:
        console = Console(file=io.StringIO(), width=160, color_system="standard", force_terminal=True)
        console.print(render(LakeReader(tmp_path), "c", 50, "", thresholds, quiet))
        return console.file.getvalue()  # type: ignore[attr-defined]

    red = re.compile(r"\x1b\[1;31m *1\.00")
    assert red.search(drawn())
    assert not red.search(drawn(Thresholds(imbalance=0.75)))
    steady[0] = 31.0
    assert "no new round for 31 s" in drawn()
    assert "no new round" not in drawn(Thresholds(silent_intervals=4))
    write("rounds", 2, interval_ms=10_000)
    assert "no new round" not in drawn()


class _SharedLake:
    """A lake of several clusters, drawn as `up` draws it, with a steady clock that the test sets."""

    def __init__(self, root: Path, cluster: str) -> None:
        self._lake = empty_lake(root)
        self._cluster = cluster
        self._rows = live_rows(str(root), HEARTBEAT)
        self._now = round(datetime.now(UTC).timestamp() * 1000)
        self._batch = 0
        self._steady_s = 0.0
        self._quiet = Quiet(lambda: self._steady_s)

    def write(self, cluster: str, number: int, **tables: list[dict[str, Any]]) -> None:
        """One round, with rows of other tables."""
        self._batch += 1
        of_round = {"cluster": cluster, "round": number, "round_time": self._now, "record_time": self._now,
                    "event_date": self._now // 86_400_000, "interval_ms": 10_000}  # fmt: skip
        for table, rows in (*tables.items(), ("rounds", [{}])):
            self._lake.append(table, named_rows(table, [of_round | row for row in rows]), "job", self._batch)

    def drawn(self, after_s: float) -> str:
        """The view, so many seconds after it was drawn the last time."""
        self._steady_s += after_s
        self._rows.update()
        while self._rows.behind:
            self._rows.read_on()
        console = Console(file=io.StringIO(), width=160, force_terminal=False)
        console.print(render(self._rows, self._cluster, 50, "", None, self._quiet))
        return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_silent_cluster_with_a_higher_round_gives_another_one_no_alarm(tmp_path: Path) -> None:
    lake = _SharedLake(tmp_path, "ours")
    lake.write("other", 1_000_000)
    lake.write("ours", 500)
    assert "no new round" not in lake.drawn(0)
    for number in (501, 502, 503, 504):
        lake.write("ours", number)
        assert "no new round" not in lake.drawn(10)


def test_the_rounds_of_another_cluster_do_not_hide_a_silence(tmp_path: Path) -> None:
    lake = _SharedLake(tmp_path, "ours")
    lake.write("other", 1_000_000)
    lake.write("ours", 500)
    lake.drawn(0)
    for number in (1, 2, 3):
        lake.write("other", 1_000_000 + number)
        drawn = lake.drawn(11)
    assert "no new round for 33 s" in drawn


def test_groups_and_decisions_are_those_of_the_view_s_own_cluster(tmp_path: Path) -> None:
    lake = _SharedLake(tmp_path, "ours")
    health = {"group_id": "orders", "ended": False, "findings": [], "lag_status": "ok"}
    decided = {"group_id": "orders", "decision": 1, "revision": 1, "generation": 3, "joined": [], "left": []}
    lake.write("other", 9, group_health=[health | {"verdict": "drifted"}, health | {"group_id": "theirs"}],
               rebalance_churn=[decided | {"kind": "created"}])  # fmt: skip
    assert "waiting for the first round" in lake.drawn(0)
    lake.write("ours", 5, group_health=[health | {"verdict": "identical"}],
               rebalance_churn=[decided | {"kind": "rebalance"}])  # fmt: skip
    drawn = lake.drawn(10)
    assert ", 1 group\n" in drawn
    assert drawn.count("orders") == 2  # in the table of groups, and in that of decisions
    assert ("identical" in drawn, "drifted" in drawn) == (True, False)
    assert ("rebalance" in drawn, "created" in drawn) == (True, False)
    assert "theirs" not in drawn
