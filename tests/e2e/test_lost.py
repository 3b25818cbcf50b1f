"""A broken checkpoint and a deleted table: one sentence each, and one command that mends both."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.config import Settings, checkpoint_of
from streaming.exceptions import SetupError
from streaming.job.run import run
from tests.e2e.conftest import Recorded, in_this_session
from tests.e2e.lakes import contents, differences, without_rebuilds
from tests.e2e.recording import settings_for
from tests.patience import unless_too_busy

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(3),
]

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def settings(recorded: Recorded, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A job that was lost when all was quiet; since then all members have left. It runs in this process's session."""
    in_this_session(spark, monkeypatch)
    found = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=25)
    shutil.copytree(recorded.quiet_lake, found.lake)
    return found


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


@pytest.mark.nightly
def test_a_lost_file_of_the_state_is_told_with_the_command(settings: Settings) -> None:
    for file in (Path(checkpoint_of(settings)) / "state").glob("0/[0-9]*/*"):
        if file.is_file():
            file.unlink()
    with pytest.raises(SetupError, match=r"is broken \(Spark says CANNOT_LOAD_STATE_STORE.*\): .* --rebuild-state"):
        unless_too_busy(lambda: run(settings, available_now=True))


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
