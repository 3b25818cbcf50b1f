"""The process `evenkeel serve`, over a lake that grows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.ports import free_port

EVENKEEL = str(Path(sys.executable).with_name("evenkeel"))


@contextmanager
def running(lake: Path, log: Path, **environment: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The process; yields its address."""
    port = free_port()
    given = {**os.environ, "EVENKEEL_SERVE__REFRESH_MS": "500", **environment}
    with log.open("wb") as output:
        command = [EVENKEEL, "serve", "--lake", str(lake), "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=given)
        try:
            address = f"http://127.0.0.1:{port}"
            while get(f"{address}/health")[0] != 200 or json.loads(get(f"{address}/health")[1])["status"] == "starting":
                if process.poll() is not None:
                    pytest.fail(log.read_text())
            yield address, process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def get(address: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def test_a_new_round_is_in_the_next_scrape_and_a_signal_ends_it(tmp_path: Path) -> None:
    lake = MadeLake(tmp_path / "lake", [MadeGroup("g", lag=lambda at, _: at)])
    with running(tmp_path / "lake", tmp_path / "log", EVENKEEL_SERVE__TOKEN="t") as (address, process):
        assert get(f"{address}/metrics")[0] == 401
        line = f'evenkeel_group_lag_max_offsets{{cluster="{CLUSTER}",group="g"}} '
        assert f"{line}{lake.last}\n" in get(f"{address}/metrics", Authorization="Bearer t")[1]
        lake.next_round()
        while f"{line}{lake.last}\n" not in get(f"{address}/metrics", Authorization="Bearer t")[1]:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    told = (tmp_path / "log").read_text()
    assert "serving the tables" in told
    assert "Traceback" not in told


def test_a_taken_port_is_told_in_a_sentence(tmp_path: Path) -> None:
    MadeLake(tmp_path / "lake", [])
    with running(tmp_path / "lake", tmp_path / "log") as (address, _):
        command = [EVENKEEL, "serve", "--lake", str(tmp_path / "lake"), "--listen", address.removeprefix("http://")]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert second.stderr.startswith("The server cannot listen on 127.0.0.1:")
    assert second.stderr.count("\n") == 1
