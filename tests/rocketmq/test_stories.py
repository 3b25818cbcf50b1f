"""The stories of the RocketMQ demo agree with each other, with findings and rules; it watches its own cluster alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from streaming.config import environment_of, load_settings
from streaming.demo.run import _settings as settings_of_kafka_demo
from streaming.exceptions import SetupError
from streaming.places import shipped
from streaming.tables import table_named
from tests.rocketmq.demo import REGISTERS, STORIES, demo_settings


def test_groups_and_topics_are_unique_and_only_one_story_has_name_servers_that_differ() -> None:
    names = [name for story in STORIES for name in (story.group, story.topic)]
    assert len(set(names)) == len(names)
    assert {story.number for story in STORIES if set(story.brokers) & REGISTERS.keys()} == {2}


def test_every_finding_and_rule_exists() -> None:
    findings = next(column.comment for column in table_named("group_health").columns if column.name == "findings")
    rules = {rule["name"] for rule in yaml.safe_load(shipped("alerts.yaml").read_text(encoding="utf-8"))["rules"]}
    for story in STORIES:
        assert all(finding in findings for finding in story.found | story.possible)
        assert story.alerts | story.possible_alerts <= rules


def test_the_programs_watch_the_demo_s_cluster_and_write_to_a_folder_of_its_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenkeel.toml"
    file.write_text('[bus]\nbootstrap_servers = "bus:9092"\n', encoding="utf-8")
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    settings = demo_settings(("127.0.0.1:2", "127.0.0.1:3"), tmp_path / "lake")
    for name, value in environment_of(settings).items():
        monkeypatch.setenv(name, value)
    found = load_settings()
    assert found.bus_folder == str(tmp_path / "lake" / "_bus")
    assert found.rocketmq.addresses == ("127.0.0.1:2", "127.0.0.1:3")


def test_the_kafka_demo_refuses_settings_that_name_a_rocketmq_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_ROCKETMQ__NAME_SERVERS", "127.0.0.1:2")
    with pytest.raises(SetupError, match=r"The settings name a RocketMQ cluster"):
        settings_of_kafka_demo("127.0.0.1:1", tmp_path / "lake")
