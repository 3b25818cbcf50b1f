"""A few bytes that decompress to many: a writer must not be able to fill a reader's memory, or to stop it.

The limits apply to the address space of a separate process (`under_limit.py`), so the tests really measure it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer
from kafka import KafkaAdminClient

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.demo.broker import EmbeddedBroker
from streaming.offsets_log import partition_for
from streaming.probe import Probe
from tests.probe.witness import Cluster

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space of a process"),
    pytest.mark.turn(3),
]


def under_limit(scenario: str, *arguments: str) -> dict[str, Any]:
    """Run a scenario in a process with little memory."""
    path = str(ROOT)
    # (Each thread of a pool reserves address space for its stack and arena.)
    few_threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    env = os.environ | few_threads | {"PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, "-m", "tests.job.source.under_limit", scenario, *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4_000:]
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.nightly
def test_millions_of_junk_records_are_a_hundred_rows_and_a_count() -> None:
    found = under_limit("junk_in_the_log")
    assert (found["kept"], found["counted"]) == ({"__consumer_offsets": 101}, {"__consumer_offsets": 1_999_899})
    assert found["reasons"] == {"__consumer_offsets": ["key is null; every record of the offsets log has a key"]}


def test_broken_records_with_large_keys_are_a_hundred_rows_and_a_count() -> None:
    found = under_limit("keys_in_the_log")
    assert (found["kept"], found["counted"]) == ({"__consumer_offsets": 101}, {"__consumer_offsets": 10_899})


@pytest.mark.nightly
def test_commits_with_large_metadata_are_folded_before_they_fill_the_memory() -> None:
    found = under_limit("commits_in_the_log")
    assert (found["kept"], found["counted"]) == ({}, {})
    assert found["inputs"] == {"CommitWindow": 1}


@pytest.mark.soak  # (it decodes two million members: 40 s)
def test_records_of_very_many_members_are_handed_over_one_by_one_and_larger_ones_refused() -> None:
    found = under_limit("members_in_the_log")
    assert found["inputs"] == {"MembershipRecord": 14, "UnreadableMembership": 1}
    assert found["kept"] == {"__consumer_offsets": 1}
    (reason,) = found["reasons"]["__consumer_offsets"]
    assert reason == "value: members at byte 25 claims 200000 elements: more than any coordinator writes into a record"


@pytest.mark.nightly
def test_large_events_are_handed_over_as_they_come() -> None:
    found = under_limit("events")
    assert found["inputs"] == {"GroupObservation": 11_000}
    assert found["largest"] < 1024 * 1024


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[str]:
    # Foreign records in the offsets log put the broker's coordinators out of step.
    with EmbeddedBroker(tmp_path / "broker") as running:
        yield running.bootstrap


def write_bomb(bootstrap: str, topic: str, partition: int, key: bytes) -> int:
    """One zstd batch with 400 MB of data; returns its first offset."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            # Only a client with this id may write to an internal topic.
            "client.id": "__admin_client",
            "compression.type": "zstd",
            "message.max.bytes": 1_000_000_000,
            "batch.size": 1_000_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            "linger.ms": 500,
        }
    )
    offsets: list[int] = []

    def written(error: object, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    value = bytes(4_000_000)
    for _ in range(100):
        producer.produce(topic, value, key, partition=partition, on_delivery=written)
    assert producer.flush(120) == 0
    assert len(offsets) == 100
    return min(offsets)


@pytest.mark.nightly
@pytest.mark.kafka
@pytest.mark.timeout(900)
def test_bombs_in_all_three_topics_stop_neither_the_probe_nor_the_job(
    own_broker: str, unique: str, tmp_path: Path
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=own_broker)
    seen = Cluster(own_broker, unique, admin)
    topic = seen.topic()
    group = seen.commit("stays", topic, [1, 2, 3])
    settings = Settings(
        cluster=unique,
        kafka=KafkaSettings(bootstrap_servers=own_broker),
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(
            interval_ms=200,
            events_topic=f"{unique}.events",
            rounds_topic=f"{unique}.rounds",
            cluster_topics=False,
        ),
    )
    with Probe(settings) as probe:
        before = probe.round()
    away = (partition_for(group, len(before.log)) + 1) % len(before.log)
    (events_partition,) = map(int, before.events)
    for place, partition in (
        ("__consumer_offsets", away),
        (settings.probe.events_topic, events_partition),
        (settings.probe.rounds_topic, 0),
    ):
        write_bomb(own_broker, place, partition, b"\x00\x01")
    seen.commit("stays", topic, [4, 5, 6])
    admin.close()
    file = tmp_path / "settings.json"
    file.write_text(settings.model_dump_json(), encoding="utf-8")

    found = under_limit("cluster", str(file))

    assert found["closed"][0] > before.round + 100
    assert found["groups"] == 1
    assert found["inputs"]["GroupObservation"] == 3
    assert found["inputs"]["CommitWindow"] == 6
    topics = {"__consumer_offsets", settings.probe.events_topic, settings.probe.rounds_topic}
    assert set(found["reasons"]) == topics
    for reasons in found["reasons"].values():
        assert any(reason.endswith("taken apart: it has more than 67,108,864 bytes uncompressed") for reason in reasons)
