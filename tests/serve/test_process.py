"""The process `evenkeel serve`, over a lake that grows."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.serve.running import EVENKEEL, get, pause, running

pytestmark = pytest.mark.turn(6)


def test_a_new_round_is_in_the_next_scrape_a_second_server_is_refused_and_a_signal_ends_it(tmp_path: Path) -> None:
    lake = MadeLake(tmp_path / "lake", [MadeGroup("g", lag=lambda at, _: at)])
    with running(tmp_path / "lake", tmp_path / "log", EVENKEEL_SERVE__TOKEN="t") as (address, process):
        assert get(f"{address}/metrics")[0] == 401
        line = f'evenkeel_group_lag_max_offsets{{cluster="{CLUSTER}",group="g"}} '
        assert f"{line}{lake.last}\n" in get(f"{address}/metrics", Authorization="Bearer t")[1]
        lake.next_round()
        while f"{line}{lake.last}\n" not in get(f"{address}/metrics", Authorization="Bearer t")[1]:
            assert process.poll() is None
            pause()
        command = [EVENKEEL, "serve", "--lake", str(tmp_path / "lake"), "--listen", address.removeprefix("http://")]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    told = (tmp_path / "log").read_text()
    assert f"the page is at {address}, with metrics and API, of the tables in {tmp_path / 'lake'}" in told
    assert "Traceback" not in told
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
