"""The folder that is the bus, as settings and the check at the start see it; what is written to it: tests/bus."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streaming.config import BusFolder, KafkaSettings, RocketMQSettings, Settings, load_settings
from streaming.probe import inspect
from streaming.probe.bus import FolderAppender, open_appender
from streaming.probe.deadline import Deadline

NOWHERE = RocketMQSettings(name_servers="127.0.0.1:1")


def check_of_the_folder(settings: Settings) -> tuple[str, str]:
    [line] = [line for line in inspect(settings) if line.what == "bus: folder"]
    return line.state, line.text


def test_the_bus_of_rocketmq_is_a_folder_of_its_lake_and_that_of_kafka_is_the_cluster() -> None:
    assert Settings(lake="s3://b/lake/", rocketmq=NOWHERE).bus_folder == "s3://b/lake/_bus"
    assert Settings(lake="lake").bus_folder is None
    on_kafka = Settings(rocketmq=NOWHERE, bus=KafkaSettings(bootstrap_servers="h:1"))
    assert (on_kafka.bus_folder, on_kafka.bus_kafka.bootstrap_servers) == (None, "h:1")
    given = Settings(bus=BusFolder(folder="/srv/bus"))
    assert (given.bus_folder, given.connections().keys()) == ("/srv/bus", {"kafka"})


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ('[bus]\nfolder = "s3://b/bus"', "s3://b/bus"),
        ('[bus]\nfolder = "a"\nbootstrap_servers = "h:1"', "a"),
        ('[bus]\nfolder = ""\nbootstrap_servers = "h:1"', None),
    ],
)
def test_a_folder_in_the_file_goes_before_a_kafka_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, folder: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("evenkeel.toml").write_text(text)
    assert load_settings().bus_folder == folder
    monkeypatch.setenv("EVENKEEL_BUS__FOLDER", "of the environment")
    assert load_settings().bus_folder == "of the environment"


def test_the_check_at_the_start_creates_nothing_and_says_where_the_bus_will_be(tmp_path: Path) -> None:
    settings = Settings(lake=str(tmp_path / "lake"), rocketmq=NOWHERE)
    assert check_of_the_folder(settings) == ("ok", f"{tmp_path}/lake/_bus/default, which the probe creates")
    assert list(tmp_path.iterdir()) == []
    open_appender(settings)
    assert check_of_the_folder(settings) == ("ok", f"{tmp_path}/lake/_bus/default")


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    state, text = check_of_the_folder(Settings(rocketmq=NOWHERE, bus=BusFolder(folder=str(tmp_path / "file"))))
    assert state == "wrong"
    assert text == (
        f"The probe cannot write to {tmp_path}/file/default: give this user {tmp_path}/file, or set bus.folder "
        "otherwise."
    )
    if os.geteuid():  # root may write anywhere
        (tmp_path / "closed").mkdir(mode=0o500)
        assert (
            check_of_the_folder(Settings(rocketmq=NOWHERE, bus=BusFolder(folder=str(tmp_path / "closed"))))[0]
            == "wrong"
        )


def test_many_records_are_appended_in_parts_with_one_range_of_offsets(tmp_path: Path) -> None:
    bus = open_appender(Settings(lake=str(tmp_path), rocketmq=NOWHERE))
    assert isinstance(bus, FolderAppender)
    records = [(b"k", bytes(1_500_000))] * 7
    got = bus.append("evenkeel.events", records, 1_000, Deadline.after(60))
    assert [(one.partition, one.offset) for one in got] == [(0, offset) for offset in range(7)]
    names = sorted(path.name for path in (tmp_path / "_bus" / "default" / "evenkeel.events").iterdir())
    assert names == [f"{offset:020}" for offset in (0, 2, 4, 6)]
