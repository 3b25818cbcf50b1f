"""The contract with kafka-python: whole batches contain exactly the records of its plain consumer."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from streaming.demo.broker import EmbeddedBroker
from streaming.record_batches import FetchedBatch, Gone, OffsetRange, RangeReader, Record, UnreadableTopicError, walk
from tests.examples import examples
from tests.pair_of_brokers import Pair
from tests.record_batches.readers import consumer, reader


def records(reader: RangeReader, *ranges: OffsetRange) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {r.partition: [] for r in ranges}
    for where, item in reader.read(ranges):
        assert isinstance(item, FetchedBatch), item
        found[where.partition].extend(walk(item, where.start, where.end))
    return found


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, partitions, 1)])
    admin.close()


def fill(bootstrap: str, topic: str, count: int) -> None:
    """Create a topic of one partition with so many records."""
    create(bootstrap, topic)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(count):
        producer.send(topic, key=b"k%d" % number, value=b"v%d" % number, partition=0)
    producer.flush()
    producer.close()


@pytest.fixture(scope="module")
def mixed(bootstrap: str) -> Iterator[tuple[str, int]]:
    """A topic with plain, committed and aborted records, batches of many sizes, and three codecs; and its end."""
    topic = "fetch-contract"
    create(bootstrap, topic)
    random = Random(7)
    plain = [
        KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, linger_ms=3)
        for codec in (None, "gzip", "lz4", "zstd", "snappy")
    ]
    transactional = [
        KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"fetch-contract-{n}", linger_ms=3)
        for n in range(2)
    ]
    for producer in transactional:
        producer.init_transactions()
    for step in range(60):
        producer = random.choice(plain)
        for _ in range(random.randint(1, 12)):
            size = random.randint(0, 120)
            key, value = random.choice([(None, b"x" * size), (b"key", None), (b"key", b"x" * size)])
            producer.send(topic, key=key, value=value)
        producer.flush()
        if step % 2:
            ends = []
            for number, producer in enumerate(transactional):
                producer.begin_transaction()
                for _ in range(random.randint(1, 6)):
                    producer.send(topic, key=b"txn%d" % number, value=b"y" * random.randint(0, 90))
                producer.flush()
                ends.append(producer.commit_transaction if random.random() < 0.5 else producer.abort_transaction)
            random.shuffle(ends)
            for end in ends:
                end()
    for producer in plain + transactional:
        producer.close()
    asker = consumer(bootstrap)
    partition = TopicPartition(topic, 0)
    yield topic, asker.end_offsets([partition])[partition]
    asker.close()


def plainly(bootstrap: str, topic: str, end: int) -> list[Record]:
    """The plain consumer's records of the whole topic."""
    plain = consumer(bootstrap)
    partition = TopicPartition(topic, 0)
    plain.assign([partition])
    plain.seek(partition, 0)
    found: list[Record] = []
    while plain.position(partition) < end:
        for batch in plain.poll(timeout_ms=500).values():
            found.extend((r.offset, r.timestamp, r.key, r.value) for r in batch)
    plain.close()
    return found


@pytest.mark.kafka
@pytest.mark.turn(6)
def test_any_range_equals_the_plain_consumers(bootstrap: str, mixed: tuple[str, int]) -> None:
    topic, end = mixed
    expected = plainly(bootstrap, topic, end)
    assert 300 < len(expected) < end, "the topic holds aborted records and markers"
    random = Random(11)
    whole = reader(bootstrap)
    small = reader(bootstrap, max_partition_fetch_bytes=600, fetch_max_bytes=600, max_poll_records=3)
    for number in range(examples(100)):
        start, stop = sorted((random.randint(0, end), random.randint(0, end)))
        found = records(small if number % 3 == 0 else whole, OffsetRange(topic, 0, start, stop))
        assert found[0] == [record for record in expected if start <= record[0] < stop], (start, stop)


@pytest.mark.kafka
@pytest.mark.turn(6)
def test_records_deleted_before_they_were_read_are_told_as_gone(bootstrap: str, unique: str) -> None:
    fill(bootstrap, unique, 30)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.delete_records({TopicPartition(unique, 0): 12})
    admin.close()
    items = list(reader(bootstrap).read([OffsetRange(unique, 0, 5, 30)]))
    gone = [item for _, item in items if isinstance(item, Gone)]
    reason = "the log begins at 12 now: older records were deleted"
    assert gone == [Gone(5, 12, reason, before_log=True)]
    read = [r[0] for where, item in items if isinstance(item, FetchedBatch) for r in walk(item, where.start, where.end)]
    assert read == list(range(12, 30))


@pytest.mark.kafka
@pytest.mark.turn(6)
def test_records_deleted_while_they_are_read_are_told_as_gone(bootstrap: str, unique: str) -> None:
    fill(bootstrap, unique, 400)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    slow = reader(bootstrap, max_partition_fetch_bytes=300, max_poll_records=1)
    offsets: list[int] = []
    gone: list[Gone] = []
    for where, item in slow.read([OffsetRange(unique, 0, 0, 400)]):
        if isinstance(item, Gone):
            gone.append(item)
            continue
        if not offsets:
            admin.delete_records({TopicPartition(unique, 0): 350})
        offsets.extend(record[0] for record in walk(item, where.start, where.end))
    admin.close()
    told = offsets + [offset for item in gone for offset in range(item.start, item.end)]
    assert sorted(told) == list(range(400))
    assert offsets[-50:] == list(range(350, 400))


@pytest.mark.kafka
@pytest.mark.turn(6)
def test_an_end_beyond_the_log_is_told_as_gone(bootstrap: str, unique: str) -> None:
    fill(bootstrap, unique, 10)
    items = [item for _, item in reader(bootstrap).read([OffsetRange(unique, 0, 5, 40)])]
    reason = "the log ends at 10: it was truncated, or the topic was created again"
    assert [item for item in items if isinstance(item, Gone)] == [Gone(10, 40, reason, before_log=False)]


@pytest.mark.kafka
@pytest.mark.turn(6)
def test_a_topic_that_is_not_there_fails_in_one_sentence_and_is_not_created(bootstrap: str, unique: str) -> None:
    with pytest.raises(UnreadableTopicError, match=f"Nothing could be read of {unique}-0 for 1 s"):
        list(reader(bootstrap, patience_s=1.0).read([OffsetRange(unique, 0, 0, 10)]))
    assert reader(bootstrap).partitions(unique) == set()


@pytest.mark.kafka
@pytest.mark.turn(6)
@pytest.mark.nightly
@pytest.mark.xdist_group("broker")
def test_a_broker_that_stays_away_fails_in_one_sentence(second_broker: EmbeddedBroker) -> None:
    fill(second_broker.bootstrap, "away", 10)
    kept = reader(second_broker.bootstrap, patience_s=1.0)
    assert len(records(kept, OffsetRange("away", 0, 0, 10))[0]) == 10
    second_broker.kill()
    with pytest.raises(UnreadableTopicError, match="Nothing could be read of away-0 for 1 s"):
        list(kept.read([OffsetRange("away", 0, 0, 10)]))


@pytest.mark.kafka
@pytest.mark.turn(6)
def test_what_was_fetched_beyond_a_range_does_not_stand_in_the_way_of_the_next(bootstrap: str, unique: str) -> None:
    create(bootstrap, unique, partitions=2)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(40):
        producer.send(unique, value=b"v%d" % number, partition=number % 2)
        producer.flush()  # each record in its own batch
    producer.close()
    kept = reader(bootstrap, patience_s=5.0, max_poll_records=3)

    for start, end in ((0, 3), (3, 9), (9, 20)):
        # The ranges have different ends, so one partition is paused while the other is still being read.
        found = records(kept, OffsetRange(unique, 0, start, end), OffsetRange(unique, 1, 0, 20))
        assert [record[0] for record in found[0]] == list(range(start, end))
        assert len(found[1]) == 20


@pytest.mark.kafka
@pytest.mark.xdist_group("pair")
@pytest.mark.turn(6)
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
