"""From a lake to transitions: the same, however the lake was cut into batches and whenever the alerter polled."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from streaming.alerts import Alerter
from streaming.alerts.rules.rules import Rule
from streaming.config import AlertSettings, JobSettings, Settings
from tests.alerts.build import BEHIND, DRIFT, HELD, SILENCE, START, UNEVEN, Notebook, Writer, rules, time_of

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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rule, ...]:
    return rules(tmp_path_factory.mktemp("rules"), UNEVEN, DRIFT, BEHIND, HELD)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with empty tables to copy, because creating one takes a while."""
    folder = tmp_path_factory.mktemp("empty")
    Writer(folder)
    return folder


class _Clock:
    """A clock that shows a second after a round; the steady time moves with it."""

    def __init__(self) -> None:
        self.ms = float(START)

    def __call__(self) -> float:
        return self.ms / 1000


def _settings(root: str, **alerts: Any) -> Settings:
    return Settings(
        cluster="c",
        lake=root,
        alerts=AlertSettings(**alerts),
        job=JobSettings(heartbeat_ms=1_000_000),
    )


@pytest.fixture
def writer(empty: Path, tmp_path: Path) -> Writer:
    shutil.copytree(empty, tmp_path, dirs_exist_ok=True)
    return Writer(tmp_path)


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def _alerter(
    writer: Writer, made: Iterable[Rule], clock: Callable[[], float], target: Notebook | None = None, **alerts: Any
) -> Alerter:
    targets = {} if target is None else {"ops": target}
    return Alerter(_settings(writer.root, **alerts), tuple(made), targets, clock, clock)


def _told(writer: Writer) -> list[tuple[str, str | None, int | None, int, str]]:
    rows = writer.transitions()
    return sorted(
        ((r["rule"], r["group_id"], r["partition"], r["round"], r["state"]) for r in rows),
        key=lambda row: (row[3], row[0], row[1] or "", row[2] or -1, row[4]),
    )


def _cuts(name: str) -> list[list[int]]:
    """Rounds of each batch."""
    all_of = list(range(len(_STORY)))
    return {
        "each alone": [[n] for n in all_of],
        "all at once": [all_of],
        "two halves": [all_of[:5], all_of[5:]],
        "uneven gulps": [all_of[:1], all_of[1:4], all_of[4:6], all_of[6:7], all_of[7:]],
    }[name]


@pytest.mark.parametrize(
    ("cut", "restart"),
    [
        pytest.param("each alone", False, marks=pytest.mark.nightly),
        pytest.param("all at once", False, marks=pytest.mark.nightly),
        pytest.param("uneven gulps", False, marks=pytest.mark.nightly),
        ("two halves", True),
    ],
    ids=lambda given: {True: "a new alerter for each look", False: "one alerter"}.get(given, given),
)
def test_the_transitions_are_the_same_however_the_rounds_come(
    made: tuple[Rule, ...], writer: Writer, clock: _Clock, cut: str, restart: bool
) -> None:
    alerter = _alerter(writer, made, clock)
    for batch in _cuts(cut):
        writer.write(batch[0], *(_STORY[n] for n in batch))
        clock.ms = time_of(batch[-1]) + 1_000
        if restart:
            alerter = _alerter(writer, made, clock)
        alerter.poll()
        alerter.poll()
    assert _told(writer) == _EXPECTED


def test_rows_of_a_round_that_is_not_closed_yet_wait_for_it(
    made: tuple[Rule, ...], writer: Writer, clock: _Clock
) -> None:
    alerter = _alerter(writer, made, clock)
    writer.write(0, {"drift": [_verdict("g", "identical")]})
    alerter.poll()
    row = {"drift": [_verdict("g", "drifted")]}
    rounds = writer._lake.append
    writer._lake.append = lambda table, *rest: 0 if table == "rounds" else rounds(table, *rest)  # type: ignore[method-assign]
    writer.write(1, row)
    assert alerter.poll() == []
    assert _alerter(writer, made, clock).poll() == []
    writer._lake.append = rounds  # type: ignore[method-assign]
    writer.write(1, {})
    assert [(d.rule, d.state) for d in alerter.poll()] == [("drift", "firing")]


def test_another_cluster_of_the_same_lake_does_not_count(
    made: tuple[Rule, ...], writer: Writer, clock: _Clock, tmp_path: Path
) -> None:
    other = Writer(tmp_path, "other")
    writer._batch = 100
    other.write(0, {"drift": [_verdict("g", "drifted")]})
    writer.write(0, {"drift": [_verdict("h", "drifted")]})
    assert [d.group_id for d in _alerter(writer, made, clock).poll()] == ["h"]


def test_hostile_names_are_text_in_the_table_and_in_what_is_sent(
    made: tuple[Rule, ...], writer: Writer, clock: _Clock
) -> None:
    names = ["it's", 'say "hi"', "two\nlines", "{value}", "<b>&amp;", "x" * 32_000, "; DROP TABLE alerts; --", "\u202e"]
    writer.write(0, {"drift": [_verdict(name, "drifted") for name in names]})
    assert sorted(d.group_id or "" for d in _alerter(writer, made, clock).poll()) == sorted(names)
    writer.write(1, {"drift": [_verdict(name, "identical") for name in names]})
    clock.ms = time_of(1)
    ended = _alerter(writer, made, clock).poll()
    assert sorted(d.group_id or "" for d in ended) == sorted(names)
    assert all(len(d.message) < 250 and d.message.isprintable() for d in ended)


@pytest.mark.nightly
def test_where_evaluation_stands_is_kept_without_a_commit_per_round(
    made: tuple[Rule, ...], writer: Writer, clock: _Clock
) -> None:
    alerter = _alerter(writer, made, clock)
    for number in range(0, 150, 10):
        writer.write(number, {"group_health": [_even("g", 0.0)]})
        clock.ms = time_of(number)
        alerter.poll()
    table = DeltaTable(f"{writer.root}/alerts")
    assert table.version() == 2, "15 rounds in 24 minutes: a place is kept every ten minutes"
    assert (table.transaction_version("alerts/c/round") or 0) >= 120
    assert writer.transitions() == []


@pytest.mark.nightly
def test_two_alerters_cannot_both_decide(made: tuple[Rule, ...], writer: Writer, clock: _Clock) -> None:
    writer.write(0, {})
    first, second = _alerter(writer, made, clock), _alerter(writer, made, clock)
    first.poll()
    second.poll()
    writer.write(1, {"drift": [_verdict("g", "drifted")]})
    assert len(first.poll()) == 1
    assert second.poll() == second.poll() == []
    assert [row["state"] for row in writer.transitions()] == ["firing"]


class _Silent:
    """A lake with some rounds, and an alerter that has waited long enough to report silence."""

    def __init__(self, folder: Path, writer: Writer, *others: str) -> None:
        self.writer, self.clock = writer, _Clock()
        self.made = rules(folder, SILENCE, *others)
        self.alerter = self.start()

    def start(self) -> Alerter:
        return _alerter(self.writer, self.made, self.clock, start_grace_ms=60_000)

    def at(self, seconds: float) -> list[tuple[str, str]]:
        self.clock.ms = START + seconds * 1000
        return [(d.rule, d.state) for d in self.alerter.poll()]


def test_silence_fires_after_three_intervals_and_resolves_with_the_next_round(writer: Writer, tmp_path: Path) -> None:
    silent = _Silent(tmp_path, writer)
    for number in range(10):
        silent.writer.write(number, {})
        assert silent.at(number * 10 + 1) == []
    assert silent.at(121) == [], "the last round was read at 91 s"
    assert silent.at(122) == [("silence", "firing")]
    assert silent.at(500) == []
    silent.writer.write(60, {})
    assert silent.at(601) == [("silence", "resolved")]
    told = [(r["state"], r["round"], r["since"].timestamp() * 1000, r["late"]) for r in silent.writer.transitions()]
    assert told == [("firing", 9, time_of(9), False), ("resolved", 60, time_of(9), False)]


def test_while_there_is_silence_all_other_alerts_stay_as_they_are(writer: Writer, tmp_path: Path) -> None:
    silent = _Silent(tmp_path, writer, DRIFT, UNEVEN)
    for number in range(9):
        silent.writer.write(number, {})
        silent.at(number * 10)
    silent.writer.write(9, {"drift": [_verdict("g", "drifted")], "group_health": [_even("g", 3.0)]})
    assert silent.at(91) == [("drift", "firing"), ("uneven", "pending")]
    assert silent.at(200) == [("silence", "firing")]
    assert [silent.at(second) for second in range(300, 3_600, 300)] == [[]] * 11
    silent.alerter = silent.start()
    assert silent.at(4_000) == []
    silent.writer.write(401, {})
    assert silent.at(4_011) == [("silence", "resolved")]
    silent.writer.write(402, {})
    assert silent.at(4_021) == [("uneven", "firing")], "only rounds count towards for"


def test_an_alerter_that_has_just_started_does_not_cry_silence_over_yesterday(writer: Writer, tmp_path: Path) -> None:
    silent = _Silent(tmp_path, writer)
    silent.writer.write(0, {})
    silent.at(1)
    silent.clock.ms = START + 86_400_000
    silent.alerter = silent.start()
    assert silent.at(86_400 + 89) == []
    assert silent.at(86_400 + 91) == [("silence", "firing")]


def test_a_silence_from_the_very_beginning_is_told_too(writer: Writer, tmp_path: Path) -> None:
    silent = _Silent(tmp_path, writer)
    assert silent.at(0) == []
    assert silent.at(79) == [], "60 s of grace, and 20 s of silence"
    assert silent.at(81) == [("silence", "firing")]
    silent.writer.write(9, {})
    assert silent.at(91) == [("silence", "resolved")]


def test_a_firing_silence_outlives_the_alerter_and_is_not_told_twice(writer: Writer, tmp_path: Path) -> None:
    silent = _Silent(tmp_path, writer)
    silent.writer.write(0, {})
    assert silent.at(1) == []
    assert silent.at(100) == [("silence", "firing")]
    silent.alerter = silent.start()
    assert silent.at(101) == []
    assert silent.at(400) == []
    silent.writer.write(41, {})
    assert silent.at(411) == [("silence", "resolved")]


def test_what_is_found_late_is_marked_and_sent_only_if_it_is_still_true(
    made: tuple[Rule, ...], writer: Writer, clock: _Clock
) -> None:
    target = Notebook()
    writer.write(0, {"drift": [_verdict("g", "drifted")]})
    with _alerter(writer, made, clock, target) as alerter:
        alerter.poll()
        _drain(alerter)
    assert target.titles() == ["[firing] drift: g (critical)"]
    # An hour without an alerter: g heals, h drifts and heals, i drifts and stays so.
    writer.write(1, {"drift": [_verdict("g", "identical"), _verdict("h", "drifted")]})
    writer.write(2, {"drift": [_verdict("h", "identical"), _verdict("i", "drifted")]})
    writer.write(360, {})
    clock.ms = time_of(360) + 500
    target.messages.clear()
    with _alerter(writer, made, clock, target) as alerter:
        alerter.poll()
        _drain(alerter)
    assert sorted(target.titles()) == ["[firing] drift: i (critical)", "[resolved] drift: g (critical)"]
    assert [(r["group_id"], r["state"], r["late"]) for r in writer.transitions()] == [
        ("g", "firing", False),
        ("g", "resolved", True),
        ("h", "firing", True),
        ("h", "resolved", True),
        ("i", "firing", True),
    ]


def test_while_the_newest_round_is_old_nobody_knows_what_is_still_true(
    made: tuple[Rule, ...], writer: Writer, clock: _Clock
) -> None:
    target = Notebook()
    clock.ms = time_of(400)
    with _alerter(writer, made, clock, target) as alerter:
        writer.write(0, {"drift": [_verdict("g", "drifted"), _verdict("h", "drifted")]})
        alerter.poll()
        alerter.poll()
        assert (target.titles(), alerter.idle) == ([], False), "the job is catching up: it may have healed since"
        writer.write(200, {"drift": [_verdict("g", "identical")]})
        alerter.poll()
        writer.write(400, {})
        alerter.poll()
        _drain(alerter)
    assert target.titles() == ["[firing] drift: h (critical)"]


def _drain(alerter: Alerter) -> None:
    while not alerter.idle:
        alerter.wake.wait(10)
        alerter.wake.clear()
        alerter.poll()


def test_files_that_are_gone_before_they_were_read_cost_nothing_but_a_new_beginning(
    made: tuple[Rule, ...], writer: Writer, clock: _Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    alerter = _alerter(writer, made, clock)
    writer.write(0, {"drift": [_verdict("g", "drifted")]})
    alerter.poll()
    writer.write(1, {"drift": [_verdict("h", "drifted")]})
    table = DeltaTable(f"{writer.root}/drift")
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert alerter.poll() == alerter.poll()[:0]
    assert [(r["group_id"], r["state"]) for r in writer.transitions()] == [("g", "firing"), ("h", "firing")]
    said = [record.getMessage() for record in caplog.records if "evaluated" in record.getMessage()]
    assert len(said) == 2
    assert said[0].startswith("the tables cannot be evaluated now, retrying in a moment: LakeUnreadableError")
