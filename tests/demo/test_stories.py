"""The stories are complete and independent, their junk is of the declared kinds, and their checks are queries."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import pytest

from streaming.demo.evidence import Evidence
from streaming.demo.log_writer import JunkRecord, junk
from streaming.demo.stories import ALL_STORIES, check_stories
from streaming.offsets_log import partition_for
from streaming.tables import DeltaLake, LakeReader


def test_no_group_belongs_to_two_stories() -> None:
    assert [story.number for story in ALL_STORIES] == list(range(1, 17))
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
    # Aborted and expired offsets apart, a story that left no trace is missing.
    told = {int(sentence.split()[1].rstrip(":")) for sentence in missing if sentence.startswith("story")}
    assert told == set(range(1, 17))


def test_junk_is_a_few_hundred_records_of_thirteen_kinds_the_same_each_time() -> None:
    records = list(junk())
    assert records == list(junk())
    kinds = Counter(record.kind for record in records)
    assert set(kinds.values()) == {24}
    assert len(kinds) == 13
    assert Counter(record.expected for record in records) == {
        "undecodable": 240,
        "unknown_type": 24,
        "newer_version": 48,
    }


@pytest.mark.parametrize("record", [r for r in junk() if r.expected != "undecodable"], ids=lambda r: r.kind)
def test_unknown_types_and_newer_versions_are_few_and_none_that_kafka_knows(record: JunkRecord) -> None:
    (key_type,) = struct.unpack_from(">h", record.key)
    (version,) = struct.unpack_from(">h", record.value)
    if record.expected == "unknown_type":
        assert (key_type, version) in {(77, 0), (300, 0), (-3, 0)}
    else:
        assert (key_type, version) in {(1, 9), (2, 77)}
