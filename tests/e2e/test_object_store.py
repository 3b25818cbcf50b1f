"""The job with its lake on a real S3 server: killed, cut off for a minute, and left without credentials."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Recorded
from tests.e2e.lakes import contents, differences
from tests.e2e.recording import environment_of, settings_for
from tests.faulty_store import BUSY, NOTHING, RESET, FaultyStore
from tests.object_store import SECRET_KEY, ObjectStore

# (Ten minutes on two busy cores, most of them cold JVMs.)
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(3600)]

_ROOT = Path(__file__).resolve().parents[2]

_KILLS = ("0:after-append-1:all", "1:after-append-2:driver", "1:in-maintenance:all", "2:in-append:driver")

_OUTAGE_S = 60
_RUN_S = 600


def test_kills_outages_and_lost_credentials_give_the_tables_of_an_undisturbed_job(
    recorded: Recorded, tmp_path: Path, object_store: ObjectStore, s3: str
) -> None:
    lake, log = f"{s3}/lake", tmp_path / "job.log"
    settings = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=6)
    settings = settings.model_copy(update={"lake": lake})
    more = {
        "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "tests")]),
        "TMPDIR": str(tmp_path),
        "EVENKEEL_JOB__CHECKPOINT": str(tmp_path / "checkpoint"),
    }
    environment = os.environ | environment_of(settings, tmp_path) | more

    def start(*command: str, **other: str) -> subprocess.Popen[Any]:
        with log.open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-m", *command, "--available-now"],
                cwd=_ROOT,
                env=environment | other,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    for moment in _KILLS[:2]:
        told = str(tmp_path / "told.jsonl")
        killed = start("tests.e2e.killing_job", moment, told)
        assert killed.wait(_RUN_S) == -signal.SIGKILL, _tail(log)

    assert start("streaming.job", AWS_SECRET_ACCESS_KEY="ended").wait(_RUN_S) == 1
    sentence = f"The lease {lake}/_locks/{settings.cluster}/job.json cannot be read or written: the store refuses"
    assert _tail(log).splitlines()[-1].startswith(sentence)

    with FaultyStore(object_store.port) as proxy:
        for how in (BUSY, RESET):
            seen = log.read_text().count(": batch ")
            running = start("streaming.job", AWS_ENDPOINT_URL=proxy.endpoint)
            while running.poll() is None and log.read_text().count(": batch ") == seen:
                time.sleep(0.05)
            proxy.fail(how)
            until = time.monotonic() + _OUTAGE_S
            while running.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            proxy.fail(NOTHING)
            # It has waited, or ended with exit code 1, and is started again, as `evenkeel up` does.
            assert running.wait(_RUN_S) in (0, 1), _tail(log)

    for moment in _KILLS[2:]:
        killed = start("tests.e2e.killing_job", moment, str(tmp_path / "told.jsonl"))
        assert killed.wait(_RUN_S) in (0, -signal.SIGKILL), _tail(log)
    assert start("streaming.job").wait(_RUN_S) == 0, _tail(log)
    assert differences(contents(lake), contents(recorded.lake)) == {}
    told = log.read_text("utf-8", "replace")
    assert SECRET_KEY not in told
    assert "StringToSign" not in told
    assert not (tmp_path / "lake").exists()


def _tail(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-3000:]
