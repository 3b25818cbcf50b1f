from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.exceptions import SetupError
from streaming.process import ALERTER, JOB, LogFollower, hold_logs, logs_of, only_one


def test_the_logs_lie_in_the_lake_or_here_when_it_is_no_folder() -> None:
    assert logs_of("/data/lake", "mine") == Path("/data/lake/_logs/mine")
    assert logs_of("s3://bucket/lake", "mine") == Path("logs/mine")


def test_what_is_appended_from_now_on_is_told_line_by_line_with_the_name_of_the_process(tmp_path: Path) -> None:
    job, probe = tmp_path / "job.log", tmp_path / "probe.log"
    job.write_text("long ago\n")
    told: list[str] = []
    follower = LogFollower(tmp_path, told.append)
    with job.open("a") as file:
        file.write("one\ntw")
    probe.write_text("hello\n")
    follower.poll()
    with job.open("a") as file:
        file.write("o\n")
    follower.close()
    assert told == ["job     | one\n", "probe   | hello\n", "job     | two\n"]


def test_a_rotation_loses_nothing(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("")
    told: list[str] = []
    follower = LogFollower(tmp_path, told.append)
    with log.open("a") as file:
        file.write("before\n")
        follower.poll()
        file.write("last of the old\n")
    log.rename(tmp_path / "job.log.1")
    log.write_text("first of the new\n")
    follower.poll()
    follower.poll()
    assert told == ["job     | before\n", "job     | last of the old\n", "job     | first of the new\n"]


# Two programs of a kind on one machine: the second is refused as long as the first lives.


_HOLDS = """
import sys, time
from streaming.process import only_one
with only_one(*sys.argv[1:]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_another_one_is_refused_by_its_pid_until_the_first_is_gone_even_by_kill_9(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    command = [sys.executable, "-c", _HOLDS, JOB, lake, "mine"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "held\n"
        told = rf"^Another job for the cluster 'mine' with the lake {lake} runs \(process {first.pid} on \S+\): stop"
        with pytest.raises(SetupError, match=told), only_one(JOB, lake, "mine"):
            pass
        with only_one(ALERTER, lake, "mine"), only_one(JOB, lake, "yours"), only_one(JOB, f"{lake}2", "mine"):
            pass
        first.kill()
        # Dead, and not yet collected by its parent.
        os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
        with only_one(JOB, lake, "mine"):
            pass


def test_the_logs_of_up_are_this_users_alone_and_a_second_up_is_refused(tmp_path: Path) -> None:
    logs = tmp_path / "lake" / "_logs" / "mine"
    before = os.umask(0o022)
    try:
        another = pytest.raises(SetupError, match=r"^Another evenkeel up of this cluster runs")
        with hold_logs(logs), another, hold_logs(logs):
            pass
    finally:
        os.umask(before)
    with hold_logs(logs):
        pass
    rights = {p.relative_to(tmp_path).as_posix(): stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*")}
    assert rights == {
        "lake": 0o755,
        "lake/_logs": 0o755,
        "lake/_logs/mine": 0o700,
        "lake/_logs/mine/up.lock": 0o600,
    }


def test_a_lake_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    with (
        pytest.raises(SetupError, match=r"The folder .*/lake/_logs/c cannot be written \(Not a directory\)"),
        hold_logs(tmp_path / "lake" / "_logs" / "c"),
    ):
        pass
