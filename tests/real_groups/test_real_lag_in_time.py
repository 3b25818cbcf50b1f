"""Since when the oldest unread record can be read, on a real broker, against that record's own timestamp.

First while groups live: producers write to topics with LogAppendTime, one of them in transactions; groups keep up,
crawl, rest, crash, go back, and commit rarely. Then for groups that were behind before the probe's first round: the
timestamp is the broker's, or what the producer wrote into the record (CreateTime), in order, out of order, or with
absurd ones in between; groups are given random offsets, and later ones again and again.
`EVALUATIONS=N` sets how many comparisons each long run makes; 100,000 take some minutes.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streaming.demo.librdkafka_member import transactional_producer
from streaming.groups.rows import LagRow
from tests.real_groups.followed import Followed
from tests.real_groups.party import commit_places

pytestmark = pytest.mark.kafka

EVALUATIONS = int(os.environ.get("EVALUATIONS", "100000"))

HABITS = ("keeps_up", "crawls", "rests", "crashes", "goes_back", "commits_rarely", "transactions")

Place = tuple[str, int]


@dataclass
class Figures:
    """What the comparisons gave, by group or by kind of topic.

    Attributes:
        behind: Partitions with something unread, of all groups and rounds.
        compared: Those whose bounds were compared with a timestamp.
        outside: Those whose record came before the lower or after the upper bound.
        bounded: Those with both bounds.
        wide: Those with bounds wider than two intervals and a tenth of the age.
    """

    behind: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    outside: list[object] = field(default_factory=list)
    bounded: Counter[str] = field(default_factory=Counter)
    wide: Counter[str] = field(default_factory=Counter)

    def compare(self, kind: str, row: LagRow, came: int, now: int, interval_ms: int) -> None:
        """Compare one row with the timestamp of its oldest unread record."""
        self.compared[kind] += 1
        earliest, latest = row.oldest_unread_time_min, row.oldest_unread_time_max
        if (earliest is not None and came < earliest) or (latest is not None and came > latest):
            self.outside.append((kind, row.topic, row.partition, row.committed_offset, earliest, came, latest))
        if earliest is not None and latest is not None:
            self.bounded[kind] += 1
            self.wide[kind] += latest - earliest > max(2 * interval_ms, (now - came) / 10)

    def check(self) -> None:
        """None may be outside, and few wider than promised."""
        assert self.outside == [], self
        assert self.wide.total() <= 0.05 * self.bounded.total(), self


class Truth:
    """The broker's own timestamps, of each place by offset."""

    def __init__(self, bootstrap: str, unique: str, topics: Collection[str], partitions: int) -> None:
        self.came: dict[Place, dict[int, int]] = defaultdict(dict)
        group = {"group.id": f"truth-of-{unique}", "enable.auto.commit": False}
        self._reader = Consumer({"bootstrap.servers": bootstrap, **group})
        self._reader.assign([TopicPartition(topic, p, 0) for topic in topics for p in range(partitions)])

    def read(self, seconds: float = 0.0) -> int:
        """Read on; returns how many records were read."""
        messages = [message for message in self._reader.consume(10_000, seconds) if message.error() is None]
        for message in messages:
            self.came[message.topic(), message.partition()][message.offset()] = message.timestamp()[1]
        return len(messages)


def _create(bootstrap: str, partitions: int, configs: Mapping[str, dict[str, str]]) -> None:
    topics = [NewTopic(topic, partitions, 1, config=config) for topic, config in configs.items()]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics(topics).values():
        made.result()


class Group:
    """A group with one member that polls between rounds, by its habit."""

    def __init__(self, bootstrap: str, name: str, topic: str, partitions: int, habit: str, draw: random.Random) -> None:
        self.name, self.habit = name, habit
        self._topic, self._partitions = topic, partitions
        self._bootstrap, self._draw = bootstrap, draw
        self._consumer: Consumer | None = None
        self._away = 0

    def turn(self) -> None:
        """What its member does between two rounds."""
        if self._away:
            self._away -= 1
            return
        consumer = self._consumer = self._consumer or self._joined()
        most = self._partitions if self.habit == "crawls" else 500
        found = [message for message in consumer.consume(most, 0.0) if message.error() is None]
        chance = self._draw.random()
        if self.habit == "rests" and chance < 0.05:
            self._leave(self._draw.choice((10, 60)))
        elif self.habit == "crashes" and chance < 0.02:
            self._leave(5)  # what it has read since its last commit is read again
        elif self.habit == "goes_back" and chance < 0.02:
            self._commit([TopicPartition(self._topic, p, 0) for p in range(self._partitions)], consumer)
            self._leave(2)
        elif found and (self.habit not in {"commits_rarely", "crashes"} or chance > 0.95):
            self._commit(None, consumer)

    def leave(self) -> None:
        """Close the member."""
        self._leave(0)

    def _joined(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": self.name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed" if self.habit == "transactions" else "read_uncommitted",
            }
        )
        consumer.subscribe([self._topic])
        return consumer

    def _commit(self, offsets: list[TopicPartition] | None, consumer: Consumer) -> None:
        try:
            consumer.commit(asynchronous=False) if offsets is None else consumer.commit(
                offsets=offsets, asynchronous=False
            )
        except KafkaException:
            return  # a rebalance; the next turn commits

    def _leave(self, turns: int) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._away = None, turns


def lived(bootstrap: str, unique: str, partitions: int, evaluations: int, seed: int) -> Figures:
    """Let groups live until so many evaluations were made."""
    draw, figures = random.Random(seed), Figures()
    plain, transactional = f"{unique}-plain", f"{unique}-eos"
    _create(bootstrap, partitions, dict.fromkeys((plain, transactional), APPEND_TIME))
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    in_transactions = transactional_producer({"bootstrap.servers": bootstrap, "transactional.id": unique})
    groups = [
        Group(bootstrap, f"{unique}-{h}", transactional if h == "transactions" else plain, partitions, h, draw)
        for h in HABITS
    ]
    truth = Truth(bootstrap, unique, (plain, transactional), partitions)
    waiting: list[tuple[str, Place, LagRow, int]] = []
    times: list[int] = []
    quiet = 0
    with Followed(bootstrap, unique) as followed:
        while figures.behind.total() < evaluations:
            quiet = quiet - 1 if quiet else 40 if draw.random() < 0.01 else 0
            if not quiet:
                for _ in range(draw.choice((0, partitions // 4, 5 * partitions))):
                    producer.produce(plain, b"x", partition=draw.randrange(partitions))
                if draw.random() < 0.3:
                    _write_transaction(in_transactions, transactional, partitions, draw)
                producer.flush(30)
            for group in groups:
                group.turn()
            followed.round()
            times.append(followed.rows["r:"].rounds[-1].round_time)
            truth.read()
            for group in groups:
                if f"g:{group.name}" not in followed.rows:
                    continue
                for place, row in followed.lag(group.name).items():
                    if row.lag and row.committed_offset is not None:
                        figures.behind[group.habit] += 1
                        waiting.append((group.habit, place, row, times[-1]))
    for group in groups:
        group.leave()
    for _ in range(50):
        truth.read(0.1)
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    longest = steps[int(0.99 * (len(steps) - 1))]
    for habit, place, row, now in waiting:
        came = truth.came[place].get(max(row.committed_offset or 0, row.log_start_offset or 0))
        if came is not None:  # a transaction marker
            figures.compare(habit, row, came, now, longest)
    return figures


def _write_transaction(producer: Producer, topic: str, partitions: int, draw: random.Random) -> None:
    producer.begin_transaction()
    for _ in range(draw.randint(1, 8)):
        producer.produce(topic, b"x", partition=draw.randrange(partitions))
    if draw.random() < 0.2:
        producer.flush(30)
        producer.abort_transaction(30)
    else:
        producer.commit_transaction(30)


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


APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}


def searched(bootstrap: str, unique: str, *, partitions: int, records: int, groups: int, turns: int) -> Figures:
    """Write backlogs, let groups be behind at random offsets, follow them, and compare; then move the groups."""
    draw, figures = random.Random(7), Figures()
    topics = {f"{unique}-{kind}": kind for kind in (APPENDED, *STAMPS)}
    _write(bootstrap, topics, partitions, records, draw)
    truth = Truth(bootstrap, unique, topics, partitions)
    left = records * partitions * len(topics)
    while left:
        left -= truth.read(1.0)
    names = [f"{unique}-{number}" for number in range(groups)]
    consumers = [Consumer({"bootstrap.servers": bootstrap, "group.id": name}) for name in names]

    def commit(lowest: int) -> None:
        for consumer in consumers:
            places = [
                TopicPartition(topic, p, draw.randint(lowest, records - 2))
                for topic in topics
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
                for place, row in followed.lag(name).items():
                    kind = topics[row.topic]
                    figures.behind[kind] += 1
                    assert row.committed_offset is not None
                    if row.oldest_unread_method in {"append_time", "timestamps"}:
                        assert row.oldest_unread_time_max is not None
                        figures.compare(kind, row, truth.came[place][row.committed_offset], now, INTERVAL_MS)
    for consumer in consumers:
        consumer.close()
    return figures


def _write(bootstrap: str, topics: Mapping[str, str], partitions: int, records: int, draw: random.Random) -> None:
    """Write so many records to each partition of topics of these kinds."""
    created = {"message.timestamp.after.max.ms": FOR_EVER, "segment.bytes": "1048576"}
    _create(bootstrap, partitions, {t: APPEND_TIME if kind == APPENDED else created for t, kind in topics.items()})
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for offset in range(records):
        for topic, kind in topics.items():
            for p in range(partitions):
                stamp = 0 if kind == APPENDED else STAMPS[kind](offset, records, draw)
                producer.produce(topic, b"x", partition=p, timestamp=stamp)
        producer.flush(30)


@pytest.mark.nightly
def test_what_a_real_broker_appended_is_between_the_bounds(bootstrap: str, unique: str) -> None:
    figures = lived(bootstrap, unique, partitions=8, evaluations=500, seed=1)
    assert figures.outside == [], figures
    assert figures.bounded.total() > 100, figures


@pytest.mark.nightly
def test_what_was_unread_before_the_first_round_is_between_its_bounds(bootstrap: str, unique: str) -> None:
    figures = searched(bootstrap, unique, partitions=4, records=400, groups=3, turns=1)
    figures.check()
    assert figures.bounded[APPENDED] == figures.behind[APPENDED], figures
    assert figures.compared["in_order"] == figures.behind["in_order"], figures
    assert figures.bounded["in_order"] > 0, figures


@pytest.mark.soak  # about five minutes
@pytest.mark.turn(2)
@pytest.mark.timeout(3_600)
def test_no_group_of_a_long_life_is_outside_its_bounds(bootstrap: str, unique: str) -> None:
    figures = lived(bootstrap, unique, partitions=8, evaluations=EVALUATIONS, seed=2)
    print(figures)
    figures.check()


@pytest.mark.soak  # about three minutes
@pytest.mark.turn(2)
@pytest.mark.timeout(3_600)
def test_no_backlog_of_many_groups_is_outside_its_bounds(bootstrap: str, unique: str) -> None:
    partitions, groups = 16, 40
    turns = max(1, EVALUATIONS // (partitions * groups * 3))
    figures = searched(bootstrap, unique, partitions=partitions, records=4_000, groups=groups, turns=turns)
    print(figures)
    figures.check()
