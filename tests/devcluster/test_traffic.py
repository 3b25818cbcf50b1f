"""The demo's traffic is real: its groups are in the broker, its journal tells what the log holds."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from streaming.devcluster import DEMO_OVERRIDES
from streaming.devcluster.broker import EmbeddedBroker
from streaming.devcluster.java_tools import describe_all_groups
from streaming.devcluster.stories import ALL_STORIES

pytestmark = [pytest.mark.kafka, pytest.mark.java]

_ROOT = Path(__file__).parents[2]
_JAVA_GROUP = "orders-java"  # commits by itself, so its commits are not in the journal

_SECONDS = 38
"""All groups are there, half of the junk, the killed member's process runs. The rest is for the demo's own checks."""

Commit = tuple[str, str, int]


def _start(broker: EmbeddedBroker, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "streaming.devcluster.traffic", "--bootstrap", broker.bootstrap]
    return subprocess.Popen([*command, "--folder", str(folder), *more], env={**os.environ, "PYTHONPATH": str(_ROOT)})


def _journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def _text(raw: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", raw, at)
    return raw[at + 2 : at + 2 + size].decode(), at + 2 + size


def _log(bootstrap: str) -> Iterator[Any]:
    """Read the offsets log as it is now, committed records only, with kafka-python's plain consumer."""
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


def _commits_in_the_journal(lines: list[dict[str, Any]]) -> Counter[Commit]:
    commits: Counter[Commit] = Counter()
    for line in lines:
        if line["what"] == "commits":
            for topic, counts in line["counts"].items():
                for partition, count in counts.items():
                    commits[line["group"], topic, int(partition)] += count
    return commits


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedBroker, Path]]:
    """A broker on which the traffic has played and gone quiet; its members have left."""
    folder = tmp_path_factory.mktemp("demo")
    with EmbeddedBroker(folder / "broker", overrides=DEMO_OVERRIDES) as broker:
        traffic = _start(broker, folder, "--seconds", str(_SECONDS))
        assert traffic.wait(180) == 0
        yield broker, folder


def test_every_storys_groups_are_in_the_broker(demo: tuple[EmbeddedBroker, Path]) -> None:
    broker, _ = demo
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    listed = {group["group_id"] for group in admin.list_groups()}
    admin.close()
    assert {group for story in ALL_STORIES for group in story.groups} <= listed


def test_no_story_failed_and_all_members_settled(demo: tuple[EmbeddedBroker, Path]) -> None:
    lines = _journal(demo[1])
    assert [line for line in lines if line["what"] in {"failed", "junk refused", "uncertain"}] == []
    assert [line["unsettled"] for line in lines if line["what"] == "quiet"] == [0]
    assert lines[-1]["what"] == "end"


def test_the_journal_counts_exactly_the_commits_that_the_log_holds(demo: tuple[EmbeddedBroker, Path]) -> None:
    broker, folder = demo
    journal = _commits_in_the_journal(_journal(folder))
    # Junk that happens to have the form of a key names no group of a story.
    counted = {group for story in ALL_STORIES for group in story.groups} - {_JAVA_GROUP}
    log = _commits_in_the_log(broker.bootstrap)
    assert dict(journal) == {key: count for key, count in log.items() if key[0] in counted}


def test_members_that_went_quiet_have_consumed_everything(demo: tuple[EmbeddedBroker, Path]) -> None:
    broker, _ = demo
    # (Not orders-range: a killed member's partitions may wait for its session to end when the stage goes quiet.)
    steady = {"orders-java", "clicks-pile-up", "orders-pinned", "transfers-exactly-once"}
    rows = [row for row in describe_all_groups(broker.bootstrap) if row.group in steady]
    assert {row.group for row in rows} == steady
    assert [row for row in rows if row.lag] == []


def test_each_generation_that_a_listener_saw_is_in_the_log(demo: tuple[EmbeddedBroker, Path]) -> None:
    broker, folder = demo
    seen = {(line["group"], line["generation"]) for line in _journal(folder) if line["what"] == "generation"}
    logged: set[tuple[str, int]] = set()
    for record in _log(broker.bootstrap):
        if record.key[:2] == b"\0\2" and record.value and b"junk-" not in record.key:
            group, _ = _text(record.key, 2)
            _, at = _text(record.value, 2)
            logged.add((group, struct.unpack_from(">i", record.value, at)[0]))
    assert len({group for group, _ in seen}) >= 12
    assert seen <= logged


def test_aborted_offsets_are_not_what_the_group_has_committed(demo: tuple[EmbeddedBroker, Path]) -> None:
    broker, folder = demo
    assert [line for line in _journal(folder) if line["what"] == "aborted"]
    rows = [row for row in describe_all_groups(broker.bootstrap) if row.group == "transfers-exactly-once"]
    assert len(rows) == 3
    assert all(row.current_offset == row.log_end_offset for row in rows)


def test_traffic_that_is_killed_leaves_no_member_behind(demo: tuple[EmbeddedBroker, Path], tmp_path: Path) -> None:
    broker, _ = demo
    traffic = _start(broker, tmp_path, "--stories", "1")
    parent = psutil.Process(traffic.pid)
    observed = iter(lambda: parent.children(recursive=True), None)
    members = next(children for children in observed if any("java" in child.name() for child in children))
    traffic.kill()
    traffic.wait(10)
    _, alive = psutil.wait_procs(members, timeout=30)
    assert alive == []
