"""The demo's traffic is real: its groups exist in the broker, and its journal agrees with the log."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition

from streaming.demo.stories import ALL_STORIES
from tests.e2e.conftest import Recorded
from tests.e2e.journal import UNCOUNTED

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.java,
    pytest.mark.spark,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(1),
]

_ROOT = Path(__file__).parents[2]

Commit = tuple[str, str, int]


def _text(raw: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", raw, at)
    return raw[at + 2 : at + 2 + size].decode(), at + 2 + size


def _log(bootstrap: str) -> Iterator[Any]:
    """Read the present offsets log, committed records only, with kafka-python's plain consumer."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level="read_committed")
    partitions = [TopicPartition("__consumer_offsets", partition) for partition in range(50)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    consumer.seek_to_beginning(*partitions)
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        for records in consumer.poll(1_000).values():
            yield from records
    consumer.close()


def _commits_in_the_log(bootstrap: str) -> Counter[Commit]:
    commits: Counter[Commit] = Counter()
    for record in _log(bootstrap):
        if record.key[:2] == b"\0\1" and record.value and b"junk-" not in record.key:
            try:
                group, at = _text(record.key, 2)
                topic, at = _text(record.key, at)
                (partition,) = struct.unpack_from(">i", record.key, at)
            except (struct.error, UnicodeDecodeError):
                continue  # junk
            commits[group, topic, partition] += 1
    return commits


def test_no_story_failed_and_all_members_settled(recorded: Recorded) -> None:
    played = recorded.recording.played
    assert [played.lines(what) for what in ("failed", "junk refused", "uncertain")] == [[], [], []]
    assert [line["unsettled"] for line in played.lines("quiet")] == [0]
    assert len(played.lines("end")) == 1


def test_every_storys_groups_were_there(recorded: Recorded) -> None:
    gone = {
        line["group"]
        for line in recorded.recording.played.lines("step")
        if "deleted" in line["did"] or "retention" in line["did"]
    }
    expected = {group for story in ALL_STORIES for group in story.groups}
    assert expected - recorded.recording.groups <= gone


def test_the_journal_counts_exactly_the_commits_that_the_open_transactions(recorded: Recorded) -> None:
    # Junk that happens to have the form of a key does not name a group of a story.
    counted = {group for story in ALL_STORIES for group in story.groups} - UNCOUNTED
    log = _commits_in_the_log(recorded.recording.bootstrap)
    found = {key: count for key, count in log.items() if key[0] in counted}
    assert dict(recorded.recording.played.commits) == found


def test_members_that_went_quiet_have_consumed_everything(recorded: Recorded) -> None:
    # (Without orders-range: a killed member's partitions may wait for its session to end when the stage goes quiet.)
    steady = {"orders-java", "clicks-pile-up", "orders-pinned", "transfers-exactly-once"}
    rows = [row for row in recorded.recording.tool_offsets if row.group in steady]
    assert {row.group for row in rows} == steady
    assert [row for row in rows if row.lag] == []


def test_aborted_offsets_are_not_what_the_group_has_committed(recorded: Recorded) -> None:
    assert recorded.recording.played.lines("aborted")
    rows = [row for row in recorded.recording.tool_offsets if row.group == "transfers-exactly-once"]
    assert len(rows) == 3
    assert all(row.current_offset == row.log_end_offset for row in rows)


@pytest.mark.nightly
def test_traffic_that_is_killed_leaves_no_member_behind(bootstrap: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streaming.demo.traffic", "--bootstrap", bootstrap]
    traffic = subprocess.Popen(
        [*command, "--folder", str(tmp_path), "--stories", "1"], env={**os.environ, "PYTHONPATH": str(_ROOT)}
    )
    parent = psutil.Process(traffic.pid)
    pause = threading.Event()
    members: list[psutil.Process] = []
    while not any("java" in child.name() for child in members):
        assert traffic.poll() is None
        pause.wait(0.05)
        members = parent.children(recursive=True)
    traffic.kill()
    traffic.wait(60)
    _, alive = psutil.wait_procs(members, timeout=60)
    assert alive == []
