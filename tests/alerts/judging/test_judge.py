"""From a lake to transitions, in a time that the test moves; `test_against_views.py` cuts the lake at random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.alerts.build import BEHIND, DRIFT, HELD, SILENCE, START, UNEVEN, Watched, Writer, time_of, until_idle

pytestmark = pytest.mark.turn(6)

_Rows = dict[str, list[dict[str, Any]]]


def _even(group: str, imbalance: float | None, **more: Any) -> dict[str, Any]:
    return {"group_id": group, "imbalance": imbalance, **more}


def _lag(partition: int, lag: int | None, **more: Any) -> dict[str, Any]:
    return {"group_id": "g", "topic": "t", "partition": partition, "lag": lag, "client_id": "app", **more}


def _verdict(group: str, verdict: str, **more: Any) -> dict[str, Any]:
    return {"group_id": group, "verdict": verdict, "decision": 1, **more}


def _hold(held: bool, **more: Any) -> dict[str, Any]:
    return {"log_partition": 7, "held": held, "held_since": START, "groups": 500 if held else 0, **more}


# `h` is deleted in round 6, and another group with this name begins in round 7.
_STORY: list[_Rows] = [
    {"group_health": [_even("g", 0.0), _even("h", 2.0, incarnation=1)], "lag": [_lag(0, 5), _lag(1, 5)]},
    {"group_health": [_even("g", 2.0)], "drift": [_verdict("g", "drifted")]},
    {"lag": [_lag(1, 500)], "drift": [_verdict("g", "drifted", decision=2)], "open_transactions": [_hold(True)]},
    {
        "group_health": [_even("h", None, incarnation=1)],
        "lag": [_lag(0, 700, subscribed=False)],
        "open_transactions": [_hold(True, transactional_id="x")],
    },
    {"group_health": [_even("g", 0.5)], "lag": [_lag(1, None)]},
    {"drift": [_verdict("g", "identical", decision=3), _verdict("h", "drifted", incarnation=1)]},
    {
        "group_health": [_even("h", None, incarnation=1, ended=True)],
        "lag": [_lag(1, 90)],
        "open_transactions": [_hold(False, transactional_id="x")],
    },
    {"group_health": [_even("h", 3.0, incarnation=7)], "lag": [_lag(0, 800), _lag(1, 900, ended=True)]},
    {},
    {"group_health": [_even("h", 3.5, incarnation=7)]},
]

_EXPECTED = [
    ("uneven", "h", None, 0, "pending"),
    ("drift", "g", None, 1, "firing"),
    ("uneven", "g", None, 1, "pending"),
    ("behind", "g", 1, 2, "firing"),
    ("held", None, None, 2, "pending"),
    ("uneven", "h", None, 2, "firing"),
    ("uneven", "g", None, 3, "firing"),
    ("held", None, None, 4, "firing"),
    ("uneven", "g", None, 4, "resolved"),
    ("drift", "g", None, 5, "resolved"),
    ("drift", "h", None, 5, "firing"),
    ("behind", "g", 1, 6, "resolved"),
    ("drift", "h", None, 6, "gone"),
    ("held", None, None, 6, "resolved"),
    ("uneven", "h", None, 6, "gone"),
    ("behind", "g", 0, 7, "firing"),
    ("uneven", "h", None, 7, "pending"),
    ("uneven", "h", None, 9, "firing"),
]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path, UNEVEN, DRIFT, BEHIND, HELD)


def _told(writer: Writer) -> list[tuple[str, str | None, int | None, int, str]]:
    rows = writer.transitions()
    return sorted(
        ((r["rule"], r["group_id"], r["partition"], r["round"], r["state"]) for r in rows),
        key=lambda row: (row[3], row[0], row[1] or "", row[2] or -1, row[4]),
    )


def test_alerts_of_groups_partitions_and_transactions_begin_and_end_with_their_rows_across_a_restart(
    watched: Watched,
) -> None:
    for first, end in ((0, 5), (5, len(_STORY))):
        watched.writer.write(first, *_STORY[first:end])
        watched.start()
        watched.at(10 * end - 9)
        watched.after(0)
    assert _told(watched.writer) == _EXPECTED


def test_rows_of_a_round_that_is_not_closed_yet_wait_for_it(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.round(0, drift=[_verdict("g", "identical")])
    with monkeypatch.context() as unclosed:
        append = watched.writer._lake.append
        unclosed.setattr(
            watched.writer._lake, "append", lambda table, *rest: 0 if table == "rounds" else append(table, *rest)
        )
        assert watched.round(1, drift=[_verdict("g", "drifted")]) == []
        watched.start()
        assert watched.after(1) == []
    assert watched.round(1) == [("drift", "g", "firing")]


def test_another_cluster_of_the_same_lake_does_not_count(watched: Watched, tmp_path: Path) -> None:
    other = Writer(tmp_path, "other")
    watched.writer._batch = 100
    other.write(0, {"drift": [_verdict("g", "drifted")]})
    assert watched.round(0, drift=[_verdict("h", "drifted")]) == [("drift", "h", "firing")]


def test_hostile_names_are_text_in_the_table_and_in_what_is_sent(watched: Watched) -> None:
    names = ["it's", 'say "hi"', "two\nlines", "{value}", "<b>&amp;", "x" * 32_000, "; DROP TABLE alerts; --", "\u202e"]
    fired = watched.round(0, drift=[_verdict(name, "drifted") for name in names])
    assert sorted(group or "" for _, group, _ in fired) == sorted(names)
    watched.start()
    ended = watched.round(1, drift=[_verdict(name, "identical") for name in names])
    assert sorted(group or "" for _, group, _ in ended) == sorted(names)
    told = watched.writer.transitions()
    assert all(len(row["message"]) < 250 and row["message"].isprintable() for row in told)


@pytest.mark.nightly
def test_where_evaluation_stands_is_kept_without_a_commit_per_round(watched: Watched) -> None:
    for number in range(0, 150, 10):
        watched.writer.write(number, {"group_health": [_even("g", 0.0)]})
        watched.at(10 * number)
    table = DeltaTable(f"{watched.writer.root}/alerts")
    assert table.version() == 2, "15 rounds in 24 minutes: a place is kept every ten minutes"
    assert (table.transaction_version("alerts/c/round") or 0) >= 120
    assert watched.writer.transitions() == []


@pytest.mark.nightly
def test_two_alerters_cannot_both_decide(watched: Watched) -> None:
    watched.round(0)
    first, second = watched.alerter, watched.start()
    second.poll()
    watched.writer.write(1, {"drift": [_verdict("g", "drifted")]})
    assert len(first.poll()) == 1
    assert second.poll() == second.poll() == []
    assert [row["state"] for row in watched.writer.transitions()] == ["firing"]


@pytest.fixture
def silent(tmp_path: Path) -> Watched:
    """An alerter that waits a minute after its start before it reports silence."""
    return Watched(tmp_path, SILENCE, DRIFT, UNEVEN, start_grace_ms=60_000)


_FIRES, _ENDS = [("silence", None, "firing")], [("silence", None, "resolved")]


def test_silence_fires_after_three_intervals_and_resolves_with_the_next_round(silent: Watched) -> None:
    for number in range(10):
        silent.writer.write(number, {})
        assert silent.at(number * 10 + 1) == []
    assert silent.at(121) == [], "the last round was read at 91 s"
    assert silent.at(122) == _FIRES
    assert silent.at(500) == []
    silent.writer.write(60, {})
    assert silent.at(601) == _ENDS
    told = [(r["state"], r["round"], r["since"].timestamp() * 1000, r["late"]) for r in silent.writer.transitions()]
    assert told == [("firing", 9, time_of(9), False), ("resolved", 60, time_of(9), False)]


def test_while_there_is_silence_all_other_alerts_stay_as_they_are_also_across_a_restart(silent: Watched) -> None:
    for number in range(9):
        silent.writer.write(number, {})
        silent.at(number * 10)
    silent.writer.write(9, {"drift": [_verdict("g", "drifted")], "group_health": [_even("g", 3.0)]})
    assert silent.at(91) == [("drift", "g", "firing"), ("uneven", "g", "pending")]
    assert silent.at(200) == _FIRES
    assert [silent.at(second) for second in range(300, 3_600, 300)] == [[]] * 11
    silent.start()
    assert silent.at(4_000) == []
    silent.writer.write(401, {})
    assert silent.at(4_011) == _ENDS
    silent.writer.write(402, {})
    assert silent.at(4_021) == [("uneven", "g", "firing")], "only rounds count towards for"


def test_an_alerter_that_has_just_started_does_not_cry_silence_over_yesterday(silent: Watched) -> None:
    silent.writer.write(0, {})
    silent.at(1)
    silent.wall_ms += 86_400_000
    silent.start()
    assert silent.at(90) == []
    assert silent.at(92) == _FIRES


def test_a_silence_from_the_very_beginning_is_told_too(silent: Watched) -> None:
    assert silent.at(0) == []
    assert silent.at(79) == [], "60 s of grace, and 20 s of silence"
    assert silent.at(81) == _FIRES
    silent.writer.write(9, {})
    assert silent.at(91) == _ENDS


def test_what_is_found_late_is_marked_and_sent_only_if_it_is_still_true(watched: Watched) -> None:
    with watched.alerter as alerter:
        watched.round(0, drift=[_verdict("g", "drifted")])
        until_idle(alerter)
    assert watched.target.titles == ["[firing] drift: g (critical)"]
    # An hour without an alerter: g heals, h drifts and heals, i drifts and stays so.
    watched.writer.write(1, {"drift": [_verdict("g", "identical"), _verdict("h", "drifted")]})
    watched.writer.write(2, {"drift": [_verdict("h", "identical"), _verdict("i", "drifted")]})
    watched.writer.write(360, {})
    watched.target.messages.clear()
    with watched.start() as alerter:
        watched.at(3_600)
        until_idle(alerter)
    assert sorted(watched.target.titles) == ["[firing] drift: i (critical)", "[resolved] drift: g (critical)"]
    assert [(r["group_id"], r["state"], r["late"]) for r in watched.writer.transitions()] == [
        ("g", "firing", False),
        ("g", "resolved", True),
        ("h", "firing", True),
        ("h", "resolved", True),
        ("i", "firing", True),
    ]


def test_while_the_newest_round_is_old_nobody_knows_what_is_still_true(watched: Watched) -> None:
    watched.at(4_000)
    with watched.alerter as alerter:
        watched.writer.write(0, {"drift": [_verdict("g", "drifted"), _verdict("h", "drifted")]})
        watched.after(0)
        watched.after(0)
        assert (watched.sent, alerter.idle) == ([], False), "the job is catching up: it may have healed since"
        watched.writer.write(200, {"drift": [_verdict("g", "identical")]})
        watched.after(0)
        watched.writer.write(400, {})
        watched.after(0)
        until_idle(alerter)
    assert watched.target.titles == ["[firing] drift: h (critical)"]


def test_files_that_are_gone_before_they_were_read_cost_nothing_but_a_new_beginning(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    watched.round(0, drift=[_verdict("g", "drifted")])
    watched.writer.write(1, {"drift": [_verdict("h", "drifted")]})
    table = DeltaTable(f"{watched.writer.root}/drift")
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    watched.after(10)
    watched.after(0)
    assert [(r["group_id"], r["state"]) for r in watched.writer.transitions()] == [("g", "firing"), ("h", "firing")]
    said = [record.getMessage() for record in caplog.records if "evaluated" in record.getMessage()]
    assert len(said) == 2
    assert said[0].startswith("the tables cannot be evaluated now, retrying in a moment: LakeUnreadableError")
