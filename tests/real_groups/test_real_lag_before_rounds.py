"""For how long groups were behind that were behind before the probe's first round, on a real broker.

The truth is each record's own timestamp: the broker's (LogAppendTime), or what the producer wrote into it (CreateTime),
in order, out of order, or with absurd ones in between. Groups are given random offsets, and later ones again and again.
`EVALUATIONS=N` sets how many comparisons the long run makes.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.real_groups.followed import Followed
from tests.real_groups.party import commit_places

pytestmark = pytest.mark.kafka

INTERVAL_MS = 200
DAY_MS = 86_400_000
FOR_EVER = str(2**63 - 1)
BEFORE_KAFKA = 1_700_000_000
"""A time in seconds, where Kafka wants milliseconds: January 1970."""

Stamp = Callable[[int, int, random.Random], int]
"""Timestamp of a record by its offset and the number of records."""


def in_order(offset: int, count: int, _: random.Random) -> int:
    """Three days, with several records in some of the milliseconds."""
    return int(time.time() * 1000) - 60_000 - 3 * DAY_MS * (count - offset // 3 * 3) // count


def out_of_order(offset: int, count: int, draw: random.Random) -> int:
    """The same, each up to two hours off."""
    return in_order(offset, count, draw) - draw.randint(0, 7_200_000)


def absurd(offset: int, count: int, draw: random.Random) -> int:
    """The same, and one in ten from another time: 1970, the first round's future, the year 9999."""
    chance = draw.random()
    if chance < 0.1:
        return draw.choice((1, BEFORE_KAFKA))
    if chance < 0.1 + 1 / count:
        return draw.choice((int(time.time() * 1000) + DAY_MS, 253_402_300_799_999))
    return in_order(offset, count, draw)


STAMPS: dict[str, Stamp] = {"in_order": in_order, "out_of_order": out_of_order, "absurd": absurd}
APPENDED = "appended"


@dataclass
class Figures:
    """What the comparisons gave, by kind of topic.

    Attributes:
        evaluations: Partitions with a known bound by timestamps, of all groups and rounds.
        outside: Those whose record is older than the lower or younger than the upper bound.
        bounded: Those with both bounds.
        wide: Those with bounds wider than two intervals and a tenth of the age.
        searched: Partitions that were behind in any round with and without such a bound.
    """

    evaluations: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    outside: list[object] = field(default_factory=list)
    bounded: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    wide: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    searched: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def said(self) -> str:
        """One line a kind."""
        return "\n".join(
            f"{kind}: {self.searched[kind]:,} behind, {self.evaluations[kind]:,} by timestamps, "
            f"{self.bounded[kind]:,} with both bounds, {self.wide[kind]:,} of them wider than promised"
            for kind in (APPENDED, *STAMPS)
        )


def searched(bootstrap: str, unique: str, *, partitions: int, records: int, groups: int, turns: int) -> Figures:
    """Write backlogs, let groups be behind at random offsets, follow them, and compare; then move the groups."""
    draw, figures = random.Random(7), Figures()
    topics = {kind: f"{unique}-{kind}" for kind in (APPENDED, *STAMPS)}
    truth = _written(bootstrap, topics, partitions, records, draw)
    names = [f"{unique}-{number}" for number in range(groups)]
    consumers = [Consumer({"bootstrap.servers": bootstrap, "group.id": name}) for name in names]

    def commit(lowest: int) -> None:
        for consumer in consumers:
            places = [
                TopicPartition(topic, p, draw.randint(lowest, records - 2))
                for topic in topics.values()
                for p in range(partitions)
            ]
            commit_places(consumer, places)

    with Followed(bootstrap, unique, interval_ms=INTERVAL_MS) as followed:
        for turn in range(turns):
            commit(records * turn // (2 * turns))
            for _ in range(25):
                followed.round()
            now = followed.rows["r:"].rounds[-1].round_time
            for name in names:
                for (topic, partition), row in followed.lag(name).items():
                    kind = topic.removeprefix(f"{unique}-")
                    figures.searched[kind] += 1
                    assert row.committed_offset is not None
                    if row.oldest_unread_method not in {"append_time", "timestamps"}:
                        continue
                    figures.evaluations[kind] += 1
                    came = truth[topic, partition][row.committed_offset]
                    low, high = row.oldest_unread_time_min, row.oldest_unread_time_max
                    if (low is not None and came < low) or came > high:
                        figures.outside.append((kind, partition, row.committed_offset, low, came, high))
                    if low is not None:
                        figures.bounded[kind] += 1
                        figures.wide[kind] += high - low > max(2 * INTERVAL_MS, (now - came) / 10)
    for consumer in consumers:
        consumer.close()
    return figures


def _written(
    bootstrap: str, topics: dict[str, str], partitions: int, records: int, draw: random.Random
) -> dict[tuple[str, int], list[int]]:
    """Write so many records to each partition; their timestamps by offset, as the broker keeps them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    configs = {
        kind: {"message.timestamp.type": "LogAppendTime"}
        if kind == APPENDED
        else {"message.timestamp.after.max.ms": FOR_EVER, "segment.bytes": "1048576"}
        for kind in topics
    }
    news = [NewTopic(topic, partitions, 1, config=configs[kind]) for kind, topic in topics.items()]
    for made in admin.create_topics(news).values():
        made.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for offset in range(records):
        for kind, topic in topics.items():
            for p in range(partitions):
                stamp = 0 if kind == APPENDED else STAMPS[kind](offset, records, draw)
                producer.produce(topic, b"x", partition=p, timestamp=stamp)
        producer.flush(30)
    truth: dict[tuple[str, int], list[int]] = defaultdict(list)
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "truth", "enable.auto.commit": False})
    reader.assign([TopicPartition(topic, p, 0) for topic in topics.values() for p in range(partitions)])
    left = records * partitions * len(topics)
    while left:
        for message in reader.consume(min(left, 10_000), 1.0):
            assert message.error() is None
            truth[message.topic(), message.partition()].append(message.timestamp()[1])
            left -= 1
    reader.close()
    return truth


@pytest.mark.nightly
def test_what_was_unread_before_the_first_round_is_between_its_bounds(bootstrap: str, unique: str) -> None:
    figures = searched(bootstrap, unique, partitions=4, records=400, groups=3, turns=1)
    assert figures.outside == [], figures.said()
    assert figures.bounded[APPENDED] == figures.searched[APPENDED], figures.said()
    assert figures.evaluations["in_order"] == figures.searched["in_order"], figures.said()
    assert figures.bounded["in_order"] > 0, figures.said()
    assert sum(figures.wide.values()) <= 0.05 * sum(figures.bounded.values()), figures.said()


@pytest.mark.soak  # about three minutes
@pytest.mark.turn(2)
@pytest.mark.timeout(3_600)
def test_no_backlog_of_many_groups_is_outside_its_bounds(bootstrap: str, unique: str) -> None:
    wanted, partitions, groups = int(os.environ.get("EVALUATIONS", "100000")), 16, 40
    turns = max(1, wanted // (partitions * groups * 3))
    figures = searched(bootstrap, unique, partitions=partitions, records=4_000, groups=groups, turns=turns)
    print(figures.said())
    assert figures.outside == []
    assert sum(figures.wide.values()) <= 0.05 * sum(figures.bounded.values())
