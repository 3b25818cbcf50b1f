"""`evenkeel doctor` without a cluster: the lake, the machine, secrets, and checks that hang."""

from __future__ import annotations

import errno
import io
import json
import os
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from rich.console import Console

from streaming.config import KafkaSettings, Settings
from streaming.doctor import Line, examine
from streaming.doctor.alerting import look_at_alerts
from streaming.doctor.lake import look_at_lake
from streaming.doctor.machine import look_at_machine
from streaming.doctor.run import CHECKS, Check
from streaming.exceptions import SetupError
from streaming.probe import check
from streaming.process import JOB, only_one
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.ports import free_port


def by_what(lines: Iterator[Line]) -> dict[str, Line]:
    return {line.what: line for line in lines}


def report(settings: Settings, *checks: Check) -> tuple[int, list[dict[str, str]]]:
    out = io.StringIO()
    code, _ = examine(settings, Console(file=out, width=4_000), as_json=True, checks=checks or CHECKS)
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_fresh_lake_is_well_and_its_job_is_named(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2)
    settings = Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))
    with only_one(JOB, settings.lake, CLUSTER):
        found = by_what(look_at_lake(settings))
    assert {line.state for line in found.values()} == {"ok"}
    assert found["lease of the job"].text == f"held by process {os.getpid()}"
    assert found["lease of the alerter"].text == "free: none runs"


def test_a_lake_whose_rounds_have_ended_is_told_with_what_is_left(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2, end=datetime.now(UTC) - timedelta(hours=2))
    found = by_what(look_at_lake(Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))))
    assert found["newest round"].state == "warn"
    assert "rounds are kept for another 70 h" in found["newest round"].text


def test_the_lake_of_a_newer_release_is_wrong(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2)
    DeltaTable(str(tmp_path / "lake" / "drift")).alter.add_columns([Field("since_2030", PrimitiveType("string"))])
    line = by_what(look_at_lake(Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))))["release"]
    assert line.state == "wrong"
    assert "drift.since_2030" in line.text
    assert "a newer one wrote it" in line.text


def test_a_broken_table_is_named(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("billing")], rounds=2)
    for entry in (tmp_path / "lake" / "drift" / "_delta_log").iterdir():
        entry.write_text("no log", encoding="utf-8")
    line = by_what(look_at_lake(Settings(cluster=CLUSTER, lake=str(tmp_path / "lake"))))["drift"]
    assert (line.state, line.area) == ("wrong", "lake")


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "it is mounted read-only"), (errno.EACCES, "give this user")],
)
def test_a_folder_that_cannot_be_written_is_wrong_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    def fails(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    line = by_what(look_at_machine(Settings(lake=str(tmp_path / "not" / "there"))))["lake's folder"]
    assert line.state == "wrong"
    assert line.text.startswith(f"{tmp_path} cannot be written ({os.strerror(number)}): {advice}")


def test_a_lake_below_a_file_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    line = by_what(look_at_machine(Settings(lake=str(tmp_path / "file" / "lake"))))["lake's folder"]
    assert line.state == "wrong"
    assert "choose another folder" in line.text


def test_a_port_that_another_program_has_is_wrong(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        settings = Settings.model_validate({"lake": str(tmp_path), "serve": {"listen": listen}})
        line = by_what(look_at_machine(settings))[f"server's port {listen}"]
    assert line.state == "wrong"
    assert "change serve.listen" in line.text


def test_a_file_with_secrets_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "targets"
    file.write_text("hooks = jsons://hooks\n", encoding="utf-8")
    settings = Settings.model_validate({"lake": str(tmp_path), "alerts": {"targets_file": str(file)}})
    file.chmod(0o644)
    assert by_what(look_at_machine(settings))["alerts.targets_file"].state == "warn"
    file.chmod(0o600)
    assert by_what(look_at_machine(settings))["alerts.targets_file"].state == "ok"


def test_an_alertmanager_is_asked_whether_it_is_there(tmp_path: Path) -> None:
    where = f"alertmanager://127.0.0.1:{free_port()}"
    gone = Settings.model_validate({"alerts": {"targets": {"am": where}, "timeout_ms": 500}})
    line = by_what(look_at_alerts(gone))["target am"]
    assert line.state == "wrong"
    assert "could not be reached" in line.text
    wrong = Settings.model_validate({"alerts": {"routes": [{"targets": ["pager"]}]}})
    assert "names the target pager, which is not set" in by_what(look_at_alerts(wrong))["rules and targets"].text


def test_targets_are_judged_by_their_form_and_nothing_is_sent(tmp_path: Path) -> None:
    good = Settings.model_validate({"alerts": {"targets": {"hooks": f"json://127.0.0.1:{free_port()}/hook"}}})
    assert by_what(look_at_alerts(good))["target hooks"].state == "ok"
    bad = Settings.model_validate({"alerts": {"targets": {"hooks": "nosuch://me:hunter2@there"}}})
    line = by_what(look_at_alerts(bad))["rules and targets"]
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

    def leaks(_: Settings) -> Iterator[Line]:
        yield from (Line("x", one, "warn", f"it said {one} and redis://me:{one}@there") for one in secrets[2:])

    code, found = report(settings, *CHECKS, Check("x", leaks, 10))
    assert code == 2
    text = json.dumps(found)
    assert [one for one in secrets if one in text] == []
    assert text.count("***") >= 14
    assert any(line["state"] == "wrong" and line["area"] == "cluster" for line in found)


def test_a_check_that_hangs_is_a_line_and_the_next_one_begins() -> None:
    never = threading.Event()

    def hangs(_: Settings) -> Iterator[Line]:
        yield Line("slow", "first", "ok", "yes")
        never.wait()

    def well(_: Settings) -> Iterator[Line]:
        yield Line("next", "second", "ok", "yes")

    out = io.StringIO()
    checks = (Check("slow", hangs, 0.3), Check("next", well, 10))
    code, hanging = examine(Settings(), Console(file=out, width=200), checks=checks)
    never.set()
    assert (code, hanging) == (2, True)
    assert "The look at the slow did not end within 0 s" in out.getvalue()
    assert "second: yes" in out.getvalue()


def test_a_check_that_fails_is_a_line() -> None:
    def fails(_: Settings) -> Iterator[Line]:
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
    def well(_: Settings) -> Iterator[Line]:
        yield Line("x", "all", "ok", "yes")
        yield Line("x", "rest", "warn", "later")

    assert report(Settings(), Check("x", well, 10))[0] == 0


def test_the_cluster_says_the_same_as_up_does_at_its_start(tmp_path: Path) -> None:
    settings = Settings(lake=str(tmp_path), kafka=KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}"))
    cluster = next(one for one in CHECKS if one.area == "cluster")
    _, found = report(settings, cluster)
    assert [line["text"] for line in found if line["state"] == "wrong"] == [str(one) for one in check(settings)]
