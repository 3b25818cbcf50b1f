"""Rates on a real broker, against the broker's own time of each record and the offsets that the members committed.

Takes 25 s.
"""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import pairwise

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.real_groups.followed import Followed, until

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]

PARTITIONS = 4
HEARTBEAT_MS = 4_000
WINDOWS = 4
HOT = 1
PER_TURN = {0: 3, HOT: 60, 2: 3, 3: 3}
"""Records for each partition between two rounds: one has most of them."""


def member(bootstrap: str, group: str, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
        }
    )
    consumer.subscribe([topic])
    return consumer


@pytest.mark.nightly
def test_rates_of_a_real_group_are_what_the_broker_appended_and_its_members_committed(
    bootstrap: str, unique: str
) -> None:
    topic = f"{unique}-topic"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, PARTITIONS, 1, config={"message.timestamp.type": "LogAppendTime"})
    admin.create_topics([new])[topic].result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    members = [member(bootstrap, unique, topic) for _ in range(2)]

    def settled() -> bool:
        for consumer in members:
            consumer.poll(0.1)
        return [len(consumer.assignment()) for consumer in members] == [2, 2]

    until(settled)
    arrived: dict[int, list[int]] = defaultdict(list)
    committed_at: dict[int, dict[int, int]] = {}
    committed = dict.fromkeys(range(PARTITIONS), 0)

    def turn(followed: Followed) -> None:
        for partition, count in PER_TURN.items():
            for _ in range(count):
                producer.produce(
                    topic,
                    b"x",
                    partition=partition,
                    on_delivery=lambda _, m: arrived[m.partition()].append(m.timestamp()[1]),
                )
        producer.flush(30)
        for consumer in members:
            for message in consumer.consume(1_000, 0.05):
                committed[message.partition()] = message.offset() + 1
            mine = [
                TopicPartition(topic, place.partition, committed[place.partition]) for place in consumer.assignment()
            ]
            consumer.commit(offsets=mine, asynchronous=False)
        followed.round()
        committed_at[followed.rows["r:"].rounds[-1].round] = dict(committed)

    key = f"g:{unique}"
    with Followed(bootstrap, unique, heartbeat_ms=HEARTBEAT_MS) as followed:
        deadline = time.monotonic() + 120
        while len({row.round for row in followed.rows[key].member_load}) < WINDOWS and time.monotonic() < deadline:
            turn(followed)
        rounds = {row.round: row for row in followed.rows["r:"].rounds}
        rows, lag = followed.rows[key], {(row.round, row.partition): row for row in followed.rows[key].lag}
    for consumer in members:
        consumer.close()

    first = rows.group_health[0].round
    ends = [first, *sorted({row.round for row in rows.member_load})]
    assert len(ends) == WINDOWS + 1
    for start, end in pairwise(ends):
        seconds = (rounds[end].round_time - rounds[start].round_time) / 1000
        for partition in range(PARTITIONS):
            row = lag[end, partition]
            assert row.produced_per_second is not None
            assert row.consumed_per_second is not None
            # A round reads the high watermark between its opening and its closing record.
            at_least = sum(rounds[start].closed_time < at < rounds[end].round_time for at in arrived[partition])
            at_most = sum(rounds[start].round_time <= at <= rounds[end].closed_time for at in arrived[partition])
            assert at_least - 1e-6 <= row.produced_per_second * seconds <= at_most + 1e-6
            consumed = committed_at[end][partition] - committed_at[start][partition]
            assert row.consumed_per_second * seconds == pytest.approx(consumed)
        of_members = [row for row in rows.member_load if row.round == end]
        assert sorted(row.partitions for row in of_members) == [2, 2]
        assert sum(row.share or 0 for row in of_members) == pytest.approx(1)
        # 63 of 69 records are for the member with the hot partition.
        assert max(row.share or 0 for row in of_members) == pytest.approx(63 / 69, abs=0.05)
    health = [row for row in rows.group_health if row.round >= ends[1]]
    assert health
    for row in health:
        assert [one.partition for one in row.hot_partitions or ()] == [HOT]
        assert row.load_imbalance == pytest.approx(2 * 63 / 69 - 1, abs=0.1)
        # No assignment gives that member less than the hot partition.
        assert row.load_imbalance_optimal_min == pytest.approx(2 * 60 / 69 - 1, abs=0.1)
        assert row.load_imbalance_optimal_max is not None
        assert row.load_imbalance_optimal_min <= row.load_imbalance_optimal_max <= row.load_imbalance
