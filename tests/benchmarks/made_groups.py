"""A thousand groups without a thousand consumers: their records and rounds, in the form of broker and probe.

A broker's coordinator could not handle a thousand groups' rebalances and commits fast enough to measure their reader.
So the records go directly into a topic that replaces the offsets log (the job's setting `offsets_topic`), one record
batch per group and commit, as from a commit request. The rounds are written by the probe's own code, except for the
requests to the brokers, whose answers are known here.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from assignors import Group as LeaderView
from assignors import Subscription, assign
from streaming.config import Settings
from streaming.offsets_log import partition_for, printed
from streaming.probe.bus import open_appender
from streaming.probe.deadline import Deadline
from streaming.probe.idle import Rest
from streaming.probe.kafka.look import GroupsSeen, ListedGroup, RoundHead
from streaming.probe.kafka.memory import Memory, memory_after
from streaming.probe.kafka.observe import round_events
from streaming.probe.topics import create_missing
from streaming.probe.writer import RoundWriter
from streaming.records import RoundClosed, TopicObservation, pack_offsets
from tests.offsets_log import written


def commit_value(offset: int, time: int, topic_id: bytes) -> bytes:
    """Value of an offset commit without metadata; time in ms, 16 bytes of topic id."""
    return written.offset_value(4, offset, leader_epoch=0, commit_timestamp=time, topic_id=topic_id)


def group_value(
    generation: int,
    strategy: str,
    time: int,
    topics: Sequence[str],
    assigned: Mapping[str, Mapping[str, Sequence[int]]],
) -> bytes:
    """Value of group metadata; all members subscribe to the same topics, and the first is the leader.

    Args:
        generation: Generation.
        strategy: Selected protocol.
        time: Time when the join phase completed, ms.
        topics: Subscription of every member.
        assigned: Partitions by topic, by member id; members in record order.
    """
    subscription = written.subscription(1, topics)
    members = [
        written.member(
            3,
            member_id=member,
            client_id="bench",
            subscription=subscription,
            assignment=written.assignment(1, list(partitions.items())),
        )
        for member, partitions in assigned.items()
    ]
    leader = next(iter(assigned))
    return written.group_value(3, members, generation=generation, protocol=strategy, leader=leader, timestamp=time)


_LOG_PARTITIONS = 50
"""Kafka's default of `offsets.topic.num.partitions`."""

_GROUPS_PER_TOPIC = 10
"""Groups share topics, and the probe queries a topic once for all of them."""

_MEMBERS = 2
_STEP = 37
"""Records that a partition gets, and its group consumes, between two commits."""

_BEHIND = 5
"""Lag of every group in records."""

_TOLD_EVERY = 20
"""Number of batches of 30 s in ten minutes."""

_ROUND_S = 120.0
"""Far more than a round of 10,000 groups takes to write."""

_MOST_WAITING = 2_000_000
"""More than is written before a flush."""

_QUIET = 2
"""syslog's "critical": librdkafka's messages at the end of a broker do not matter here."""


class MadeGroups:
    """Generated groups of one topic each; a context manager. First `rebalance` all groups, then commits and rounds.

    Attributes:
        groups: Their names.
        records: Number of records written into the log so far.
    """

    def __init__(self, settings: Settings, groups: int, partitions: int, idle: int = 0) -> None:
        """Create the topics.

        Args:
            settings: Settings of the cluster.
            groups: Number of groups.
            partitions: Partitions of each topic, and so of each group.
            idle: Number of additional groups, without members, that have committed one partition each and are idle.
        """
        self._settings = settings
        self._log = settings.job.offsets_topic
        self.groups: Sequence[str] = [f"checkout-service-{number}" for number in range(groups)]
        self.records = 0
        self._partitions = partitions
        self._topics = {group: f"orders-{number // _GROUPS_PER_TOPIC}" for number, group in enumerate(self.groups)}
        self._ids = {topic: hashlib.sha256(topic.encode()).digest()[:16] for topic in self._topics.values()}
        self._homes = {group: partition_for(group, _LOG_PARTITIONS) for group in self.groups}
        self._keys = {
            group: [written.offset_key(group, topic, partition) for partition in range(partitions)]
            for group, topic in self._topics.items()
        }
        self._idle = {f"nightly-report-{number}": f"archive-{number // _GROUPS_PER_TOPIC}" for number in range(idle)}
        self._rounds = 0
        self._generations = dict.fromkeys(self.groups, 0)
        self._assigned = self._assignments()
        self._ends = [0] * _LOG_PARTITIONS
        self._commits = 0
        self._memory = Memory()
        self._refused: list[KafkaError] = []
        self._not_queued = 0
        admin: Any = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)
        try:
            admin.create_topics([NewTopic(self._log, _LOG_PARTITIONS, 1)])
            create_missing(admin, settings.probe)
        finally:
            admin.close()
        self._producer = Producer(
            {
                "bootstrap.servers": settings.kafka.bootstrap_servers,
                "enable.idempotence": True,
                # One batch per commit request of a group.
                "batch.num.messages": partitions,
                "linger.ms": 20,
                "queue.buffering.max.messages": _MOST_WAITING,
                "log_level": _QUIET,
            }
        )
        self._writer = RoundWriter(settings.cluster, settings.probe, open_appender(settings), "bench")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.purge()
        self._writer.close()

    def rebalance(self, groups: Iterable[str]) -> None:
        """Write a decision for each of these groups: the next generation, with the same members and partitions."""
        now = _now()
        for group in groups:
            self._generations[group] += 1
            value = group_value(self._generations[group], "range", now, [self._topics[group]], self._assigned[group])
            self._write(group, [written.group_key(group)], value)
        self._flush()

    def commit(self, times: int = 1) -> None:
        """Let each group commit all its partitions `times` times."""
        for _ in range(times):
            self._commits += 1
            now, offset = _now(), self._consumed()
            for group, keys in self._keys.items():
                self._write(group, keys, commit_value(offset, now, self._ids[self._topics[group]]))
        self._flush()

    def rest(self) -> None:
        """Let the idle groups commit once."""
        now = _now()
        for group, topic in self._idle.items():
            self._homes[group] = partition_for(group, _LOG_PARTITIONS)
            self._write(group, [written.offset_key(group, topic, 0)], commit_value(1_000_000, now, bytes(range(16))))
        self._flush()

    def round(self) -> RoundClosed:
        """Close a round with all groups stable; the first contains all idle ones, any other a twentieth of them.

        (A batch every 30 s finds as many: each idle group is in a round once in ten minutes.)

        Raises:
            RoundAbandonedError: The broker did not accept it.
        """
        deadline = Deadline.after(_ROUND_S)
        opened = self._writer.open(deadline)
        log = tuple(self._ends)
        head = RoundHead(self._settings.cluster, "bench", opened.number, opened.time, log, (None,) * len(log))
        end = [self._consumed() + _BEHIND] * self._partitions
        look = GroupsSeen(
            groups={group: ListedGroup(group, 1, "Stable", "consumer", "classic") for group in self.groups}
            | {group: ListedGroup(group, 1, "Empty", "", "classic") for group in self._idle},
            topics_of_groups={group: (topic,) for group, topic in (self._topics | self._idle).items()},
            descriptions={},
            topics={topic: _topic(topic, printed(raw), end) for topic, raw in self._ids.items()}
            | {topic: _topic(topic, None, [1_000_000]) for topic in self._idle.values()},
        )
        # By rounds, not by the clock: they are written as fast as possible.
        rested = {
            group: 1 + ((number + self._rounds) % _TOLD_EVERY != 0) if self._rounds else 0
            for number, group in enumerate(self._idle)
        }
        before = replace(self._memory, rest=Rest(head.time))
        after = replace(memory_after(head, look, self._memory), rest=Rest(head.time, {}, rested))
        events = round_events(head, look, before, after, self._settings.filters, self._settings.job.heartbeat_ms)
        written = self._writer.write(opened, events, deadline)
        closed = self._writer.close_round(opened, written, deadline, log=log, log_end=log, cluster_id="bench", holds=())
        self._memory = after
        self._rounds += 1
        return closed

    def _assignments(self) -> dict[str, dict[str, dict[str, Sequence[int]]]]:
        """The assignment of a leader with the strategy "range" for each group."""
        assigned: dict[str, dict[str, dict[str, Sequence[int]]]] = {}
        for group, topic in self._topics.items():
            members = tuple(Subscription(f"consumer-{group}-{n}", (topic,)) for n in range(1, _MEMBERS + 1))
            given = assign("range", LeaderView(members, {topic: self._partitions}))
            assigned[group] = {member: {t: tuple(p) for t, p in topics.items()} for member, topics in given.items()}
        return assigned

    def _consumed(self) -> int:
        return 1_000_000 + _STEP * self._commits

    def _write(self, group: str, keys: Sequence[bytes], value: bytes) -> None:
        home = self._homes[group]
        records = [{"key": key, "value": value} for key in keys]
        self._not_queued += len(keys) - self._producer.produce_batch(self._log, records, home, self._delivered)
        self._ends[home] += len(keys)
        self.records += len(keys)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._refused.append(error)

    def _flush(self) -> None:
        left = self._producer.flush(_ROUND_S) + self._not_queued
        if left or self._refused:
            raise RuntimeError(f"the broker did not take {left or len(self._refused)} records: {self._refused[:1]}")


def _topic(name: str, topic_id: str | None, end: list[int]) -> TopicObservation:
    packed = pack_offsets(end)
    return TopicObservation(name, topic_id, len(end), packed, packed, pack_offsets([0] * len(end)))


def _now() -> int:
    return time.time_ns() // 1_000_000
