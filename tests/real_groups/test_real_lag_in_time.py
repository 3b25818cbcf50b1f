"""Since when the oldest unread record can be read, on a real broker, against the broker's own time of each record.

Producers write to topics with LogAppendTime, one of them in transactions; groups keep up, crawl, rest, crash, go back,
and commit rarely. At each round the current row of each partition of each group is compared with the time that the
broker gave to the oldest unread record.
`EVALUATIONS=N` sets how many comparisons the long run makes; 100,000 take about five minutes.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streaming.demo.librdkafka_member import transactional_producer
from tests.real_groups.followed import Followed

pytestmark = pytest.mark.kafka

HABITS = ("keeps_up", "crawls", "rests", "crashes", "goes_back", "commits_rarely", "transactions")


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


@dataclass
class Figures:
    """What the comparisons gave.

    Attributes:
        evaluations: Partitions with something unread, of all groups and rounds.
        outside: Those whose record came before the lower or after the upper bound.
        bounded: Those with both bounds.
        wide: Those with bounds wider than two rounds and a tenth of the age.
        reasons: How often each reason was given.
    """

    evaluations: int = 0
    outside: list[object] = field(default_factory=list)
    bounded: int = 0
    wide: int = 0
    reasons: dict[str | None, int] = field(default_factory=lambda: defaultdict(int))


def lived(bootstrap: str, unique: str, partitions: int, evaluations: int, seed: int) -> Figures:
    """Let groups live until so many evaluations were made."""
    draw, figures = random.Random(seed), Figures()
    plain, transactional = f"{unique}-plain", f"{unique}-eos"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"message.timestamp.type": "LogAppendTime"}
    topics = [NewTopic(name, partitions, 1, config=config) for name in (plain, transactional)]
    for made in admin.create_topics(topics).values():
        made.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    in_transactions = transactional_producer({"bootstrap.servers": bootstrap, "transactional.id": unique})
    groups = [
        Group(bootstrap, f"{unique}-{h}", transactional if h == "transactions" else plain, partitions, h, draw)
        for h in HABITS
    ]
    truth = Consumer({"bootstrap.servers": bootstrap, "group.id": f"truth-of-{unique}", "enable.auto.commit": False})
    truth.assign([TopicPartition(topic, p, 0) for topic in (plain, transactional) for p in range(partitions)])
    arrived: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    waiting: list[tuple[str, tuple[str, int], int, int, int | None, int | None]] = []
    times: list[int] = []
    quiet = 0
    with Followed(bootstrap, unique) as followed:
        while figures.evaluations < evaluations:
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
            for message in truth.consume(5_000, 0.0):
                if message.error() is None:
                    arrived[message.topic(), message.partition()][message.offset()] = message.timestamp()[1]
            for group in groups:
                if f"g:{group.name}" not in followed.rows:
                    continue
                for place, row in followed.lag(group.name).items():
                    if not row.lag or row.committed_offset is None:
                        continue
                    figures.evaluations += 1
                    figures.reasons[row.oldest_unread_reason] += 1
                    first = max(row.committed_offset, row.log_start_offset or 0)
                    bounds = row.oldest_unread_time_min, row.oldest_unread_time_max
                    waiting.append((group.name, place, first, times[-1], *bounds))
    for group in groups:
        group.leave()
    for _ in range(50):
        for message in truth.consume(10_000, 0.1):
            if message.error() is None:
                arrived[message.topic(), message.partition()][message.offset()] = message.timestamp()[1]
    truth.close()
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    longest = steps[int(0.99 * (len(steps) - 1))]
    for name, place, offset, now, earliest, latest in waiting:
        came = arrived[place].get(offset)
        if came is None:
            continue  # a transaction marker
        if (earliest is not None and came < earliest) or (latest is not None and came > latest):
            figures.outside.append((name, place, offset, earliest, came, latest))
        if earliest is not None and latest is not None:
            figures.bounded += 1
            figures.wide += latest - earliest > max(2 * longest, (now - came) / 10)
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


def said(figures: Figures) -> str:
    """One line for the docs."""
    return (
        f"{figures.evaluations:,} evaluations, {len(figures.outside)} outside, {figures.bounded:,} with both bounds, "
        f"{figures.wide:,} wider than promised; reasons {dict(figures.reasons)}"
    )


@pytest.mark.nightly
def test_what_a_real_broker_appended_is_between_the_bounds(bootstrap: str, unique: str) -> None:
    figures = lived(bootstrap, unique, partitions=8, evaluations=500, seed=1)
    assert figures.outside == [], said(figures)
    assert figures.bounded > 100, said(figures)


@pytest.mark.soak  # about five minutes
@pytest.mark.turn(2)
@pytest.mark.timeout(3_600)
def test_no_group_of_a_long_life_is_outside_its_bounds(bootstrap: str, unique: str) -> None:
    figures = lived(bootstrap, unique, partitions=8, evaluations=int(os.environ.get("EVALUATIONS", "100000")), seed=2)
    print(said(figures))
    assert figures.outside == []
    assert figures.wide <= 0.05 * figures.bounded, said(figures)
