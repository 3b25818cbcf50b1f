"""The doctor, and the first settings that `evenkeel init` writes: one line for each thing, and what to do."""

from __future__ import annotations

import io
import os
import re
import socket
import tomllib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from streaming import places
from streaming.cli import app
from streaming.config import AlertSettings, KafkaSettings, ProbeSettings, Settings, load_settings
from streaming.demo.ports import free_port
from streaming.doctor import examine
from streaming.doctor.run import CHECKS, check_alerts, check_lake, check_watched
from streaming.exceptions import SetupError
from streaming.probe import CheckResult, check
from streaming.process import JOB, only_one
from streaming.tables import ALL_TABLES, DeltaLake, table_named
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.empty_lake import empty_lake
from tests.faulty_store import BUSY, FaultyStore
from tests.object_store import ObjectStore


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
        raise SetupError("It is broken.")

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
            raise SetupError("It cannot be reached.")
        yield CheckResult("x", "connection", "ok", settings.cluster)

    out, clusters = io.StringIO(), [Settings(cluster=name) for name in ("shop", "billing")]
    assert examine(clusters, Console(file=out, width=200), {"cluster": well, "lake": well}) == 2
    assert [" ".join(line.split()) for line in out.getvalue().splitlines()] == [
        "ok shop: connection: shop", "wrong billing: cluster: It cannot be reached.", "ok connection: shop",
        "2 ok, 0 warn, 1 wrong",
    ]  # fmt: skip


def looked(lake: str) -> dict[str, CheckResult]:
    settings = Settings(cluster="orders", lake=lake)
    return {line.what: line for line in (*check_watched(settings), *check_lake(settings))}


@pytest.mark.xdist_group("object_store")
@pytest.mark.nightly
def test_leases_in_a_store_are_told_and_nothing_is_written(object_store: ObjectStore, s3: str) -> None:
    lake = DeltaLake(f"{s3}/lake")
    lake.create(ALL_TABLES)
    before = object_store.objects(lake.root)
    assert looked(lake.root)["lease of the job"].text == "free: none runs"
    assert object_store.objects(lake.root) == before
    with only_one(JOB, lake.root, "orders"):
        assert looked(lake.root)["lease of the job"].text.startswith("held by process ")


@pytest.mark.xdist_group("object_store")
def test_an_empty_store_has_no_tables_yet(s3: str) -> None:
    assert looked(f"{s3}/lake")["tables"].text == f"none yet in {s3}/lake: the job creates them"


@pytest.mark.xdist_group("object_store")
def test_a_store_that_is_away_is_a_line_for_the_cluster_and_the_lake_and_not_one_per_table(
    s3: str, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyStore(object_store.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        proxy.fail(BUSY)
        found = looked(f"{s3}/lake")
    wrong = [line for line in found.values() if line.what != "checkpoint"]
    assert [(line.what, line.state) for line in wrong] == [
        ("lease of the job", "wrong"),
        ("lease of the maintainer", "wrong"),
    ]
    assert wrong[0].text.endswith("cannot be read or written: the store is down or overloaded (503).")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENKEEL_CONFIG", "to be restored")
    monkeypatch.delenv("EVENKEEL_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(places, "_SYSTEM", tmp_path / "etc")


def init(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["init", *arguments])


def nobody() -> str:
    """An address where nobody listens."""
    return f"127.0.0.1:{free_port()}"


@pytest.mark.kafka
def test_with_a_cluster_that_answers_everything_is_well_and_up_is_next(bootstrap: str) -> None:
    done = init("--bootstrap", bootstrap, "--cluster", "orders")
    lines = done.output.splitlines()
    assert done.exit_code == 0, done.output
    assert lines[0] == "evenkeel.toml is written."
    assert f"ok     kafka: connection: {bootstrap} answers with PLAINTEXT" in lines
    assert lines[-1] == "Next: evenkeel up"
    settings = load_settings()
    assert (settings.cluster, settings.kafka.bootstrap_servers) == ("orders", bootstrap)


def test_with_a_cluster_that_does_not_answer_the_file_stays_and_the_doctor_is_next() -> None:
    address = nobody()
    done = init("--bootstrap", address)
    assert done.exit_code == 2
    assert f"wrong  kafka: connection: The Kafka cluster at {address} cannot be reached" in done.output
    last = "Next: correct what is wrong as its line says, and try again: evenkeel doctor"
    assert done.output.splitlines()[-1] == last
    assert load_settings().kafka.bootstrap_servers == address


def test_a_file_that_is_there_is_left_as_it_was() -> None:
    Path("evenkeel.toml").write_text("mine", encoding="utf-8")
    done = init("--bootstrap", nobody())
    assert isinstance(done.exception, SetupError)
    assert str(done.exception).startswith("evenkeel.toml is there already: name another file with --output")
    assert Path("evenkeel.toml").read_text("utf-8") == "mine"


@pytest.mark.parametrize("arguments", [(), ("--bootstrap", "a:1", "--rocketmq", "b:2")])
def test_without_one_cluster_nothing_is_written(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert str(init(*arguments).exception).startswith("Name one cluster: ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_would_not_be_found_is_named_in_the_next_command() -> None:
    Path("conf").mkdir()
    Path("conf", "evenkeel.toml").write_text("", encoding="utf-8")  # goes before the one beside the folder
    for output in ("other.toml", "evenkeel.toml"):
        done = init("--bootstrap", nobody(), "--output", output)
        assert done.output.splitlines()[-1].endswith(f" EVENKEEL_CONFIG={output} evenkeel doctor")


def test_name_servers_of_rocketmq_are_written_and_asked() -> None:
    address = nobody()
    done = init("--rocketmq", address)
    assert done.exit_code == 2
    assert f"No name server of the RocketMQ cluster answers ({address}: connection refused)" in done.output
    [entry] = tomllib.loads(Path("evenkeel.toml").read_text("utf-8"))["clusters"]
    assert entry == {"name": "default", "rocketmq": {"name_servers": address}}


def named(text: str) -> set[tuple[str, str]]:
    """The sections and names of all settings in a file, also of those that are left out."""
    found, section = set(), ""
    for line in text.splitlines():
        if header := re.fullmatch(r"(?:# )?\[+([\w.]+)\]+", line):
            section = header[1]
        elif setting := re.match(r"(?:# )?(\w+) = ", line):
            found.add((section, setting[1]))
    return found


@pytest.mark.parametrize("kind", ["--bootstrap", "--rocketmq"])
def test_each_of_its_settings_is_explained_in_the_long_file(kind: str) -> None:
    init(kind, nobody())
    written = named(Path("evenkeel.toml").read_text("utf-8"))
    assert len(written) > 5
    assert written - named(places.shipped("evenkeel.toml").read_text("utf-8")) == set()
