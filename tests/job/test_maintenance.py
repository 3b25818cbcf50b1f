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

MANY = 70
"""Files of one size; from 60 on they are joined."""


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

    def batch(self, began: float, ended: float) -> None:
        self.maintenance.pace.began(began)
        self.now = ended
        self.maintenance.pace.ended(ended)

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


def test_between_two_batches_files_are_joined_and_no_row_changes(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    job.batch(0, 1)
    job.work(2)
    assert job.files == {"lag": MANY, "members": MANY}, "one batch says nothing about the next"
    job.batch(10, 11)
    job.work(12)
    assert job.files == {"lag": 1, "members": 1}
    assert LakeReader(job.lake.root).count("lag") == MANY
    said = [record.getMessage() for record in caplog.records if "joined" in record.getMessage()]
    assert len(said) == 2
    assert said[0].startswith("maintenance: lag ")


def test_a_piece_that_would_not_be_done_before_the_next_batch_waits_for_the_next_gap(job: Job) -> None:
    # 70 files are expected to take 0.7 s.
    job.batch(0, 1)
    job.batch(10, 11)
    job.work(19.5)
    assert job.files == {"lag": MANY, "members": MANY}
    job.batch(20, 21)
    job.work(21.2)
    assert job.files == {"lag": 1, "members": 1}


def test_a_stop_waits_for_one_piece_only(job: Job) -> None:
    job.stop.set()
    job.batch(0, 1)
    job.batch(10, 11)
    job.work(12)
    assert sorted(job.files.values()) == [1, MANY]


def test_a_batch_that_comes_early_ends_the_work(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.batch(0, 1)
    job.batch(10, 11)

    def line_of(_: Done) -> str:
        job.maintenance.pace.began(12.5)
        return "a piece"

    monkeypatch.setattr("streaming.job.maintenance.line_of", line_of)
    job.work(12)
    assert sorted(job.files.values()) == [1, MANY]


def test_a_catch_up_goes_first_but_not_for_ever(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(36):
        job.batch(number * 100, number * 100 + 99)
        job.work(number * 100 + 99.5)
    assert job.files == {"lag": MANY, "members": MANY}
    assert caplog.records == []
    job.batch(3_600, 3_699)
    job.work(3_699.5)
    assert sorted(job.files.values()) == [1, MANY], "one piece"
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        "no time for maintenance between batches for 61 minutes"
    ]
    job.batch(3_700, 3_799)
    job.work(3_799.5)
    assert sorted(job.files.values()) == [1, MANY], "the next one is five minutes later"
    for number in range(38, 41):
        job.batch(number * 100, number * 100 + 99)
        job.work(number * 100 + 99.5)
    assert sorted(job.files.values()) == [1, 1]


@pytest.mark.nightly
def test_a_lake_without_work_is_not_looked_at_again_for_five_minutes(job: Job) -> None:
    job.batch(0, 1)
    job.batch(10, 11)
    job.work(12)
    writer = Writer(job.lake)
    writer.batch = 1_000
    for number in range(MANY):
        writer.append("lag", row("lag", 0, number, topic="t", partition=1))
    job.batch(20, 21)
    job.work(22)
    assert job.files["lag"] == MANY + 1
    job.batch(310, 311)
    job.batch(320, 321)
    job.work(322)
    assert job.files["lag"] == 1


def test_a_failure_is_a_warning_an_hour_and_the_job_goes_on(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    for file in Path(job.lake.path("lag")).rglob("*.parquet"):
        file.unlink()
    job.batch(0, 1)
    for minute in range(1, 70):
        job.batch(minute * 60, minute * 60 + 1)
        job.work(minute * 60 + 2)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("maintenance failed, and is tried again within the hour; the job goes on. The table ")
    assert "/lag could not be maintained" in said[0]


def test_a_busy_job_tells_a_failure_once_an_hour(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    # (Its maintainer, which always has something left to do, tries them every ten minutes.)
    tell = job.maintenance._tell
    for minute in range(0, 100, 10):
        job.now = minute * 60
        tell("lag", "The table lag could not be maintained.")
        tell("members", "The table members could not be maintained.")
    said = [record.getMessage().partition("the job goes on. ")[2] for record in caplog.records]
    assert said == ["The table lag could not be maintained.", "The table members could not be maintained."] * 2


def test_a_log_that_cannot_be_read_and_an_error_nobody_expected_do_not_end_the_job(
    job: Job, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for commit in Path(job.lake.path("lag"), "_delta_log").glob("*.json"):
        commit.write_text("{")
    job.batch(0, 1)
    job.batch(10, 11)
    job.work(12)
    monkeypatch.setattr("streaming.maintain.maintainer.next_piece", lambda *_: 1 // 0)
    job.batch(4_000, 4_001)
    job.batch(4_010, 4_011)
    job.work(4_012)
    log, unexpected = (record.getMessage().partition("the job goes on. ")[2] for record in caplog.records)
    assert log.startswith(f"The table {job.lake.path('lag')} could not be maintained (")
    assert unexpected.startswith("ZeroDivisionError: ")


def test_beside_another_maintainer_the_job_waits(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    job.batch(0, 1)
    job.batch(10, 11)
    with only_one(MAINTAINER, job.lake.root, None):
        job.work(12)
    assert job.files == {"lag": MANY, "members": MANY}
    assert "no maintenance by this job for 5 minutes: Another maintainer runs" in caplog.text
    job.batch(320, 321)
    job.batch(330, 331)
    job.work(332)
    assert job.files == {"lag": 1, "members": 1}


def test_a_job_that_shall_not_maintain_does_not(lake: Path) -> None:
    job = Job(lake, in_job=False)
    job.batch(0, 1)
    job.batch(10, 11)
    job.work(12)
    job.work(5_000)
    assert job.files == {"lag": MANY, "members": MANY}
