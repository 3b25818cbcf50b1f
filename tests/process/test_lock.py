"""Two programs of a kind on one lake: the second is refused as long as the first lives."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.config import Settings, environment_of
from streaming.exceptions import SetupError
from streaming.process import ALERTER, JOB, UP, lock, only_one

_HOLDS = """
import sys, time
from streaming.process import only_one
with only_one(*sys.argv[1:]):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def _another(*given: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _HOLDS, *given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "held\n"
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.parametrize("lake", ["a folder", "hdfs://host/lake"])
def test_another_one_is_refused_by_its_pid_until_the_first_is_gone_even_by_kill_9(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(lock.tempfile, "tempdir", None)
    lake = str(tmp_path / "lake") if lake == "a folder" else lake
    with _another(JOB, lake, "mine") as first:
        told = rf"^Another job runs for the cluster 'mine' with the lake {lake} \(process {first.pid}\): stop that one"
        with pytest.raises(SetupError, match=told), only_one(JOB, lake, "mine"):
            pass
        with only_one(ALERTER, lake, "mine"), only_one(JOB, lake, "yours"), only_one(JOB, f"{lake}2", "mine"):
            pass
        first.kill()
        first.wait()
        with only_one(JOB, lake, "mine"):
            pass


def test_a_second_job_says_in_one_sentence_who_works(tmp_path: Path) -> None:
    settings = Settings(lake=str(tmp_path / "lake"), cluster="mine")
    with only_one(JOB, settings.lake, settings.cluster):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "streaming.job"],
            cwd=tmp_path,
            env=os.environ | environment_of(settings),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("Another job runs for the cluster 'mine' with the lake ")
    assert f"(process {os.getpid()})" in done.stderr
    assert "Traceback" not in done.stderr


def test_locks_are_this_users_alone_and_the_lake_is_as_readable_as_ever(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with only_one(UP, str(tmp_path / "lake"), "mine"):
            pass
    finally:
        os.umask(before)
    rights = {p.relative_to(tmp_path).as_posix(): stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*")}
    assert rights == {
        "lake": 0o755,
        "lake/_locks": 0o755,
        "lake/_locks/mine": 0o700,
        "lake/_locks/mine/evenkeel-up.lock": 0o600,
    }


def test_a_lake_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    with (
        pytest.raises(SetupError, match=r"The folder .*/lake/_locks/c cannot be written \(Not a directory\)"),
        only_one(UP, str(tmp_path / "lake"), "c"),
    ):
        pass


def test_a_folder_of_somebody_else_among_temporary_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"evenkeel-{os.getuid()}").symlink_to(tmp_path / "theirs")
    with pytest.raises(SetupError, match="is not this user's folder"), only_one(JOB, "hdfs://host/lake", "c"):
        pass


def test_a_file_system_without_locks_is_told_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def without(_file: object, _how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", without)
    with only_one(JOB, str(tmp_path), "c"):
        pass
    assert "cannot be locked (No locks available): make sure that no second job runs" in caplog.text
