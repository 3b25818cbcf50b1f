"""What the probe writes to, topics or a folder: created with the right settings, or refused with one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from streaming.config import BusFolder, KafkaSettings, ProbeSettings, RocketMQSettings, Settings, load_settings
from streaming.exceptions import SetupError
from streaming.probe import Probe, check, inspect
from streaming.probe.bus import open_appender
from streaming.probe.deadline import Deadline
from streaming.probe.topics import OwnTopic, wrong_settings
from tests.probe.witness import Cluster


def configuration(cluster: Cluster, topic: str) -> dict[str, str]:
    found = cluster.admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
    return {name: entry["value"] for name, entry in found["topic"][topic].items()}


@pytest.mark.kafka
def test_missing_topics_are_created_with_sound_settings(cluster: Cluster, settings: Settings) -> None:
    with Probe(settings) as probe:
        probe.round()
    probe_settings = settings.probe
    described = {
        topic["name"]: len(topic["partitions"])
        for topic in cluster.admin.describe_topics([probe_settings.rounds_topic, probe_settings.events_topic])
    }
    assert described == {probe_settings.rounds_topic: 1, probe_settings.events_topic: 4}
    for topic in described:
        config = configuration(cluster, topic)
        assert config["message.timestamp.type"] == "LogAppendTime"
        assert config["cleanup.policy"] == "delete"
        assert config["retention.ms"] == str(3 * 86_400_000)
        # Only whole segments are deleted: with segments of a week three days would become ten.
        assert int(config["segment.ms"]) <= 86_400_000
        assert config["unclean.leader.election.enable"] == "false"


@pytest.mark.kafka
def test_topics_that_exist_are_used_as_they_are(cluster: Cluster, settings: Settings) -> None:
    config = {"message.timestamp.type": "LogAppendTime", "retention.ms": "60000"}
    cluster.admin.create_topics(
        {
            settings.probe.rounds_topic: {"num_partitions": 1, "replication_factor": 1, "configs": config},
            settings.probe.events_topic: {"num_partitions": 7, "replication_factor": 1},
        },
        wait_for_metadata=True,
    )
    assert check(settings) == []
    with Probe(settings) as probe:
        probe.round()
    assert configuration(cluster, settings.probe.rounds_topic)["retention.ms"] == "60000"


@pytest.mark.kafka
def test_a_rounds_topic_with_the_writers_time_is_refused(cluster: Cluster, settings: Settings) -> None:
    name = settings.probe.rounds_topic
    cluster.admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    sentence = (
        f"Topic {name} has message.timestamp.type=CreateTime, and rounds need the broker's time: set it with "
        f"kafka-configs --alter --topic {name} --add-config message.timestamp.type=LogAppendTime."
    )
    assert check(settings) == [sentence]
    # Without the right to read the configuration, the opening record shows it.
    with Probe(settings) as probe, pytest.raises(SetupError) as refused:
        probe.round()
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("topic", "is_wrong"),
    [
        (OwnTopic(1, {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}), None),
        (OwnTopic(1, {}), None),
        (OwnTopic(2, {}), "has 2 partitions, and rounds need a total order"),
        (OwnTopic(1, {"cleanup.policy": "compact"}), "is compacted"),
        (OwnTopic(1, {"message.timestamp.type": "CreateTime"}), "has message.timestamp.type=CreateTime"),
    ],
)
def test_a_rounds_topic_that_cannot_hold_rounds_is_refused(topic: OwnTopic, is_wrong: str | None) -> None:
    told = wrong_settings({"evenkeel.rounds": topic}, ProbeSettings())
    expected = [] if is_wrong is None else [f"Topic evenkeel.rounds {is_wrong}"]
    assert [sentence[: len(start)] for sentence, start in zip(told, expected, strict=True)] == expected


@pytest.mark.kafka
def test_settings_that_the_cluster_refuses_are_said_in_a_sentence(cluster: Cluster, settings: Settings) -> None:
    too_many = settings.probe.model_copy(update={"replication_factor": 3})
    [problem] = check(settings.model_copy(update={"probe": too_many}))
    assert str(problem).startswith(
        f"Topic {settings.probe.rounds_topic} could not be created (InvalidReplicationFactor"
    )


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
    records = [(b"k", bytes(1_500_000))] * 7
    got = bus.append("evenkeel.events", records, 1_000, Deadline.after(60))
    assert [(one.partition, one.offset) for one in got] == [(0, offset) for offset in range(7)]
    names = sorted(path.name for path in (tmp_path / "_bus" / "default" / "evenkeel.events").iterdir())
    assert names == [f"{offset:020}" for offset in (0, 2, 4, 6)]
