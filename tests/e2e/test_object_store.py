"""The job with its lake on a real S3 server: killed, cut off for a minute, and left without credentials.

Also with the executors as its writers, and its checkpoint there, too.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from streaming.config import Writer
from tests.e2e.conftest import Recorded
from tests.e2e.lakes import contents, differences
from tests.e2e.recording import environment_of, settings_for
from tests.faulty_store import BUSY, HOLD, HOLD_ANSWERS, NOTHING, RESET, FaultyStore
from tests.object_store import ACCESS_KEY, SECRET_KEY, ObjectStore
from tests.started import ROOT, Started

# Half an hour on two busy cores, most of it cold JVMs.
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(3600), pytest.mark.turn(0)]

_KILLS = ("0:after-append-1:all", "1:after-append-2:driver", "1:in-maintenance:all", "2:in-append:driver")

_OUTAGE_S = 60


# Where a checkpoint on S3 can tear, by the requests of S3A: a rename is a copy, which is a PUT, and a deletion.
_TEARS = (
    f"{HOLD}PUT .*/checkpoint/offsets/[0-9]+$",
    f"{HOLD_ANSWERS}PUT .*/checkpoint/offsets/[0-9]+$",
    f"{HOLD}PUT .*/checkpoint/state/.*[.]changelog$",
    f"{HOLD_ANSWERS}PUT .*/checkpoint/state/.*[.]changelog$",
    # Here the file of the torn batch is there, and S3A has deleted it for the new one.
    f"{HOLD}PUT .*/checkpoint/state/.*[.]changelog$",
    f"{HOLD}PUT .*/checkpoint/commits/[0-9]+$",
    f"{HOLD_ANSWERS}PUT .*/checkpoint/commits/[0-9]+$",
)


class Job:
    """Starts the job with a lake on S3, and its log."""

    def __init__(self, recorded: Recorded, folder: Path, lake: str, writer: Writer, checkpoint: str) -> None:
        settings = settings_for(recorded.recording.bootstrap, folder / "lake", max_rounds=6, writer=writer)
        self.settings = settings.model_copy(update={"lake": lake})
        self._log = folder / "job.log"
        self._told = folder / "told.jsonl"
        self._environment = (
            os.environ
            | environment_of(self.settings, folder)
            | {
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
                "TMPDIR": str(folder),
                "EVENKEEL_JOB__CHECKPOINT": checkpoint,
            }
        )

    def start(self, *command: str, **other: str) -> Started:
        module = command or ("streaming.job",)
        return Started([sys.executable, "-m", *module, "--available-now"], self._log, self._environment | other)

    def start_and_kill_at(self, moment: str) -> Started:
        return self.start("tests.e2e.killing_job", moment, str(self._told))

    @property
    def told(self) -> str:
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    @property
    def tail(self) -> str:
        return self.told[-3000:]


@pytest.mark.parametrize(("writer", "is_checkpoint_there"), [("delta-rs", False), ("spark", True)])
def test_kills_outages_and_lost_credentials_give_the_tables_of_an_undisturbed_job(
    recorded: Recorded,
    tmp_path: Path,
    object_store: ObjectStore,
    s3: str,
    writer: Writer,
    is_checkpoint_there: bool,
) -> None:
    lake = f"{s3}/lake"
    job = Job(recorded, tmp_path, lake, writer, f"{s3}/checkpoint" if is_checkpoint_there else str(tmp_path / "kept"))

    for moment in _KILLS[:2]:
        assert job.start_and_kill_at(moment).wait() == -signal.SIGKILL, job.tail

    assert job.start(AWS_SECRET_ACCESS_KEY="ended").wait() == 1
    sentence = f"The lease {lake}/_locks/{job.settings.cluster}/job cannot be read or written: the store refuses"
    assert job.tail.splitlines()[-1].startswith(sentence)

    with FaultyStore(object_store.port) as proxy:
        for how in (BUSY, RESET):
            seen = job.told.count(": batch ")
            running = job.start(AWS_ENDPOINT_URL=proxy.endpoint)
            while running.runs and job.told.count(": batch ") == seen:
                time.sleep(0.05)
            proxy.fail(how)
            until = time.monotonic() + _OUTAGE_S
            while running.runs and time.monotonic() < until:
                time.sleep(0.05)
            proxy.fail(NOTHING)
            # It has waited, or ended with exit code 1, and is started again, as `evenkeel up` does.
            assert running.wait() in (0, 1), job.tail

    for moment in _KILLS[2:]:
        assert job.start_and_kill_at(moment).wait() in (0, -signal.SIGKILL), job.tail
    assert job.start().wait() == 0, job.tail
    _is_undisturbed(job, lake, recorded)
    assert not (tmp_path / "lake").exists()


def test_a_checkpoint_on_s3_may_be_torn_at_any_of_its_files(
    recorded: Recorded, tmp_path: Path, object_store: ObjectStore, s3: str
) -> None:
    lake = f"{s3}/lake"
    job = Job(recorded, tmp_path, lake, "delta-rs", f"{s3}/checkpoint")
    with FaultyStore(object_store.port) as proxy:
        for number, tear in enumerate(_TEARS):
            before = proxy.fail(tear)
            running = job.start(AWS_ENDPOINT_URL=proxy.endpoint)
            while proxy.fail(tear) == before:
                assert running.runs, f"tear {number} was never reached: {job.tail}"
                time.sleep(0.02)
            os.killpg(running.pid, signal.SIGKILL)
            assert running.wait() == -signal.SIGKILL
            proxy.fail(NOTHING)
    assert job.start().wait() == 0, job.tail
    _is_undisturbed(job, lake, recorded)
    kept = {name.partition("/")[0] for name in object_store.objects(f"{s3}/checkpoint")}
    assert kept >= {"commits", "metadata", "offsets", "state"}


def _is_undisturbed(job: Job, lake: str, recorded: Recorded) -> None:
    assert differences(contents(lake), contents(recorded.lake)) == {}
    assert SECRET_KEY not in job.told
    assert ACCESS_KEY not in job.told
    assert "StringToSign" not in job.told
