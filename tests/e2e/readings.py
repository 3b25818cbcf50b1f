"""Readings of kafka-python's admin client, and the times of rounds: a second source for our own rows."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import CoordinatorLoadInProgressError, GroupIdNotFoundError, UnknownTopicOrPartitionError

from tests.e2e.journal import Place

__all__ = ["Bracket", "Owner", "Reading", "RoundsWatch", "group_ids", "owners", "read_now"]

_ROUND_S = 90.0
"""A round comes every two seconds; a machine that starts JVMs at the same time needs many times that."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Offsets at one moment, or shortly after it.

    Attributes:
        committed: Committed offset by group, topic and partition.
        ends: High watermark by topic and partition.
    """

    committed: dict[Place, int]
    ends: dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Bracket:
    """A closed round between two readings: one was complete before it opened, one began after it closed."""

    round: int
    before: Reading
    after: Reading


@dataclass(frozen=True, slots=True)
class Owner:
    """One member as the coordinator describes it.

    Attributes:
        group: Its group.
        member_id: Member id.
        client_id: Client id.
        host: Host, as "/127.0.0.1".
        assigned: Topic and partition of everything that it owns.
    """

    group: str
    member_id: str
    client_id: str
    host: str
    assigned: frozenset[tuple[str, int]]


def group_ids(admin: KafkaAdminClient) -> list[str]:
    """All groups; repeats the request while a coordinator loads its part of the log."""
    while True:
        try:
            return [group["group_id"] for group in admin.list_groups()]
        except CoordinatorLoadInProgressError:
            continue


def read_now(admin: KafkaAdminClient) -> Reading:
    """Read all groups; repeats the requests while a group is being deleted, or a coordinator loads."""
    while True:
        try:
            groups = group_ids(admin)
            offsets = admin.list_group_offsets(groups)
            topics = {p.topic for of_group in offsets.values() for p in of_group}
            found = admin.describe_topics(sorted(topics & set(admin.list_topics())))
            asked = [TopicPartition(t["name"], p["partition_index"]) for t in found for p in t["partitions"]]
            ends = admin.list_partition_offsets(dict.fromkeys(asked, OffsetSpec.LATEST))
        except (UnknownTopicOrPartitionError, GroupIdNotFoundError, CoordinatorLoadInProgressError):
            continue
        return Reading(
            {
                (group, p.topic, p.partition): committed.offset
                for group, of_group in offsets.items()
                for p, committed in of_group.items()
                if committed.offset >= 0
            },
            {(p.topic, p.partition): end.offset for p, end in ends.items()},
        )


def owners(admin: KafkaAdminClient) -> list[Owner]:
    """All members of all groups."""
    described = admin.describe_groups(group_ids(admin))
    return [
        Owner(
            group,
            member["member_id"],
            member["client_id"],
            member["client_host"],
            frozenset(
                (topic["topic"], partition)
                for topic in member["member_assignment"]["assigned_partitions"]
                for partition in topic["partitions"]
            ),
        )
        for group, description in described.items()
        for member in description["members"]
    ]


class RoundsWatch:
    """Follows the rounds topic with a plain consumer and a plain JSON parser."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._partition = TopicPartition(topic, 0)
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
        self._assigned = False
        self.closed: list[dict[str, Any]] = []

    def end(self) -> int:
        """A lower bound for the number of the next round."""
        if not self._consumer.partitions_for_topic(self._partition.topic):
            return 0
        return int(self._consumer.end_offsets([self._partition])[self._partition])

    def wait_for_closed(self, since: int, count: int = 1) -> int:
        """Wait until `count` rounds with numbers from `since` on have closed; returns the last one's number."""
        deadline = time.monotonic() + _ROUND_S
        while len(after := [record["round"] for record in self.closed if record["round"] >= since]) < count:
            assert time.monotonic() < deadline, f"no round from {since} on closed within {_ROUND_S} s"
            self._poll()
        return int(after[count - 1])

    def close(self) -> None:
        self._consumer.close()

    def _poll(self) -> None:
        if not self._assigned:
            if not self._consumer.partitions_for_topic(self._partition.topic):
                time.sleep(0.1)  # the probe has not created it yet
                return
            self._consumer.assign([self._partition])
            self._consumer.seek_to_beginning(self._partition)
            self._assigned = True
        for record in self._consumer.poll(200).get(self._partition, []):
            content = json.loads(record.value)
            if content["type"] == "closed":
                self.closed.append(content)
