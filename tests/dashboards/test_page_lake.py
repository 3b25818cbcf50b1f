"""The age of the page's data, by rounds and steady time; and what templates make of single rows."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dashboards.boards.alerts import _OUTCOMES, place_of
from dashboards.boards.itself import status
from dashboards.format import DASH
from dashboards.lake import PageLake
from dashboards.page.address import Address
from dashboards.page.archive import Archive
from dashboards.page.board import View
from dashboards.page.markup import _environment
from dashboards.query import queries, question
from streaming.config import Thresholds
from streaming.tables import LakeReader, table_named
from tests.alerts.build import BEHIND, START, Watched
from tests.empty_lake import empty_lake
from tests.serve.client import text_of

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

    def write(self, number: int, ago: timedelta = timedelta(0), cluster: str = "c") -> None:
        ms = round((datetime.now(UTC) - ago).timestamp() * 1000)
        values = {
            "cluster": cluster, "round": number, "round_time": ms, "event_date": ms // 86_400_000,
            "interval_ms": 10_000,
        }  # fmt: skip
        self._lake.append("rounds", [[values.get(name) for name in _COLUMNS]], "job", self._batch)
        self._batch += 1

    def quiet_after(self, seconds: float) -> float:
        self.steady_s += seconds
        self.page.poll()
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


def test_a_poll_that_hangs_is_not_following(tmp_path: Path) -> None:
    empty_lake(tmp_path / "lake")
    now, hung, go_on, looked = [0.0], threading.Event(), threading.Event(), threading.Event()

    def changed() -> None:
        if hung.is_set():
            looked.set()
        hung.set()
        go_on.wait(60)

    span, often = timedelta(hours=1), timedelta(milliseconds=1)
    page = PageLake(str(tmp_path / "lake"), span, span, often, steady=lambda: now[0], changed=changed)
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
            raise ValueError("what is made of the rows")
        worked.set()

    span, often = timedelta(hours=1), timedelta(milliseconds=1)
    page = PageLake(str(tmp_path / "lake"), span, span, often, changed=work, again_s=0.001)
    page.start()
    try:
        assert failed.wait(60)
        # After each poll of the lake, which works: it is no reason to take back what is said of the rest.
        told = "Reading the lake failed; the server's log has the reason. It will try again."
        assert seen[:3] == [None, told, told]
        fails.clear()
        assert worked.wait(60)
    finally:
        page.stop(60)
    assert page.problem is None


@pytest.mark.parametrize("first", [None, "None"])
def test_all_groups_are_not_the_group_that_is_called_none(rounds: Rounds, first: str | None) -> None:
    rounds.write(1)
    rounds.write(1, cluster="None")
    rounds.page.poll()
    rounds.page.read_on()
    for cluster in (first, None, "None"):
        asked = {"cluster": cluster, "since": datetime(2020, 1, 1, tzinfo=UTC), "most": 9}
        found = {row["cluster"] for row in rounds.page.ask("rounds_past", asked)}
        assert found == ({"c", "None"} if cluster is None else {"None"})


def test_answers_from_the_archive_are_kept_by_what_is_not_given_too() -> None:
    assert question("lag_map", {"cluster": None}) != question("lag_map", {"cluster": "None"})
    assert question("lag_map", {"cluster": "c", "most": 1}) == question("lag_map", {"most": 1, "cluster": "c"})


def _head(rounds: Rounds, tmp_path: Path, now: datetime, **chosen: str) -> dict[str, object]:
    rounds.page.poll()
    return status(View(rounds.page, Archive(str(tmp_path / "lake")), now, Address((), chosen)))


def test_the_head_has_the_newest_round_of_the_chosen_cluster_and_none_of_the_future_for_all(
    rounds: Rounds, tmp_path: Path
) -> None:
    rounds.write(1, ago=timedelta(minutes=1), cluster="prod")
    rounds.write(9, ago=-timedelta(hours=3), cluster="ahead")
    now = datetime.now(UTC)
    prod, ahead = (_head(rounds, tmp_path, now, cluster=name)["newest"] for name in ("prod", "ahead"))
    assert prod == pytest.approx(now - timedelta(minutes=1), abs=timedelta(seconds=30))
    assert ahead == pytest.approx(now + timedelta(hours=3), abs=timedelta(seconds=30))
    assert _head(rounds, tmp_path, now)["newest"] == now
    assert _head(rounds, tmp_path, now, cluster="nobody")["newest"] is None


def test_the_head_says_that_the_chosen_cluster_is_silent_while_another_one_lives(
    rounds: Rounds, tmp_path: Path
) -> None:
    rounds.write(1, cluster="prod")
    rounds.write(1, cluster="test")
    rounds.page.poll()
    rounds.steady_s = 100
    rounds.write(2, cluster="test")
    now = datetime.now(UTC)
    assert _head(rounds, tmp_path, now, cluster="prod")["silent"] is True
    assert _head(rounds, tmp_path, now, cluster="test")["silent"] is False
    assert _head(rounds, tmp_path, now)["silent"] is False


def test_files_that_compaction_wrote_are_no_batches_whose_delay_is_told(rounds: Rounds, tmp_path: Path) -> None:
    rounds.write(1)
    rounds.write(2)
    table = tmp_path / "lake" / "rounds"
    DeltaTable(table).optimize.compact()
    os.utime(table / "_delta_log" / f"{0:020d}.json", (0, 0))  # created long ago
    archive = Archive(str(tmp_path / "lake"))
    while (found := archive.signs(["c"])) is None:
        pass  # on a busy machine it is still being read
    assert len(found.written) == 2


NOW = datetime.fromtimestamp(START / 1000, UTC) + timedelta(minutes=5)


def drawn(folder: Path, template: str, **values: Any) -> str:
    """What a piece of a template with the macros `parts` and `more` says."""
    hour = timedelta(hours=1)
    view = View(PageLake(str(folder), hour, hour, hour), Archive(str(folder)), NOW, Address((), {}))
    imports = "".join(f"{{% import '{name}.html.j2' as {name} with context %}}" for name in ("parts", "more"))
    alerts = {"severity_of": {}, "outcomes": _OUTCOMES, "place": place_of, "shown": 100, "number": {}}
    given = {**alerts, "view": view, "address": view.address, **values}
    return text_of(_environment().from_string(imports + template).render(**given))


@pytest.mark.parametrize(
    ("kind", "verdict", "said"),
    [
        ("rebalance", "identical", "identical"),
        ("rebalance", "drifted", "✕ drifted"),
        ("rebalance", None, "pending"),
        # Nothing was decided, so no verdict follows.
        ("static_replacement", None, DASH),
        ("became_empty", "not_applicable", "not applicable"),
    ],
)
def test_a_verdict_is_pending_only_where_one_will_come(
    tmp_path: Path, kind: str, verdict: str | None, said: str
) -> None:
    row = {"kind": kind, "verdict": verdict}
    assert drawn(tmp_path, "{{ parts.verdict(row) }}", row=row).strip() == said


def test_what_fires_and_the_history_tell_alerts_of_the_same_queue_number_at_two_brokers_apart(tmp_path: Path) -> None:
    watched = Watched(tmp_path, BEHIND)
    lag = {"group_id": "g", "topic": "orders", "partition": 0, "lag": 500}
    watched.round(1, lag=[lag | {"broker": "broker-a"}, lag | {"broker": "broker-b"}, lag | {"topic": "kafka's"}])
    reader = LakeReader(watched.writer.root)
    asked = {"cluster": None, "rule": None}
    of_history = {**asked, "since": NOW - timedelta(hours=1), "until": NOW, "most": 10}
    for name, parameters in (("alert_states", asked), ("alert_history", of_history)):
        rows = reader.rows(queries()[name].duckdb, parameters)
        assert sorted(map(place_of, rows)) == ["kafka's 0", "orders broker-a/0", "orders broker-b/0"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"incident": "a"}, "firing delivered"),
        ({"incident": "the rule's"}, "firing, with others delivered"),
        ({"incident": None}, "firing delivered"),
    ],
)
def test_an_attempt_says_whether_it_was_sent_with_others(tmp_path: Path, sent: dict[str, Any], said: str) -> None:
    row = {"group_id": "g", "rule": "lag", "severity": "critical", "cluster": "c", "message": "m", "alert_id": "a",
           "state": "firing", "transition_id": "t", "target": "ops", "attempt": 1, "outcome": "delivered",
           "attempt_time": NOW, "duration_ms": 20, "reason": None, **sent}  # fmt: skip
    text = drawn(tmp_path, "{{ more.deliveries([], [row], true) }}", row=row, number={"attempts": "1"})
    assert f"lag g {said} 1 0.0 s" in text
