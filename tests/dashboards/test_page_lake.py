"""The age of the page's data: by the rounds' numbers and steady time, independent of clocks."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dashboards.lake import PageLake
from streaming.config import Thresholds
from streaming.tables import table_named
from tests.empty_lake import empty_lake

_COLUMNS = [column.name for column in table_named("rounds").columns]


class Rounds:
    """A lake that gets rounds, a page's view of it, and the page's steady time."""

    def __init__(self, folder: Path) -> None:
        self._lake = empty_lake(folder / "lake")
        self.steady_s = 0.0
        self.page = self.open()
        self._batch = 0

    def open(self) -> PageLake:
        span = timedelta(hours=1)
        self.page = PageLake(self._lake.root, span, span, timedelta(seconds=1), steady=lambda: self.steady_s)
        return self.page

    def write(self, number: int, ago: timedelta = timedelta(0)) -> None:
        ms = round((datetime.now(UTC) - ago).timestamp() * 1000)
        values = {
            "cluster": "c", "round": number, "round_time": ms, "event_date": ms // 86_400_000, "interval_ms": 10_000,
        }  # fmt: skip
        self._lake.append("rounds", [[values.get(name) for name in _COLUMNS]], "job", self._batch)
        self._batch += 1

    def quiet_after(self, seconds: float) -> float:
        self.steady_s += seconds
        self.page.look()
        return self.page.quiet_s("c")


@pytest.fixture
def rounds(tmp_path: Path) -> Rounds:
    return Rounds(tmp_path)


@pytest.mark.parametrize("ahead", [timedelta(days=1), timedelta(days=-1), timedelta(seconds=45)])
def test_a_round_of_a_wrong_time_neither_hides_a_silence_nor_makes_one(rounds: Rounds, ahead: timedelta) -> None:
    rounds.write(1)
    rounds.quiet_after(0)
    rounds.write(2, ago=-ahead)
    assert rounds.quiet_after(10) == 0
    assert rounds.quiet_after(31) == 31
    rounds.write(3)
    assert rounds.quiet_after(10) == 0


def test_a_page_that_is_opened_on_an_old_lake_says_so_at_once(rounds: Rounds) -> None:
    rounds.write(1, ago=timedelta(hours=3))
    assert rounds.quiet_after(0) == pytest.approx(3 * 3600, abs=60)
    rounds.write(2)
    assert rounds.quiet_after(5) == 0


def test_a_page_whose_clock_is_a_minute_ahead_says_nothing_of_the_kind(rounds: Rounds) -> None:
    rounds.write(1, ago=timedelta(seconds=60))
    assert rounds.quiet_after(0) == 0


def test_silence_begins_where_the_rules_file_says(tmp_path: Path) -> None:
    assert Thresholds().silent_after_s(10_000) == 30
    assert Thresholds().silent_after_s(2_000) == 20
    file = tmp_path / "alerts.yaml"
    file.write_text("thresholds: {silent_intervals: 6, imbalance: 0.25, mine: 7}\nrules: []\n", encoding="utf-8")
    own = Thresholds.load(file)
    assert (own.silent_after_s(10_000), own.imbalance, own.by_name()["mine"]) == (60, 0.25, 7)


def test_a_look_that_hangs_is_not_following(tmp_path: Path) -> None:
    empty_lake(tmp_path / "lake")
    now, hung, go_on, looked = [0.0], threading.Event(), threading.Event(), threading.Event()

    def look() -> None:
        if hung.is_set():
            looked.set()
        hung.set()
        go_on.wait(60)

    span, often = timedelta(hours=1), timedelta(milliseconds=1)
    page = PageLake(str(tmp_path / "lake"), span, span, often, steady=lambda: now[0], changed=look)
    page.start()
    try:
        assert hung.wait(60)
        now[0] = 299
        assert page.followed
        now[0] = 301
        assert not page.followed
        go_on.set()
        assert looked.wait(60)
        assert page.followed
    finally:
        go_on.set()
        page.stop(60)


def test_what_cannot_be_done_with_the_rows_is_a_problem_until_it_can(tmp_path: Path) -> None:
    empty_lake(tmp_path / "lake")
    fails, failed, worked = threading.Event(), threading.Event(), threading.Event()
    seen: list[str | None] = []
    fails.set()

    def work() -> None:
        seen.append(page.problem)
        if fails.is_set():
            if len(seen) == 3:
                failed.set()
            message = "what is made of the rows"
            raise ValueError(message)
        worked.set()

    span, often = timedelta(hours=1), timedelta(milliseconds=1)
    page = PageLake(str(tmp_path / "lake"), span, span, often, changed=work, again_s=0.001)
    page.start()
    try:
        assert failed.wait(60)
        # (After each look at the lake, which works: it is no reason to take back what is said of the rest.)
        told = "Reading the lake failed; the server's log has the reason. It will try again."
        assert seen[:3] == [None, told, told]
        fails.clear()
        assert worked.wait(60)
    finally:
        page.stop(60)
    assert page.problem is None
