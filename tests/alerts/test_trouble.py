"""The alerter with broken tables, wrong clocks, or without access to its own table: it is never silenced."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from streaming.tables import LakeUnreadableError, append_once
from tests.alerts.build import DRIFT, INTERVAL, SILENCE, UNEVEN, Watched, Writer, drifted, time_of, until_idle

pytestmark = pytest.mark.turn(3)

_DAY_S = 86_400

UNJUDGED = """\
  - name: unjudged
    view: rounds_current
    when: unjudged_s > 300
    value: unjudged_s
    severity: critical
    message: "not judged for {value} s: {unjudged_reason}"
"""

BROKEN_RECORDS = """\
  - name: undecodable
    view: quarantine
    per: [topic]
    keep: 60s
    when: kind = 'undecodable'
    severity: warning
    message: "{topic} {partition} {record_offset}: {reason}"
"""


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path, SILENCE, UNJUDGED, DRIFT, UNEVEN)


def _uneven(group: str, imbalance: float) -> list[dict[str, Any]]:
    return [{"group_id": group, "imbalance": imbalance}]


@pytest.mark.parametrize("jump_s", [_DAY_S, -_DAY_S, 3 * 365 * _DAY_S])
def test_one_round_with_a_wrong_time_mutes_nothing_after_it(watched: Watched, jump_s: int) -> None:
    assert watched.round(0) == []
    assert watched.round(1, jump_ms=jump_s * 1000) == []
    assert watched.round(2, drift=drifted("a")) == [("drift", "a", "firing")]
    assert watched.round(3, group_health=_uneven("b", 3.0)) == [("uneven", "b", "pending")]
    assert watched.round(4) == []
    assert watched.round(5) == [("uneven", "b", "firing")], "`for` counts rounds on"
    assert watched.after(29) == []
    assert watched.after(2) == [("silence", None, "firing")]


def test_a_restart_after_a_wrong_time_goes_on_where_it_was(watched: Watched) -> None:
    watched.round(0, drift=drifted("a"))
    watched.round(1, jump_ms=_DAY_S * 1000, group_health=_uneven("b", 3.0))
    watched.start()
    assert watched.after(0) == []
    assert watched.round(2) == []
    assert watched.round(3) == [("uneven", "b", "firing")]


def test_a_decision_is_written_although_retention_deletes_old_alerts_meanwhile(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.round(0, drift=drifted("a"), group_health=_uneven("b", 3.0))
    alerts = f"{watched.writer.root}/alerts"

    def write(table: DeltaTable, *given: Any, **named: Any) -> None:
        if table.table_uri.rstrip("/").endswith("/alerts"):
            monkeypatch.undo()
            DeltaTable(alerts).delete("group_id = 'b'")
        write_deltalake(table, *given, **named)

    monkeypatch.setattr("streaming.tables.lake.write_deltalake", write)
    assert watched.round(1, drift=drifted("c")) == [("drift", "c", "firing")]
    groups = DeltaTable(alerts).to_pyarrow_table()["group_id"].to_pylist()
    assert sorted(groups) == ["a", "c"]


@pytest.mark.parametrize("ahead_s", [pytest.param(45, marks=pytest.mark.nightly), 3_600, -3_600])
def test_a_machine_whose_clock_is_off_cries_no_silence_and_misses_none(watched: Watched, ahead_s: int) -> None:
    watched.wall_ms += ahead_s * 1000
    for number in range(12):
        assert watched.round(number) == []
    assert watched.after(29) == []
    assert watched.after(2) == [("silence", None, "firing")]


def test_a_broker_whose_clock_is_an_hour_behind_for_good_is_told_of_all_the_same(tmp_path: Path) -> None:
    watched = Watched(tmp_path, DRIFT)
    watched.wall_ms += 3_600_000
    with watched.alerter as alerter:
        for number in range(9):
            watched.round(number)
        watched.round(9, drift=drifted("a"))
        until_idle(alerter)
    assert watched.sent == ["a drifted"]


def test_silence_is_judged_though_another_table_cannot_be_read(watched: Watched) -> None:
    watched.round(0, group_health=_uneven("a", 0.0))
    watched.writer.write(1, {"group_health": _uneven("a", 0.0)})
    _break_newest(Path(watched.writer.root, "group_health"))
    assert watched.after(1) == []
    # While rounds come there is no silence, whatever else is broken.
    for number in range(2, 6):
        assert watched.round(number) == []
    assert watched.after(31) == [("silence", None, "firing")]


@pytest.mark.nightly
def test_tables_that_cannot_be_judged_are_an_alert_and_then_an_end(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streaming.alerts")
    watched.round(0, group_health=_uneven("a", 0.0))
    watched.writer.write(1, {"group_health": _uneven("a", 0.0)})
    _break_newest(Path(watched.writer.root, "group_health"))
    told = [watched.rounds(number, 2) for number in range(2, 40, 2)]
    assert [found for found in told if found] == [[("unjudged", None, "firing")]]
    assert 300 < told.index([("unjudged", None, "firing")]) * 2 * INTERVAL / 1000 <= 320
    (row,) = [r for r in watched.writer.transitions() if r["rule"] == "unjudged"]
    assert "Parquet magic bytes not found" in row["message"]
    stop = threading.Event()
    watched.steady_s += 300
    assert watched.alerter.run(stop) is False, "its supervisor starts it again"
    assert "everything is opened again" in caplog.text


@pytest.mark.nightly
def test_a_table_that_heals_is_judged_on_and_the_alert_resolves(watched: Watched) -> None:
    watched.round(0, group_health=_uneven("a", 0.0))
    watched.writer.write(1, {"group_health": _uneven("a", 3.0)})
    broken = _break_newest(Path(watched.writer.root, "group_health"))
    told = [found for number in range(2, 38, 3) if (found := watched.rounds(number, 3))]
    assert told == [[("unjudged", None, "firing")]]
    broken.with_suffix(".whole").rename(broken)
    assert watched.round(40) == [("uneven", "a", "pending"), ("uneven", "a", "firing")]
    assert watched.after(1) == [("unjudged", None, "resolved")]


def test_a_lake_that_was_replaced_under_the_alerter_ends_it_or_is_read(watched: Watched, tmp_path: Path) -> None:
    watched.round(0, drift=drifted("a"))
    shutil.rmtree(watched.writer.root)
    watched.writer = Writer(tmp_path)
    for number in range(1, 5):
        watched.round(number)
    found = watched.round(5, drift=drifted("b"))
    stop = threading.Event()
    if not found:
        watched.steady_s += 601
        watched.after(0)
        assert watched.alerter.run(stop) is False
        watched.start()
        found = watched.after(0)
    assert ("drift", "b", "firing") in found


def test_what_cannot_be_written_is_delivered_once_all_the_same_and_written_later(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    with watched.alerter as alerter:
        watched.round(0)
        with monkeypatch.context() as disk:
            disk.setattr("streaming.alerts.decisions.Decisions.commit", full)
            assert watched.round(1, drift=drifted("a")) == [("drift", "a", "firing")]
            for number in range(2, 5):
                assert watched.round(number) == []
            until_idle(alerter)
        assert watched.sent == ["a drifted"]
        assert watched.writer.transitions() == []
        assert watched.round(9) == []
        (row,) = watched.writer.transitions()
        assert (row["round"], row["round_time"].timestamp() * 1000) == (1, time_of(1))
        watched.round(10, drift=[{"group_id": "a", "verdict": "identical", "decision": 2}])
        until_idle(alerter)
    assert [line.split(":")[0] for line in watched.sent] == ["a drifted", "No longer true"]


def test_what_was_committed_behind_our_back_is_delivered_though_the_next_look_fails(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made_and_failed(*given: Any, **named: Any) -> None:
        append_once(*given, **named)
        raise OSError("the connection broke before the answer")

    def lost(_newest: object) -> None:
        raise LakeUnreadableError("a file is gone")

    with watched.alerter as alerter:
        watched.round(0)
        with monkeypatch.context() as store:
            store.setattr("streaming.alerts.decisions.append_once", made_and_failed)
            assert watched.round(1, drift=drifted("a")) == [("drift", "a", "firing")]
        with monkeypatch.context() as table:
            table.setattr(alerter._judge._feed, "poll", lost)
            watched.after(1)
        watched.after(1)
        until_idle(alerter)
    assert watched.sent == ["a drifted"]
    assert [row["state"] for row in watched.writer.transitions()] == ["firing"]


def _record(offset: int, **more: Any) -> dict[str, Any]:
    return {
        "topic": "t",
        "partition": 3,
        "record_offset": offset,
        "last_record_offset": offset,
        "kind": "undecodable",
        "reason": "bad",
        **more,
    }


@pytest.fixture
def events(tmp_path: Path) -> Watched:
    return Watched(tmp_path, BROKEN_RECORDS)


def test_an_event_fires_once_and_resolves_when_none_has_come_for_a_while(events: Watched) -> None:
    events.round(0)
    assert events.round(1, quarantine=[_record(7), _record(8)]) == [("undecodable", None, "firing")]
    assert events.round(2, quarantine=[_record(9), _record(10, kind="unknown")]) == []
    (row,) = events.writer.transitions()
    assert (row["topic"], row["entity"], row["message"]) == ("t", '{"topic":"t"}', "t 3 8: bad")
    assert [events.round(number) for number in range(3, 8)] == [[]] * 5
    assert events.round(8) == [("undecodable", None, "resolved")], "60 s after round 2"


def test_an_event_is_judged_once_however_often_the_alerter_starts(events: Watched) -> None:
    events.round(0)
    assert events.round(1, quarantine=[_record(7)]) == [("undecodable", None, "firing")]
    events.rounds(2, 18)
    assert [row["state"] for row in events.writer.transitions()] == ["firing", "resolved"]
    events.start()
    events.rounds(20, 10)
    events.writer.write(30, {"quarantine": [_record(8)]})
    events.start()
    events.after(1)
    assert [row["state"] for row in events.writer.transitions()] == ["firing", "resolved", "firing"]


def test_events_from_before_the_first_start_are_no_news(tmp_path: Path) -> None:
    watched = Watched(tmp_path, BROKEN_RECORDS)
    watched.writer.write(0, {"quarantine": [_record(7)]})
    # By the writers' clock, which is real: the first start is hours later.
    watched.wall_ms = (time.time() + 7_200) * 1000
    assert watched.after(0) == []
    assert watched.round(1, quarantine=[_record(8)]) == [("undecodable", None, "firing")]


def _break_newest(table: Path) -> Path:
    """Truncate the newest data file of a table; a complete copy is kept in the same folder."""
    newest = max(table.rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    shutil.copy(newest, newest.with_suffix(".whole"))
    newest.write_bytes(newest.read_bytes()[:20])
    return newest
