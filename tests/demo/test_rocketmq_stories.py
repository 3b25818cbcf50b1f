"""The stories of the RocketMQ demo agree with each other, with findings and rules; it watches its own cluster alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from streaming.config import KafkaSettings, environment_of, load_settings
from streaming.demo.rocketmq.run import _settings
from streaming.demo.rocketmq.stories import BROKERS, FIRST_PASS_S, REGISTERS, STORIES
from streaming.exceptions import SetupError
from streaming.places import shipped
from streaming.tables import table_named


def test_there_are_five_ways_to_a_split_brain_and_sound_groups() -> None:
    assert [story.number for story in STORIES] == [0, 0, 1, 2, 3, 4, 5]
    assert [story.found | story.alerts for story in STORIES if story.number == 0] == [frozenset(), frozenset()]


def test_no_group_or_topic_belongs_to_two_stories() -> None:
    names = [name for story in STORIES for name in (story.group, story.topic)]
    assert len(set(names)) == len(names)


def test_only_the_story_of_routes_uses_the_broker_that_one_name_server_does_not_know() -> None:
    assert {story.number for story in STORIES if set(story.brokers) & REGISTERS.keys()} == {2}
    assert {broker for story in STORIES for broker in story.brokers} == set(BROKERS)


def test_every_finding_and_rule_exists() -> None:
    findings = next(column.comment for column in table_named("group_health").columns if column.name == "findings")
    rules = {rule["name"] for rule in yaml.safe_load(shipped("alerts.yaml").read_text(encoding="utf-8"))["rules"]}
    for story in STORIES:
        assert all(finding in findings for finding in story.found | story.possible)
        assert story.alerts | story.possible_alerts <= rules


def test_a_client_id_used_twice_is_told_within_the_first_pass() -> None:
    assert FIRST_PASS_S > 150


def test_the_programs_watch_the_demo_s_cluster_and_write_to_its_own_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenkeel.toml"
    file.write_text('[bus]\nbootstrap_servers = "bus:9092"\n', encoding="utf-8")
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    settings = _settings("127.0.0.1:1", ("127.0.0.1:2", "127.0.0.1:3"), tmp_path / "lake")
    for name, value in environment_of(settings).items():
        monkeypatch.setenv(name, value)
    found = load_settings()
    assert found.bus == KafkaSettings(bootstrap_servers="127.0.0.1:1")
    assert found.rocketmq is not None
    assert found.rocketmq.addresses == ("127.0.0.1:2", "127.0.0.1:3")


def test_the_kafka_demo_refuses_settings_that_name_a_rocketmq_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streaming.demo.run import _settings as of_kafka  # noqa: PLC0415

    monkeypatch.setenv("EVENKEEL_ROCKETMQ__NAME_SERVERS", "127.0.0.1:2")
    with pytest.raises(SetupError, match=r"The settings name a RocketMQ cluster, .* or as evenkeel demo --rocketmq"):
        of_kafka("127.0.0.1:1", tmp_path / "lake", "http://127.0.0.1:2")
