from __future__ import annotations

from pathlib import Path

from streaming.process import LogFollower, logs_of


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
