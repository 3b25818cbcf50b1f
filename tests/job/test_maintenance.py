"""The job's own maintenance: when it works, what it logs, and that the job goes on without it."""

from __future__ import annotations

import logging
import shutil
import threading
from pathlib import Path

import pytest

from streaming.config import Settings
from streaming.job.maintenance import JobMaintenance
from streaming.maintain import Done
from streaming.process import MAINTAINER, only_one
from streaming.tables import DeltaLake, LakeReader
from tests.maintain.build import Writer, files_of, new_lake, row

pytestmark = pytest.mark.turn(6)

MANY = 5


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with many files in two tables."""
    lake = new_lake(tmp_path_factory.mktemp("many"))
    writer = Writer(lake)
    for number in range(MANY):
        for table in ("lag", "members"):
            writer.append(table, row(table, 0, number, topic="t", partition=0))
    return Path(lake.root)


class Job:
    """A job on a lake, whose clock the test sets."""

    def __init__(self, lake: Path, **chosen: object) -> None:
        self.lake = DeltaLake(str(lake))
        self.now = 0.0
        self.stop = threading.Event()
        settings = Settings.model_validate({"cluster": "c", "lake": str(lake), "maintenance": chosen})
        self.maintenance = JobMaintenance(settings, clock=lambda: self.now)

    def work(self, now: float) -> None:
        self.now = now
        self.maintenance.work(self.stop)

    @property
    def files(self) -> dict[str, int]:
        return {name: count for name, count in files_of(self.lake).items() if name in {"lag", "members"}}


@pytest.fixture
def lake(many_files: Path, tmp_path: Path) -> Path:
    return shutil.copytree(many_files, tmp_path / "lake")


@pytest.fixture
def job(lake: Path) -> Job:
    return Job(lake)


def test_files_are_joined_and_no_row_changes(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    job.work(13)
    assert job.files == {"lag": 1, "members": 1}
    assert LakeReader(job.lake.root).count("lag") == MANY
    said = [record.getMessage() for record in caplog.records if "joined" in record.getMessage()]
    assert len(said) == 2
    assert said[0].startswith("maintenance: lag ")


def test_a_stop_ends_the_work_after_the_piece_in_progress(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def line_of(_: Done) -> str:
        job.stop.set()
        return "a piece"

    monkeypatch.setattr("streaming.job.maintenance.line_of", line_of)
    job.work(12)
    assert sorted(job.files.values()) == [1, MANY]


@pytest.mark.nightly
def test_a_failure_is_a_warning_an_hour_and_the_job_goes_on(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    for file in Path(job.lake.path("lag")).rglob("*.parquet"):
        file.unlink()
    for minute in range(1, 70):
        job.work(minute * 60)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("maintenance failed, and is tried again within the hour; the job goes on. The table ")
    assert "/lag could not be maintained" in said[0]


def test_an_error_nobody_expected_does_not_end_the_job(
    job: Job, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.maintain.maintainer.days_to_join", lambda *_: 1 // 0)
    job.work(12)
    [unexpected] = (record.getMessage().partition("the job goes on. ")[2] for record in caplog.records)
    assert unexpected.startswith("ZeroDivisionError: ")


def test_only_one_compactor_works_on_a_lake_and_the_other_waits(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with only_one(MAINTAINER, job.lake.root, None):
        job.work(12)
    assert job.files == {"lag": MANY, "members": MANY}
    assert "no maintenance by this job for 5 minutes: Another maintainer for the lake" in caplog.text
    job.work(330)
    assert job.files == {"lag": 1, "members": 1}


def test_a_job_that_shall_not_maintain_does_not(lake: Path) -> None:
    job = Job(lake, in_job=False)
    job.work(5_000)
    assert job.files == {"lag": MANY, "members": MANY}
