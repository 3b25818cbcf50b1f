"""`evenkeel doctor` without a cluster: the lake, the alerts, and what is printed."""

from __future__ import annotations

import io
import os
import re
import socket
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from streaming.config import AlertSettings, KafkaSettings, ProbeSettings, Settings
from streaming.demo.ports import free_port
from streaming.doctor import examine
from streaming.doctor.run import CHECKS, check_alerts, check_lake, check_watched
from streaming.exceptions import SetupError
from streaming.probe import CheckResult, check
from streaming.process import JOB, only_one
from streaming.tables import ALL_TABLES, table_named
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.empty_lake import empty_lake


def by_what(lines: Iterable[CheckResult]) -> dict[str, CheckResult]:
    return {line.what: line for line in lines}


def test_a_fresh_lake_is_well_and_its_job_is_named(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2)
    settings = Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))
    with only_one(JOB, settings.lake, CLUSTER):
        found = by_what([*check_watched(settings), *check_lake(settings)])
    assert {line.state for line in found.values()} == {"ok"}
    assert found["lease of the job"].text == f"held by process {os.getpid()} on {socket.gethostname()}"
    assert found["lease of the alerter"].text == "free: none runs"


def test_a_lake_whose_rounds_have_ended_is_told_with_what_is_left(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2, end=datetime.now(UTC) - timedelta(hours=2))
    settings = Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))
    found = by_what([*check_watched(settings), *check_lake(settings)])
    assert found["newest round"].state == "warn"
    assert "rounds are kept for another 70 h" in found["newest round"].text


def newest_round(
    lake: Path, *rounds: dict[str, int | None], rules: Path | None = None, interval_ms: int = 10_000
) -> CheckResult:
    """What is said of the newest of some rounds: `ago` in seconds (below 0: ahead), `interval_ms`; numbered from 1."""
    now = round(datetime.now(UTC).timestamp() * 1000)
    rows = []
    for number, given in enumerate(rounds, start=1):
        ago = given["ago"]
        time = None if ago is None else now - ago * 1000
        row = {"cluster": CLUSTER, "round": number, "round_time": time, "event_date": now // 86_400_000}
        row["interval_ms"] = given.get("interval_ms", 10_000)
        rows.append([row.get(column.name) for column in table_named("rounds").columns])
    empty_lake(lake, ALL_TABLES).append("rounds", rows, "made", 0)
    probe = ProbeSettings(interval_ms=interval_ms)
    settings = Settings(cluster=CLUSTER, lake=str(lake), alerts=AlertSettings(rules=rules), probe=probe)
    return by_what(check_watched(settings))["newest round"]


def test_a_round_that_a_wrong_clock_put_a_day_ahead_hides_no_job_that_has_stopped_since(tmp_path: Path) -> None:
    line = newest_round(tmp_path, {"ago": -86_400}, {"ago": 7_210}, {"ago": 7_200})
    assert line.state == "warn"
    assert re.search(r" UTC, 7,2\d\d s ago: probe or job do not run", line.text)


def test_a_newest_round_of_the_future_says_that_a_clock_is_wrong(tmp_path: Path) -> None:
    line = newest_round(tmp_path, {"ago": 5}, {"ago": -86_400})
    assert line.state == "wrong"
    assert "s ahead of this machine's clock, so it does not say whether rounds still come" in line.text


def test_clocks_that_are_a_second_apart_are_well(tmp_path: Path) -> None:
    line = newest_round(tmp_path, {"ago": -1})
    assert line.state == "ok"
    assert re.search(r" UTC, \d+ s ago$", line.text)


def test_a_newest_round_without_a_time_is_no_fresh_one(tmp_path: Path) -> None:
    line = newest_round(tmp_path, {"ago": 5}, {"ago": None})
    assert (line.state, line.text.partition(":")[0]) == ("warn", f"none of the cluster {CLUSTER} with a time")


@pytest.mark.parametrize(("ago", "state"), [(860, "ok"), (910, "warn")])
def test_rounds_that_come_every_five_minutes_may_be_three_intervals_old(tmp_path: Path, ago: int, state: str) -> None:
    rounds = {"ago": ago + 10, "interval_ms": 10_000}, {"ago": ago, "interval_ms": 300_000}
    line = newest_round(tmp_path, *rounds, interval_ms=300_000)
    assert line.state == state


@pytest.mark.parametrize(("ago", "state"), [(90, "ok"), (125, "warn")])
def test_rounds_that_come_often_may_be_two_minutes_old(tmp_path: Path, ago: int, state: str) -> None:
    assert newest_round(tmp_path, {"ago": ago, "interval_ms": 200}).state == state


def test_how_old_a_round_may_be_is_what_the_rules_file_says(tmp_path: Path) -> None:
    rules = tmp_path / "alerts.yaml"
    rules.write_text("thresholds: {silent_intervals: 60}\nrules: []\n", encoding="utf-8")
    assert newest_round(tmp_path / "lake", {"ago": 560}, rules=rules).state == "ok"


def test_a_broken_table_is_named(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2)
    for entry in (tmp_path / "lake" / "drift" / "_delta_log").iterdir():
        entry.write_text("no log", encoding="utf-8")
    line = by_what(check_lake(Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))))["unreadable tables"]
    assert (line.state, line.text.partition(" ")[0]) == ("wrong", "drift")


_RULE = 'view: gaps, when: true, severity: info, message: "x"'


@pytest.mark.parametrize(
    ("rules", "state", "text"),
    [("[]", "warn", "rules: none"), (f"[{{name: a, {_RULE}}}, {{name: b, {_RULE}}}]", "ok", "rules: a, b")],
)
def test_rules_are_named(tmp_path: Path, rules: str, state: str, text: str) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text(f"rules: {rules}\n", encoding="utf-8")
    found = check_alerts(Settings(alerts=AlertSettings(rules=file)))
    assert CheckResult("alerts", "rules and targets", state, text) in list(found)  # type: ignore[arg-type]


@pytest.mark.nightly
def test_targets_are_judged_by_their_form_and_nothing_is_sent(tmp_path: Path) -> None:
    good = Settings.model_validate({"alerts": {"targets": {"hooks": f"json://127.0.0.1:{free_port()}/hook"}}})
    assert CheckResult("alerts", "rules and targets", "ok", "targets: hooks") in list(check_alerts(good))
    bad = Settings.model_validate({"alerts": {"targets": {"hooks": "nosuch://me:hunter2@there"}}})
    line = by_what(check_alerts(bad))["rules and targets"]
    assert line.state == "wrong"
    assert "hunter2" not in line.text
    wrong = Settings.model_validate({"alerts": {"routes": [{"targets": ["pager"]}]}})
    (told,) = [line.text for line in check_alerts(wrong) if line.state == "wrong"]
    assert "names the target pager, which is not set" in told


def test_settings_that_cannot_be_read_are_the_only_line() -> None:
    out = io.StringIO()
    assert examine(SetupError("The setting lake is wrong."), Console(file=out, width=200)) == 2
    assert out.getvalue() == "wrong  settings: The setting lake is wrong.\n"


def test_everything_well_is_exit_code_0_and_a_check_that_fails_is_a_line() -> None:
    def well(_: Settings) -> Iterator[CheckResult]:
        yield CheckResult("x", "all", "ok", "yes")
        yield CheckResult("x", "rest", "warn", "later")

    def fails(_: Settings) -> Iterator[CheckResult]:
        yield CheckResult("y", "first", "ok", "yes")
        message = "It is broken."
        raise SetupError(message)

    out = Console(file=io.StringIO(), width=200)
    assert examine([Settings()], out, {"x": well}) == 0
    text = io.StringIO()
    assert examine([Settings()], Console(file=text, width=200), {"y": fails, "x": well}) == 2
    assert [line.split() for line in text.getvalue().splitlines()] == [
        ["ok", "first:", "yes"], ["wrong", "y:", "It", "is", "broken."], ["ok", "all:", "yes"],
        ["warn", "rest:", "later"], ["2", "ok,", "1", "warn,", "1", "wrong"],
    ]  # fmt: skip


def test_the_cluster_says_the_same_as_up_does_at_its_start(tmp_path: Path) -> None:
    settings = Settings(lake=str(tmp_path), kafka=KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}"))
    found = CHECKS["cluster"](settings)
    assert [line.text for line in found if line.state == "wrong"] == check(settings)


def test_each_cluster_is_examined_by_name_and_what_all_share_once() -> None:
    def well(settings: Settings) -> Iterator[CheckResult]:
        if settings.cluster == "billing":
            message = "It cannot be reached."
            raise SetupError(message)
        yield CheckResult("x", "connection", "ok", settings.cluster)

    out, clusters = io.StringIO(), [Settings(cluster=name) for name in ("shop", "billing")]
    assert examine(clusters, Console(file=out, width=200), {"cluster": well, "lake": well}) == 2
    assert [" ".join(line.split()) for line in out.getvalue().splitlines()] == [
        "ok shop: connection: shop", "wrong billing: cluster: It cannot be reached.", "ok connection: shop",
        "2 ok, 0 warn, 1 wrong",
    ]  # fmt: skip
