"""The broker's own `__consumer_offsets`, read by a plain consumer, and groups that gain and lose members in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from kafka import KafkaConsumer, TopicPartition

from streaming.groups.rows import DriftRow
from streaming.offsets_log import GroupKey, OffsetKey, OtherKey, decode_key, decode_membership
from streaming.records import MembershipRecord
from tests.groups.build import Life, make_observation, make_topic
from tests.real_groups.real_members import Member
from tests.real_groups.recorded import Recording


@contextmanager
def offsets_log(bootstrap: str) -> Iterator[KafkaConsumer]:
    """A consumer of the whole log, positioned at its end."""
    log = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, exclude_internal_topics=False)
    try:
        name = "__consumer_offsets"
        while not (partitions := log.partitions_for_topic(name)):  # created with the broker's first group
            with_group = KafkaConsumer(bootstrap_servers=bootstrap, group_id="first")
            with_group.assign([TopicPartition(name, 0)])
            with_group.committed(TopicPartition(name, 0))
            with_group.close()
        log.assign([TopicPartition(name, partition) for partition in partitions])
        log.seek_to_end()
        for partition in log.assignment():
            log.position(partition)
        yield log
    finally:
        log.close()


Keep = Callable[[str, bytes, bytes | None, int], None]
"""Takes the group, key, value and time of a record."""


def read_on(log: KafkaConsumer, wait_ms: int = 500, keep: Keep | None = None) -> Iterator[tuple[str, MembershipRecord]]:
    """Membership records with members that are there or arrive within this time, each with its group.

    `keep` sees every record of every classic group before.
    """
    for batch in log.poll(wait_ms).values():
        for item in batch:
            key = decode_key(item.key)
            if keep is not None and isinstance(key, GroupKey | OffsetKey):
                keep(key.group, item.key, item.value, item.timestamp)
            if isinstance(key, GroupKey) and item.value is not None:
                record = decode_membership(item.offset, item.timestamp, item.value)
                if record.members:
                    yield key.group, record


def record_group(bootstrap: str, group: str, counts: Mapping[str, int], path: Path) -> None:
    """Write the log of a group that the broker assigns; a round shows these topics behind every twenty records."""
    recording = Recording(path)
    with offsets_log(bootstrap) as log:
        ends = {partition: log.position(partition) for partition in log.assignment()}
        log.seek_to_beginning()
        kept = 0
        while any(log.position(partition) < end for partition, end in ends.items()):
            for item in [item for batch in log.poll(500).values() for item in batch]:
                key = decode_key(item.key)
                if isinstance(key, OtherKey) and key.group == group:
                    recording.saw(item.key, item.value, item.timestamp)
                    kept += 1
                    if kept % 20 == 0:
                        recording.round(counts)
    recording.round(counts)


def core_verdicts(records: Iterable[MembershipRecord], counts: Mapping[str, int]) -> list[DriftRow]:
    """The core's verdicts on a group's records, each followed by a round with these partition counts."""
    life = Life()
    for record in records:
        topics = (make_topic(topic, count) for topic, count in counts.items())
        life.take(record, make_observation(record.record + 1, *topics, time=record.record_time + 1_000))
    return life.rows.drift


_CLOSED_S = 60.0

_Wants = TypeVar("_Wants")


class Scaled(Generic[_Wants]):
    """One group and its progress: its first members, one more, all but the first.

    Attributes:
        records: The group's records in the log.
        members: All members that were started.
    """

    def __init__(self, start: Callable[[_Wants], Member], first: Sequence[_Wants], later: _Wants) -> None:
        self.records: list[MembershipRecord] = []
        self.members = [start(wants) for wants in first]
        self._start = start
        self._later = later
        self._wanted = [len(first), len(first) + 1, len(first)]

    @property
    def done(self) -> bool:
        return not self._wanted

    def saw(self, record: MembershipRecord) -> None:
        """Process a record of the group; takes the next step when it shows the expected number of members."""
        self.records.append(record)
        if self.done or len(record.members) != self._wanted[0]:
            return
        self._wanted.pop(0)
        if len(self._wanted) == 2:
            self.members.append(self._start(self._later))
        elif len(self._wanted) == 1:
            self.members[0].leave()


def follow(log: KafkaConsumer, groups: Mapping[str, Scaled[_Wants]], seconds: float) -> None:
    """Follow the groups until all are done, or for `seconds` at most; then all their members leave."""
    deadline = time.monotonic() + seconds
    while not all(group.done for group in groups.values()) and time.monotonic() < deadline:
        for name, record in read_on(log):
            if name in groups:
                groups[name].saw(record)
    leave_all([member for group in groups.values() for member in group.members])


def leave_all(members: Sequence[Member]) -> None:
    """Let members leave, and wait until they have."""
    for member in members:
        member.leave()
    for member in members:
        assert member.left.wait(_CLOSED_S), f"a member of {member.joins.group} does not close"
