"""Restarts with other rules, and the newest round from `rounds` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from streaming.alerts.judging.itself import NewestRound
from streaming.tables import LakeUnreadableError
from tests.alerts.build import BEHIND, DRIFT, INTERVAL, SILENCE, Watched, Writer, rules

_Rows = dict[str, Any]

_LATE = """\
  - name: late
    view: {view}
    when: {when}
    severity: critical
    message: "{{group_id}} is late"
"""

_GROUPS_LATE = _LATE.format(view="group_health_current", when="lag_total > 100")
_PARTITIONS_LATE = _LATE.format(view="lag_current", when="lag > 100")
_TOPICS_LATE = _LATE.format(view="drift_current", when="verdict = 'drifted'")


def _verdict(verdict: str, decision: int, **more: Any) -> dict[str, Any]:
    return {"group_id": "g", "incarnation": 1, "verdict": verdict, "decision": decision, **more}


def _lag(lag: int, **more: Any) -> dict[str, Any]:
    return {"group_id": "g", "topic": "t", "partition": 0, "lag": lag, **more}


def _health(**more: Any) -> dict[str, Any]:
    return {"group_id": "g", "incarnation": 1, **more}


_DRIFTED: _Rows = {"group_health": [_health()], "drift": [_verdict("drifted", 1)]}
_NO_MORE: _Rows = {"drift": [_verdict("identical", 2)]}
_MUCH_BEHIND: _Rows = {"lag": [_lag(500)]}
_CAUGHT_UP: _Rows = {"lag": [_lag(0)]}


def _stopped(folder: Path, rule: str, **rows: Any) -> Watched:
    """An alerter that judged round 1 and was stopped in order, so that its place is written."""
    watched = Watched(folder, rule)
    watched.round(1, **rows)
    with watched.alerter:
        pass
    return watched


def _restart(watched: Watched, folder: Path, *texts: str) -> None:
    watched.made = rules(folder, *texts)
    watched.start()


def _active(watched: Watched) -> list[tuple[str, str]]:
    return list(watched.alerter._judge._state.active)


@pytest.mark.nightly
@pytest.mark.parametrize("looks_before", [0, 1])
@pytest.mark.parametrize(("rule", "was", "is_now"), [(DRIFT, _DRIFTED, _NO_MORE), (BEHIND, _MUCH_BEHIND, _CAUGHT_UP)])
def test_a_new_rule_says_nothing_of_what_the_next_round_ends(
    tmp_path: Path, rule: str, was: _Rows, is_now: _Rows, looks_before: int
) -> None:
    watched = _stopped(tmp_path, SILENCE, **was)
    _restart(watched, tmp_path, rule)
    for _ in range(looks_before):
        assert watched.after(1) == []
    assert watched.round(2, **is_now) + watched.rounds(3, 67) == []
    assert _active(watched) == []


@pytest.mark.parametrize("looks_before", [0, 1])
def test_a_new_rule_says_what_was_true_before_it_and_still_is(tmp_path: Path, looks_before: int) -> None:
    watched = _stopped(tmp_path, SILENCE, **_DRIFTED)
    _restart(watched, tmp_path, DRIFT)
    for _ in range(looks_before):
        assert watched.after(1) == []
    assert watched.round(2) == [("drift", "g", "firing")]
    assert watched.round(3, **_NO_MORE) == [("drift", "g", "resolved")]


@pytest.mark.parametrize(
    ("before", "after"),
    [(_GROUPS_LATE, _PARTITIONS_LATE), (_PARTITIONS_LATE, _GROUPS_LATE), (_PARTITIONS_LATE, _TOPICS_LATE)],
)
def test_alerts_of_a_rule_that_is_given_a_view_with_another_key_are_gone_at_the_first_look(
    tmp_path: Path, before: str, after: str
) -> None:
    watched = Watched(tmp_path, before)
    fired = watched.round(1, group_health=[_health(lag_total=500)], **_MUCH_BEHIND)
    assert fired == [("late", "g", "firing")]
    _restart(watched, tmp_path, after)
    assert watched.after(1) == [("late", "g", "gone")]
    assert _active(watched) == []


def test_an_alert_of_a_rule_that_is_about_silence_now_says_nothing_of_silence(tmp_path: Path) -> None:
    watched = Watched(tmp_path, _GROUPS_LATE.replace("name: late", "name: silence"))
    watched.round(1, group_health=[_health(lag_total=500)])
    _restart(watched, tmp_path, SILENCE)
    assert watched.after(1) == [("silence", "g", "gone")]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        (DRIFT, _DRIFTED),
        (DRIFT, {"group_health": [_health()], "drift": [_verdict("drifted", 1, topic="t")]}),
        (BEHIND, _MUCH_BEHIND),
        (BEHIND, {"lag": [_lag(500, broker="broker-a")]}),
        (_GROUPS_LATE, {"group_health": [_health(lag_total=500)]}),
    ],
)
def test_alerts_of_a_rule_that_stays_go_on_whether_or_not_their_key_has_a_topic_or_a_broker(
    tmp_path: Path, rule: str, rows: _Rows
) -> None:
    watched = Watched(tmp_path, rule)
    ((name, group, state),) = watched.round(1, **rows)
    assert (group, state) == ("g", "firing")
    _restart(watched, tmp_path, rule)
    assert watched.after(1) + watched.round(2) == []
    assert [known for known, _ in _active(watched)] == [name]


def test_a_group_that_drifted_goes_on_firing_where_a_view_of_groups_takes_the_place_of_the_verdicts(
    tmp_path: Path,
) -> None:
    watched = Watched(tmp_path, _TOPICS_LATE)
    watched.round(1, **_DRIFTED)
    _restart(watched, tmp_path, _GROUPS_LATE)
    assert watched.round(2, group_health=[_health(lag_total=500)]) == []
    assert watched.round(3, group_health=[_health(lag_total=0)]) == [("late", "g", "resolved")]


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


# A lake whose files nobody joins is an alert; one that is maintained is none.


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
