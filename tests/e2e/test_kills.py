"""The tables are the same whatever kills the job, wherever the stream is cut, and whenever files are joined."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import Recorded
from tests.e2e.lakes import contents, differences
from tests.e2e.recording import environment_of, settings_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(1800), pytest.mark.turn(4)]

_ROOT = Path(__file__).resolve().parents[2]

_RUN_S = 300
"""A run takes 15 s on an idle machine, the last one a little longer."""


# A killed run costs up to a minute, nearly all of it for a cold JVM: a night tries four moments in the first three of
# five batches. `make test` kills every process of `evenkeel up` (tests/up/test_up.py).
_FOUR = ("0:after-append-1:all", "1:after-append-2:driver", "1:in-maintenance:all", "2:in-append:driver")


# Each attempt by the other writer; three minutes more on an idle machine.
_THREE = ("0:after-append-1:all", "0:after-append-2:driver", "1:after-append-1:all")


@pytest.mark.parametrize(
    ("kills_at", "rounds", "writers"),
    [
        pytest.param(_FOUR, 12, ["delta-rs"], id="four", marks=pytest.mark.nightly),
        pytest.param(_THREE, 24, ["spark", "delta-rs"], id="switching", marks=pytest.mark.soak),
    ],
)
def test_kills_inside_batches_and_maintenance_and_another_read_limit_give_the_same_tables(
    recorded: Recorded, tmp_path: Path, kills_at: tuple[str, ...], rounds: int, writers: list[str]
) -> None:
    told = tmp_path / "told.jsonl"
    settings = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=rounds)
    modules = {"PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "tests")])}
    environment = os.environ | environment_of(settings, tmp_path) | modules
    job = ["--available-now"]

    def run(*command: str) -> int:
        with (tmp_path / "job.log").open("ab") as log:
            return subprocess.run(
                [sys.executable, "-m", *command],
                cwd=_ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                timeout=_RUN_S,
                check=False,
            ).returncode

    for number, moment in enumerate(kills_at):
        environment["EVENKEEL_JOB__WRITER"] = writers[number % len(writers)]
        # The next run starts at once: an orphaned JVM of the killed run may still exist.
        assert run("tests.e2e.killing_job", moment, str(told), *job) == -signal.SIGKILL, _tail(tmp_path / "job.log")
    assert run("streaming.job", *job) == 0, _tail(tmp_path / "job.log")

    kills = [json.loads(line) for line in told.read_text("utf-8").splitlines()]
    assert len(kills) == len(kills_at)
    between_appends = [kill for kill in kills if kill["appended"] and "rounds" not in kill["appended"]]
    assert len(between_appends) >= 2  # `rounds` is the last table, and has rows in every batch
    assert differences(contents(tmp_path / "lake"), contents(recorded.lake)) == {}
    if any("in-maintenance" in moment for moment in kills_at):
        assert list((tmp_path / "lake").rglob("*.zstd.parquet")), "no files were joined"
    assert _still_alive(kills) == []


def _still_alive(kills: list[dict[str, Any]]) -> list[psutil.Process]:
    """Processes that a killed job left behind and that do not end by themselves."""
    left = []
    for pid, since in (child for kill in kills for child in kill["children"]):
        try:
            process = psutil.Process(pid)
            if process.create_time() == since:
                left.append(process)
        except psutil.NoSuchProcess:
            pass
    return psutil.wait_procs(left, timeout=60)[1]


def _tail(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-3000:]
