"""The ends of the job: by kills, by exit codes with a sentence, by a broken checkpoint, which one command mends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from streaming.config import Settings, checkpoint_of
from streaming.exceptions import SetupError
from streaming.job.run import QueryEndedError, run
from tests.e2e.conftest import Recorded, in_this_session
from tests.e2e.lakes import contents, differences, without_rebuilds
from tests.e2e.recording import environment_of, settings_for
from tests.patience import unless_too_busy
from tests.started import ROOT, Started


class DiskFullError(Exception):
    pass


def _start(settings: Settings, folder: Path, *arguments: str, **more: str) -> Started:
    """Start the job on the recording as a process."""
    modules = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    environment = os.environ | environment_of(settings, folder) | modules | more
    return Started([sys.executable, "-m", *arguments], folder / "job.log", environment)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.turn(5)
@pytest.mark.xdist_group("recorded")
def test_a_query_that_fails_ends_the_job_with_its_cause_in_one_sentence(
    recorded: Recorded, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise DiskFullError("no space left on the device")

    in_this_session(spark, monkeypatch)
    monkeypatch.setattr("streaming.job.run.batch_writer", lambda *_: no_space)
    settings = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=10)
    with pytest.raises(QueryEndedError) as ended:
        unless_too_busy(lambda: run(settings, available_now=True))
    cause = "the Spark query has ended: tests.e2e.test_endings.DiskFullError: no space left on the device"
    assert str(ended.value) == cause


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.turn(5)
@pytest.mark.nightly
def test_a_job_that_is_asked_to_stop_in_a_catch_up_ends_after_the_batch_in_progress(
    recorded: Recorded, tmp_path: Path
) -> None:
    settings = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=10)
    with _start(settings, tmp_path, "streaming.job") as job:
        job.until(lambda: "batch 0:" in job.said)
        job.stop()
    assert (
        "batch 3:" not in job.said
    )  # of eight; one may have begun before the signal came, another before it was handled
    assert "Exception" not in job.said


# A killed run costs up to a minute, nearly all of it for a cold JVM: a night tries four moments in the first three of
# five batches. `make test` kills every process of `evenkeel up` (tests/up/test_up.py).
_FOUR = ("0:after-append-1:all", "1:after-append-2:driver", "1:in-maintenance:all", "2:in-append:driver")


# Each attempt by the other writer; three minutes more on an idle machine.
_THREE = ("0:after-append-1:all", "0:after-append-2:driver", "1:after-append-1:all")


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.turn(4)
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
    for number, moment in enumerate(kills_at):
        writer = writers[number % len(writers)]
        killing = ["tests.e2e.killing_job", moment, str(told), "--available-now"]
        # The next run starts at once: an orphaned JVM of the killed run may still exist.
        killed = _start(settings, tmp_path, *killing, EVENKEEL_JOB__WRITER=writer)
        assert killed.wait() == -signal.SIGKILL, killed.said[-3000:]
    job = _start(settings, tmp_path, "streaming.job", "--available-now", EVENKEEL_JOB__WRITER=writer)
    assert job.wait() == 0, job.said[-3000:]

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


@pytest.fixture
def settings(recorded: Recorded, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A job that was lost when all was quiet; since then all members have left. It runs in this process's session."""
    in_this_session(spark, monkeypatch)
    found = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=25)
    shutil.copytree(recorded.quiet_lake, found.lake)
    return found


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("recorded")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_a_deleted_table_and_a_cut_file_of_the_checkpoint_are_told_and_mended_row_for_row(
    recorded: Recorded, settings: Settings
) -> None:
    checkpoint = Path(checkpoint_of(settings))

    shutil.rmtree(Path(settings.lake) / "members")
    with pytest.raises(SetupError, match=r"has lost what the checkpoint .* says was written to it: members\. .*"):
        run(settings, available_now=True)
    assert not (Path(settings.lake) / "members").exists()

    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    cut = newest.read_bytes()[:-30]
    newest.write_bytes(cut)
    with pytest.raises(SetupError, match=rf"is broken \(offsets/{newest.name} is cut\): .* --rebuild-state"):
        run(settings, available_now=True)

    unless_too_busy(lambda: run(settings, available_now=True, rebuild_state=True))
    assert differences(without_rebuilds(contents(Path(settings.lake))), contents(recorded.lake)) == {}
    (aside,) = checkpoint.parent.glob(f"{checkpoint.name}.lost-*")
    assert (aside / "offsets" / newest.name).read_bytes() == cut

    # It continues by itself, with nothing left to do.
    unless_too_busy(lambda: run(settings, available_now=True))
    assert differences(without_rebuilds(contents(Path(settings.lake))), contents(recorded.lake)) == {}


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("recorded")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_a_lost_file_of_the_state_is_told_with_the_command(settings: Settings) -> None:
    for file in (Path(checkpoint_of(settings)) / "state").glob("0/[0-9]*/*"):
        if file.is_file():
            file.unlink()
    with pytest.raises(SetupError, match=r"is broken \(Spark says CANNOT_LOAD_STATE_STORE.*\): .* --rebuild-state"):
        unless_too_busy(lambda: run(settings, available_now=True))


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("recorded")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_a_checkpoint_keeps_its_state_partitions_and_says_so_until_a_rebuild_makes_others(
    recorded: Recorded, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = Path(checkpoint_of(settings))

    def partitions() -> int:
        return len([folder for folder in (checkpoint / "state" / "0").iterdir() if folder.name.isdecimal()])

    changed = settings.model_copy(update={"job": settings.job.model_copy(update={"shuffle_partitions": 3})})
    unless_too_busy(lambda: run(changed, available_now=True))
    assert partitions() == 2
    assert "job.shuffle_partitions is 3, but the checkpoint" in caplog.text
    assert "began with 2 and keeps them: to change that, run evenkeel run --rebuild-state once" in caplog.text

    unless_too_busy(lambda: run(changed, available_now=True, rebuild_state=True))
    assert partitions() == 3
    assert differences(without_rebuilds(contents(Path(settings.lake))), contents(recorded.lake)) == {}
