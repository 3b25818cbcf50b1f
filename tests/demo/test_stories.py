"""The stories are complete and independent, their junk is of the declared kinds; the course of a demo."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from streaming.config import KafkaSettings, ServeSettings, environment_of, load_settings
from streaming.demo.evidence import Evidence, exactly_these, judged, lateness
from streaming.demo.log_writer import JUNK, JunkRecord
from streaming.demo.ports import check_port_is_free, free_port
from streaming.demo.run import _page_port, _says_quiet, _settings
from streaming.demo.stories import ALL_STORIES, check_stories
from streaming.offsets_log import RECORD_TYPES, Rejected, UnknownKey, UnknownVersion, decode_record, partition_for
from streaming.tables import DeltaLake, LakeReader


def test_no_group_belongs_to_two_stories() -> None:
    assert [story.number for story in ALL_STORIES] == list(range(1, 20))
    groups = [group for story in ALL_STORIES for group in story.groups]
    assert len(groups) == len(set(groups))


@pytest.mark.parametrize("group", ["settlement-exactly-once", "logins-storm"])
def test_what_a_story_does_to_a_partition_of_the_log_concerns_no_other_story(group: str) -> None:
    others = {partition_for(other, 50) for story in ALL_STORIES for other in story.groups if other != group}
    assert partition_for(group, 50) not in others


def test_stories_that_share_a_topic_agree_on_its_partitions_and_records_flow_into_each() -> None:
    seen: dict[str, int] = {}
    for story in ALL_STORIES:
        for topic, partitions in story.topics.items():
            assert seen.setdefault(topic, partitions) == partitions, topic
    assert seen.keys() == {topic for story in ALL_STORIES for topic in story.rates}


def test_a_demo_without_traffic_has_no_story_and_every_check_runs(tmp_path: Path) -> None:
    DeltaLake(str(tmp_path / "lake")).create()
    (tmp_path / "journal.jsonl").touch()
    missing = check_stories(Evidence(LakeReader(tmp_path / "lake"), tmp_path / "journal.jsonl"))
    # Aborted offsets apart, a story that left no trace is missing.
    told = {int(sentence.split()[1].rstrip(":")) for sentence in missing if sentence.startswith("story")}
    assert told == set(range(1, 20))


@pytest.mark.parametrize("record", JUNK, ids=lambda record: record.kind)
def test_junk_is_of_the_kind_that_it_says(record: JunkRecord) -> None:
    kinds = {Rejected: "undecodable", UnknownKey: "unknown_type", UnknownVersion: "newer_version"}
    assert kinds[type(decode_record(RECORD_TYPES, record.key, record.value))] == record.expected


# What a demo on a machine that is too slow leaves unjudged.


ALERTS = {
    ("drift", "clicks-pile-up"): ("firing", "resolved"),
    ("stuck_rebalance", "reports-stuck-rebalance"): ("firing", "resolved"),
    ("undecodable", None): ("firing",),
}
LATE = lateness(ticks_s=6.2, rounds_s=0.3)


class Alerts(Evidence):
    """Evidence with nothing but alerts: notified states by rule and group."""

    def __init__(self, raised: Mapping[tuple[str, str | None], Sequence[str]]) -> None:
        self._raised = raised

    def rows(self, sql: str, *parameters: object) -> list[dict[str, object]]:
        if parameters or "min(decision)" in sql:
            return []
        return [{"rule": r, "group_id": g, "state": state} for (r, g), of in self._raised.items() for state in of]


def sentences(changed: Mapping[tuple[str, str | None], Sequence[str]]) -> list[str]:
    return list(exactly_these(ALERTS)(Alerts(ALERTS | dict(changed))))


def test_the_machine_is_too_slow_where_the_traffic_or_the_rounds_stood_still() -> None:
    assert lateness(ticks_s=1.9, rounds_s=2.0) is None
    assert "stood still for 6.2 s" in LATE
    assert lateness(ticks_s=0.1, rounds_s=2.1) is not None


def test_an_alert_that_fires_twice_is_wrong_unless_the_machine_was_too_slow() -> None:
    twice = ["firing", "resolved"] * 2
    for alert in [("stuck_rebalance", "reports-stuck-rebalance"), ("drift", "clicks-pile-up")]:
        [sentence] = sentences({alert: twice})
        assert judged([sentence], None) == ([sentence], [])
        assert judged([sentence], LATE) == ([], [sentence, LATE])


@pytest.mark.parametrize(
    "changed", [{("drift", "clicks-pile-up"): []}, {("drift", "orders-range"): ["firing"]}, {("undecodable", None): []}]
)
def test_no_machine_is_slow_enough_for_a_wrong_verdict(changed: dict[tuple[str, str | None], list[str]]) -> None:
    found = sentences(changed)
    assert len(found) == 1
    assert judged(found, LATE) == (found, [])


def test_the_programs_of_the_demo_write_nothing_to_the_user_s_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenkeel.toml"
    file.write_text('[bus]\nbootstrap_servers = "bus:9092"\nsecurity_protocol = "SASL_SSL"\n', encoding="utf-8")
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    assert load_settings().bus is not None
    for name, value in environment_of(_settings("127.0.0.1:1", tmp_path / "lake")).items():
        monkeypatch.setenv(name, value)
    assert load_settings().bus == load_settings().kafka == KafkaSettings(bootstrap_servers="127.0.0.1:1")


def test_a_whole_line_at_the_end_of_the_journal_says_that_the_stage_is_quiet(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    long = (json.dumps({"what": "commits", "group": "g" * 200}) + "\n") * 2_000
    for text, is_quiet in (
        (long, False),
        (long + '{"what": "qui', False),
        (long + '{"what": "quiet", "unsettled": 0}\n{"what": "end"}\n', True),
        ('{"what": "quiet"}\n', True),
    ):
        journal.write_text(text, encoding="utf-8")
        assert _says_quiet(journal) is is_quiet


def test_the_page_gets_another_port_where_its_own_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    own = free_port()
    monkeypatch.setattr("streaming.demo.run.ServeSettings", lambda: ServeSettings(listen=f"127.0.0.1:{own}"))
    assert _page_port() == own
    with socket.create_server(("127.0.0.1", own)):
        other = _page_port()
    assert other != own
    check_port_is_free(other)
