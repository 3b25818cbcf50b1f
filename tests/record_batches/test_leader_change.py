"""Two brokers, one of which dies while it leads the partitions being read."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from streaming.record_batches import FetchedBatch, OffsetRange, walk
from tests.pair_of_brokers import Pair
from tests.record_batches.readers import reader

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("pair"), pytest.mark.turn(6)]


@pytest.mark.nightly
def test_a_leader_that_dies_in_the_middle_is_followed_to_the_next(pair: Pair, unique: str) -> None:
    first, second = pair.first, pair.second
    admin = KafkaAdminClient(bootstrap_servers=first.bootstrap)
    # Each broker leads one partition; both partitions are replicated on both.
    admin.create_topics([NewTopic(unique, -1, -1, replica_assignments={0: [2, 1], 1: [1, 2]})])
    producer = KafkaProducer(bootstrap_servers=first.bootstrap, acks="all")
    for number in range(2_000):
        producer.send(unique, b"%d" % number, partition=number % 2)
    producer.flush()
    producer.close()
    slow = reader(first.bootstrap, max_partition_fetch_bytes=500, max_poll_records=1)
    (described,) = admin.describe_topics([unique])
    assert [p["leader_id"] for p in sorted(described["partitions"], key=lambda p: p["partition_index"])] == [2, 1]
    offsets: dict[int, list[int]] = {0: [], 1: []}
    for where, item in slow.read([OffsetRange(unique, partition, 0, 1_000) for partition in (0, 1)]):
        assert isinstance(item, FetchedBatch), item
        if not offsets[0] and where.partition == 0:
            second.kill()
        offsets[where.partition].extend(record[0] for record in walk(item, where.start, where.end))
    assert offsets == {0: list(range(1_000)), 1: list(range(1_000))}
    admin.close()
    second.start()
