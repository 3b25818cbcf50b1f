"""Two brokers, one of which dies while it leads the partitions being read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from streaming.demo.broker import EmbeddedBroker
from streaming.job.source.fetch import OffsetRange
from streaming.record_batches import FetchedBatch, walk
from tests.job.source.readers import reader

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedBroker, EmbeddedBroker]]:
    """A broker with the controller, and a second broker in the same cluster."""
    # Short, so that a dead broker's partitions move within a second or two.
    fast = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "500"}
    with EmbeddedBroker(tmp_path_factory.mktemp("first"), overrides=fast) as first:
        folder = tmp_path_factory.mktemp("second")
        second = EmbeddedBroker(folder)
        second = EmbeddedBroker(
            folder, port=int(second.bootstrap.split(":")[1]), overrides=fast | follower(first, second)
        )
        join(first.folder, folder)
        with second:
            yield first, second


def settings(folder: Path, name: str) -> dict[str, str]:
    lines = (folder / name).read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def follower(first: EmbeddedBroker, second: EmbeddedBroker) -> dict[str, str]:
    return {
        "process.roles": "broker",
        "node.id": "2",
        "controller.quorum.voters": settings(first.folder, "server.properties")["controller.quorum.voters"],
        "listeners": f"PLAINTEXT://{second.bootstrap}",
        "advertised.listeners": f"PLAINTEXT://{second.bootstrap}",
    }


def join(first: Path, second: Path) -> None:
    """Format the second broker's folder for the first one's cluster."""
    cluster = settings(first / "data", "meta.properties")["cluster.id"]
    (second / "data").mkdir()
    (second / "data" / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id=2\n", "utf-8")


def test_a_leader_that_dies_in_the_middle_is_followed_to_the_next(pair: tuple[EmbeddedBroker, EmbeddedBroker]) -> None:
    first, second = pair
    admin = KafkaAdminClient(bootstrap_servers=first.bootstrap)
    # Each broker leads one partition; both partitions are replicated on both.
    admin.create_topics([NewTopic("t", -1, -1, replica_assignments={0: [2, 1], 1: [1, 2]})])
    producer = KafkaProducer(bootstrap_servers=first.bootstrap, acks="all")
    for number in range(2_000):
        producer.send("t", b"%d" % number, partition=number % 2)
    producer.flush()
    producer.close()
    slow = reader(first.bootstrap, max_partition_fetch_bytes=500, max_poll_records=1)
    (described,) = admin.describe_topics(["t"])
    assert [p["leader_id"] for p in sorted(described["partitions"], key=lambda p: p["partition_index"])] == [2, 1]
    offsets: dict[int, list[int]] = {0: [], 1: []}
    for where, item in slow.read([OffsetRange("t", partition, 0, 1_000) for partition in (0, 1)]):
        assert isinstance(item, FetchedBatch), item
        if not offsets[0] and where.partition == 0:
            second.kill()
        offsets[where.partition].extend(record[0] for record in walk(item, where.start, where.end))
    assert offsets == {0: list(range(1_000)), 1: list(range(1_000))}
    admin.close()
