"""`evenkeel doctor` without a cluster: the lake, the machine, secrets, and checks that hang."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from rich.console import Console

from streaming.config import AlertSettings, KafkaSettings, ProbeSettings, Settings
from streaming.demo.ports import free_port
from streaming.doctor import examine
from streaming.doctor.lake import check_alerts, check_lake
from streaming.doctor.machine import check_machine
from streaming.doctor.run import CHECKS, Check
from streaming.exceptions import SetupError
from streaming.probe import CheckResult, check
from streaming.process import JOB, hold_logs, logs_of, only_one
from streaming.tables import ALL_TABLES, table_named
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.empty_lake import empty_lake


def by_what(lines: Iterator[CheckResult]) -> dict[str, CheckResult]:
    return {line.what: line for line in lines}


def report(settings: Settings, *checks: Check) -> tuple[int, list[dict[str, str]]]:
    out = io.StringIO()
    code, _ = examine(settings, Console(file=out, width=4_000), as_json=True, checks=checks or CHECKS)
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_fresh_lake_is_well_and_its_job_is_named(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2)
    settings = Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))
    with only_one(JOB, settings.lake, CLUSTER):
        found = by_what(check_lake(settings))
    assert {line.state for line in found.values()} == {"ok"}
    assert found["lease of the job"].text == f"held by process {os.getpid()} on {socket.gethostname()}"
    assert found["lease of the alerter"].text == "free: none runs"


def test_a_lake_whose_rounds_have_ended_is_told_with_what_is_left(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2, end=datetime.now(UTC) - timedelta(hours=2))
    found = by_what(check_lake(Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))))
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
    return by_what(check_lake(settings))["newest round"]


def test_a_round_that_a_wrong_clock_put_a_day_ahead_hides_no_job_that_has_stopped_since(tmp_path: Path) -> None:
    line = newest_round(tmp_path, {"ago": -86_400}, {"ago": 7_210}, {"ago": 7_200})
    assert line.state == "warn"
    assert re.search(r" UTC, 7,2\d\d s ago: probe or job do not run", line.text)


@pytest.mark.parametrize(("ahead_s", "state"), [(30, "warn"), (86_400, "wrong")])
def test_a_newest_round_of_the_future_says_that_a_clock_is_wrong(tmp_path: Path, ahead_s: int, state: str) -> None:
    line = newest_round(tmp_path, {"ago": 5}, {"ago": -ahead_s})
    assert line.state == state
    assert "s ahead of this machine's clock, so it does not say whether rounds still come" in line.text


def test_clocks_that_are_a_second_apart_are_well(tmp_path: Path) -> None:
    line = newest_round(tmp_path, {"ago": -1})
    assert line.state == "ok"
    assert re.search(r" UTC, \d+ s ago$", line.text)


def test_rounds_that_come_less_often_than_the_settings_say_are_named(tmp_path: Path) -> None:
    line = newest_round(tmp_path, {"ago": 100, "interval_ms": 130_000})
    assert (line.state, line.text.partition("ago: ")[2].partition(".")[0]) == (
        "warn",
        "rounds come every 130 s, not every 10 s",
    )


def test_a_newest_round_without_a_time_is_no_fresh_one(tmp_path: Path) -> None:
    line = newest_round(tmp_path, {"ago": 5}, {"ago": None})
    assert (line.state, line.text.partition(":")[0]) == ("wrong", "round 2 has no time that anybody can show")


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


def test_a_rules_file_that_is_wrong_takes_no_line_of_the_lake_away(tmp_path: Path) -> None:
    assert newest_round(tmp_path / "lake", {"ago": 5}, rules=tmp_path / "none.yaml").state == "ok"


def test_the_lake_of_a_newer_release_is_wrong(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2)
    DeltaTable(str(tmp_path / "lake" / "drift")).alter.add_columns([Field("since_2030", PrimitiveType("string"))])
    line = by_what(check_lake(Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))))["release"]
    assert line.state == "wrong"
    assert "drift.since_2030" in line.text
    assert "a newer one wrote it" in line.text


def test_a_broken_table_is_named(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2)
    for entry in (tmp_path / "lake" / "drift" / "_delta_log").iterdir():
        entry.write_text("no log", encoding="utf-8")
    line = by_what(check_lake(Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))))["unreadable tables"]
    assert (line.state, line.text.partition(" ")[0]) == ("wrong", "drift")


def test_a_full_disk_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fails)
    line = by_what(check_machine(Settings(lake=str(tmp_path / "not" / "there"))))["lake's folder"]
    assert line.state == "wrong"
    assert line.text == f"{tmp_path} cannot be written (No space left on device)."


def test_a_lake_below_a_file_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    line = by_what(check_machine(Settings(lake=str(tmp_path / "file" / "lake"))))["lake's folder"]
    assert line.state == "wrong"
    assert "cannot be written (Not a directory)" in line.text


def test_a_port_that_is_taken_is_named_unless_up_runs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        settings = Settings.model_validate({"lake": str(tmp_path), "serve": {"listen": listen}})
        line = by_what(check_machine(settings))[f"server's port {listen}"]
        assert (line.state, "change serve.listen" in line.text) == ("warn", True)
        with hold_logs(logs_of(settings.lake, settings.cluster)):
            assert by_what(check_machine(settings))[f"server's port {listen}"].state == "ok"


def test_a_file_with_secrets_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "targets"
    file.write_text("hooks = jsons://hooks\n", encoding="utf-8")
    settings = Settings.model_validate({"lake": str(tmp_path), "alerts": {"targets_file": str(file)}})
    file.chmod(0o644)
    assert by_what(check_machine(settings))["alerts.targets_file"].state == "warn"
    file.chmod(0o600)
    assert by_what(check_machine(settings))["alerts.targets_file"].state == "ok"


def test_an_alertmanager_is_asked_whether_it_is_there(tmp_path: Path) -> None:
    where = f"alertmanager://127.0.0.1:{free_port()}"
    gone = Settings.model_validate({"alerts": {"targets": {"am": where}, "timeout_ms": 500}})
    line = by_what(check_alerts(gone))["target am"]
    assert line.state == "wrong"
    assert "could not be reached" in line.text
    wrong = Settings.model_validate({"alerts": {"routes": [{"targets": ["pager"]}]}})
    assert "names the target pager, which is not set" in by_what(check_alerts(wrong))["rules and targets"].text


_RULE = 'view: gaps, when: true, severity: info, message: "x"'


@pytest.mark.parametrize(
    ("rules", "state", "text"),
    [
        ("[]", "warn", "there are none, so nothing is ever alerted: write one (docs/alerts.md)."),
        (f"[{{name: none, {_RULE}}}]", "ok", "1 rule: none"),
        (f"[{{name: a, {_RULE}}}, {{name: b, {_RULE}}}]", "ok", "2 rules: a, b"),
    ],
)
def test_rules_are_counted_and_named(tmp_path: Path, rules: str, state: str, text: str) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text(f"rules: {rules}\n", encoding="utf-8")
    (line,) = [
        line
        for line in check_alerts(Settings(alerts=AlertSettings(rules=file)))
        if line.what == "rules" and not line.text.startswith("no rule reads")
    ]
    assert (line.state, line.text) == (state, text)


def test_targets_are_judged_by_their_form_and_nothing_is_sent(tmp_path: Path) -> None:
    good = Settings.model_validate({"alerts": {"targets": {"hooks": f"json://127.0.0.1:{free_port()}/hook"}}})
    assert by_what(check_alerts(good))["target hooks"].state == "ok"
    bad = Settings.model_validate({"alerts": {"targets": {"hooks": "nosuch://me:hunter2@there"}}})
    line = by_what(check_alerts(bad))["rules and targets"]
    assert line.state == "wrong"
    assert "hunter2" not in line.text


def test_no_secret_is_in_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = [f"hunter{number}secret" for number in range(9)]
    file = tmp_path / "targets"
    file.write_text(f"filed = jsons://me:{secrets[0]}@hooks/{secrets[1]}\n", encoding="utf-8")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secrets[2])
    password = tmp_path / "password"
    password.write_text(f"{secrets[3]}\n", encoding="utf-8")
    settings = Settings.model_validate(
        {
            "lake": str(tmp_path / f"lake-{secrets[2]}"),
            "kafka": {
                "bootstrap_servers": f"127.0.0.1:{free_port()}",
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "PLAIN",
                "sasl_username": "evenkeel",
                "sasl_password_file": str(password),
                "ssl_password": secrets[4],
            },
            "alerts": {"targets_file": str(file), "targets": {"set": f"jsons://me:{secrets[5]}@hooks/{secrets[6]}"}},
            "serve": {"token": secrets[7], "password": secrets[8]},
        }
    )

    def leaks(_: Settings) -> Iterator[CheckResult]:
        yield from (CheckResult("x", one, "warn", f"it said {one} and redis://me:{one}@there") for one in secrets[2:])

    code, found = report(settings, *CHECKS, Check("x", leaks, 10))
    assert code == 2
    text = json.dumps(found)
    assert [one for one in secrets if one in text] == []
    assert text.count("***") >= 14
    assert any(line["state"] == "wrong" and line["area"] == "cluster" for line in found)


def test_a_check_that_hangs_is_a_line_and_the_next_one_begins() -> None:
    never = threading.Event()

    def hangs(_: Settings) -> Iterator[CheckResult]:
        yield CheckResult("slow", "first", "ok", "yes")
        never.wait()

    def well(_: Settings) -> Iterator[CheckResult]:
        yield CheckResult("next", "second", "ok", "yes")

    out = io.StringIO()
    checks = (Check("slow", hangs, 0.3), Check("next", well, 10))
    code, hanging = examine(Settings(), Console(file=out, width=200), checks=checks)
    never.set()
    assert (code, hanging) == (2, True)
    assert "The look at the slow did not end within 0 s" in out.getvalue()
    assert "second: yes" in out.getvalue()


def test_a_check_that_fails_is_a_line() -> None:
    def fails(_: Settings) -> Iterator[CheckResult]:
        message = "boom"
        raise RuntimeError(message)
        yield

    code, found = report(Settings(), Check("x", fails, 10))
    assert code == 2
    assert "The look failed (RuntimeError: boom)" in found[0]["text"]


def test_settings_that_cannot_be_read_are_the_only_line() -> None:
    out = io.StringIO()
    code, _ = examine(SetupError("The setting lake is wrong."), Console(file=out, width=200))
    assert code == 2
    assert out.getvalue() == "wrong  settings: The setting lake is wrong.\n"


def test_everything_well_is_exit_code_0() -> None:
    def well(_: Settings) -> Iterator[CheckResult]:
        yield CheckResult("x", "all", "ok", "yes")
        yield CheckResult("x", "rest", "warn", "later")

    assert report(Settings(), Check("x", well, 10))[0] == 0


def test_the_cluster_says_the_same_as_up_does_at_its_start(tmp_path: Path) -> None:
    settings = Settings(lake=str(tmp_path), kafka=KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}"))
    cluster = next(one for one in CHECKS if one.area == "cluster")
    _, found = report(settings, cluster)
    assert [line["text"] for line in found if line["state"] == "wrong"] == check(settings)
