"""The process `evenkeel serve`, over a lake that grows, and the alerter as a part of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dashboards.page.archive import Archive
from streaming.alerts import AlerterFleet, fleet
from streaming.config import AlertSettings, Settings
from streaming.process import lease_of
from streaming.tables import in_memory
from tests.alerts.build import DRIFT, Writer, drifted, lease_elsewhere, time_of
from tests.alerts.services import Receiver
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.patience import until
from tests.serve.client import pause, running
from tests.started import EVENKEEL, Started, get

pytestmark = pytest.mark.turn(6)


def test_a_new_round_is_in_the_next_scrape_its_alerts_are_delivered_a_second_server_is_refused_and_a_signal_ends_it(
    tmp_path: Path,
) -> None:
    lake = MadeLake(tmp_path / "lake", [MadeGroup("g", lag=lambda at, _: at)])
    writer = Writer(tmp_path, CLUSTER)
    with (
        Receiver() as receiver,
        running(
            tmp_path / "lake",
            tmp_path / "log",
            **_given(tmp_path, writer),
            EVENKEEL_SERVE__ALERTS="true",
            EVENKEEL_SERVE__TOKEN="t",
            EVENKEEL_ALERTS__TARGETS__OPS=receiver.url,
        ) as (address, process),
    ):
        assert get(f"{address}/metrics")[0] == 401
        line = f'evenkeel_group_lag_max_offsets{{cluster="{CLUSTER}",group="g"}} '
        assert f"{line}{lake.last}\n" in get(f"{address}/metrics", Authorization="Bearer t")[1]
        lake.next_round()
        process.until(lambda: f"{line}{lake.last}\n" in get(f"{address}/metrics", Authorization="Bearer t")[1])
        writer.shift_ms = int(lake.end.timestamp() * 1000) - time_of(lake.last)
        writer.write(lake.last + 1, {"drift": drifted("a")})
        receiver.wait(1)
        command = [EVENKEEL, "serve", "--lake", str(tmp_path / "lake"), "--listen", address.removeprefix("http://")]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        process.stop()
    assert [row["group_id"] for row in writer.transitions()] == ["a"]
    assert f"the page is at {address}, with metrics and API, of the tables in {tmp_path / 'lake'}" in process.said
    assert "Traceback" not in process.said
    assert second.returncode == 2
    assert second.stderr.startswith("The server cannot listen on 127.0.0.1:")
    assert second.stderr.count("\n") == 1


@pytest.mark.nightly
@pytest.mark.xdist_group("object_store")
def test_a_lake_on_s3_is_served_with_its_past(s3: str, tmp_path: Path) -> None:
    lake = MadeLake(f"{s3}/a team/lake", [MadeGroup("g", lag=lambda at, _: at)], rounds=3)
    with running(lake.lake.root, tmp_path / "log") as (address, _):
        board = get(f"{address}/groups/g")[1]
        assert f"{6 * lake.last:,}" in board
        [decision] = set(re.findall(r"/decisions/(\d+)", board))
        # Read from the lake when it is asked for, so it may need a second question.
        while "Older rows are being read" in (shown := get(f"{address}/groups/g/decisions/{decision}")[1]):
            pause()
        assert shown.count('class="mark-ok" role') == 6


def _given(folder: Path, writer: Writer) -> dict[str, str]:
    (folder / "alerts.yaml").write_text(f"rules:\n{DRIFT}")
    return {
        "EVENKEEL_CLUSTER": writer.cluster,
        "EVENKEEL_LAKE": writer.root,
        "EVENKEEL_ALERTS__RULES": str(folder / "alerts.yaml"),
        "EVENKEEL_ALERTS__POLL_MS": "200",
    }


@pytest.mark.nightly
def test_page_queries_that_hang_and_take_all_they_can_delay_no_alert(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(0, {})
    command, environment = [sys.executable, "-m", "tests.serve.hogged"], os.environ | _given(tmp_path, writer)
    with Started(command, tmp_path / "log", environment) as hogged:
        hogged.until(lambda: "hogged\n" in hogged.said)
        hogged.until(lambda: Path(writer.root, "alerts").is_dir())
        time.sleep(3)
        for number in range(1, 4):
            writer.write(number, {"drift": drifted(f"g{number}")})
            hogged.until(lambda so_far=number: len(writer.transitions()) == so_far, seconds=15)


def test_questions_of_the_page_have_a_database_of_their_own(tmp_path: Path) -> None:
    """One that fills its memory leaves that of the alerter's queries, which judge each round, alone."""
    limit = "SELECT current_setting('memory_limit') AS memory"
    writer = Writer(tmp_path)
    archive = Archive(writer.root)
    (of_archive,) = archive._whole().rows(limit)
    with in_memory() as connection:
        of_alerter = connection.execute(limit).fetchone()
    archive.stop()
    assert of_archive == {"memory": "953.6 MiB"}
    assert of_alerter[0] != "953.6 MiB"


@pytest.mark.nightly
def test_an_alerter_of_a_server_that_is_succeeded_stands_by_and_works_again_when_the_lease_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(fleet, "lease_of", lambda *of: lease_of(*of, ttl_s=3))
    monkeypatch.setattr(fleet, "_AGAIN_S", 0.1)
    writer = Writer(tmp_path)
    writer.write(0, {})
    given = _given(tmp_path, writer)
    alerts = AlertSettings.model_validate({"rules": given["EVENKEEL_ALERTS__RULES"], "poll_ms": 100})
    work = AlerterFleet([Settings(cluster="c", lake=writer.root, alerts=alerts)])
    work.start()
    try:
        writer.write(1, {"drift": drifted("a")})
        until(lambda: len(writer.transitions()) == 1, told="the alerter works")
        now = [0.0]
        other = lease_elsewhere(writer.root, "c", "another machine", lambda: now[0])

        def takes_over() -> bool:
            now[0] += 1_000
            return other.attempt()

        until(takes_over, told="another takes over")
        until(lambda: "The lease was taken over" in caplog.text, told="the alerter finds out")
        until(lambda: "Standing by" in caplog.text, told="it stands by")
        other.release()
        writer.write(2, {"drift": drifted("b")})
        until(lambda: len(writer.transitions()) == 2, told="it works again")
    finally:
        work.stop(30)
