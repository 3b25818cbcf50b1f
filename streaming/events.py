"""The probe's records: the one schema of `evenkeel.events` and `evenkeel.rounds`.

The probe writes them; the job and the next probe read them. JSON in UTF-8, one object per record. What an event saw is
the core's own input (`streaming.records`), as an array; rounds are in `streaming/records/rounds.py`. The schema only
grows, so that probes and jobs of different releases work together:

- Fields are only appended, with defaults. A reader ignores fields it does not know and uses the default for fields that
  an older writer does not write. No field ever changes its meaning or type, or is removed.
- A record that older readers would misread gets a type of its own. A reader skips types it does not know, and counts
  them (`UnknownType`).
- `"v"` is the writer's version of this schema, from 1 up. It is for people; nothing depends on it.

Events of a round that never closed count for nothing. Each record is complete in itself: a topic of the cluster, a
group of RocketMQ, or many groups of Kafka with the topics that they read, in one round. What several of them share is
told once: a hundred groups on one topic repeat neither its offsets nor a state that all have. Keys: `evenkeel.events`
by (the first) group id, or by topic where no group is concerned (UTF-8), `evenkeel.rounds` by cluster name.

Writers of the two topics may be wrong but are not malicious (docs/security.md): a record that breaks the schema
is refused (`RejectedEvent`), any other is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from streaming.records import (
    ClusterTopicObservation,
    GroupObservation,
    RocketMQObservation,
    Round,
    TopicObservation,
)
from streaming.terminal import visible

EVENTS_VERSION: Final = 1

MAX_RECORD_BYTES: Final = 32 * 1024 * 1024
"""The largest record that a probe may write: a group with a third of a million partitions, or a million without racks.
The event of a larger group has no topics."""

GROUPS_PER_RECORD: Final = 1_000
"""Groups in one record: enough that what they share costs nothing, few enough that several tasks have some to read."""

_PACKED_BYTES: Final = 1024 * 1024
"""A record with more is closed, and the next one begun; only a group that has more by itself makes a larger one."""

_LONGEST_NAME: Final = 100
"""Characters of a type in a reason."""


class _Event(msgspec.Struct, frozen=True, tag_field="type"):
    """What every event begins with.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        key: Group id; topic in a `ClusterTopicEvent`.
    """

    v: int
    cluster: str
    key: str


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One group of Kafka in one round, or its end; records have many of them (`GroupsEvent`).

    `log_partition` and `log_position` are -1: the group's place in the log follows from its id and the positions in the
    closing record. Where the log is not read, `seen` has what was seen instead.
    """

    v: int
    cluster: str
    key: str
    saw: GroupObservation


class GroupsAlike(msgspec.Struct, frozen=True, array_like=True):
    """Groups of which a round saw the same.

    Attributes:
        keys: Group ids.
        topics: Their topics, as indexes of the record's.
        saw: What was seen of each, without its topics.
    """

    keys: tuple[str, ...]
    topics: tuple[int, ...]
    saw: GroupObservation


class GroupsEvent(msgspec.Struct, frozen=True, tag_field="type", tag="groups"):
    """Groups of Kafka in one round, and their topics.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        topics: What was seen of each topic. A group with timestamps of unread records has its own copy of the topic.
        groups: The groups.
    """

    v: int
    cluster: str
    topics: tuple[TopicObservation, ...]
    groups: tuple[GroupsAlike, ...]

    def __post_init__(self) -> None:
        """Refuse a topic that is not there."""
        known = range(len(self.topics))
        if not all(index in known for alike in self.groups for index in alike.topics):
            message = "a group has a topic that the record does not have"
            raise ValueError(message)

    @property
    def key(self) -> str:
        """The first group."""
        return self.groups[0].keys[0]

    def events(self) -> Iterator[GroupEvent]:
        """Each group by itself; groups with the same topics share them."""
        for alike in self.groups:
            saw = msgspec.structs.replace(alike.saw, topics=tuple([self.topics[index] for index in alike.topics]))
            yield from (GroupEvent(self.v, self.cluster, key, saw) for key in alike.keys)


class RocketMQGroupEvent(_Event, frozen=True, tag="rocketmq_group"):
    """One group of RocketMQ in one round, or its end.

    It is written at every round, as long as the group has members, or anything of it has changed in the last twelve
    rounds; then, with `idle`, once per heartbeat. A probe that may not or could not ask something writes the event
    without it: a missing answer is recorded as missing, never filled in from an earlier round.
    """

    saw: RocketMQObservation


class ClusterTopicEvent(_Event, frozen=True, tag="cluster_topic"):
    """One topic of the cluster in one round, read by a group or not: once per heartbeat, and when it is gone."""

    saw: ClusterTopicObservation


Event = GroupEvent | RocketMQGroupEvent | ClusterTopicEvent
"""What a round tells of one group or topic."""

EventRecord = GroupsEvent | RocketMQGroupEvent | ClusterTopicEvent
"""What is in one record."""


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """A record that does not follow our schema; it goes to `quarantine`."""

    reason: str


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A record of a type that this release does not know: written by a newer probe, not damaged.

    Attributes:
        name: The type, printable.
    """

    name: str

    @property
    def reason(self) -> str:
        """What `quarantine` gives as the reason."""
        return f"type {self.name} is not known to this release; a newer probe may have written it"


class _Head(msgspec.Struct, frozen=True):
    """The fields that every record has, in every release."""

    v: int
    type: str


_T = TypeVar("_T")

_ENCODER = msgspec.json.Encoder()
_EVENTS = msgspec.json.Decoder(EventRecord)
_ROUNDS = msgspec.json.Decoder(Round)
_HEAD = msgspec.json.Decoder(_Head)
_TYPES: Final = {"groups", "rocketmq_group", "cluster_topic", "opened", "closed"}


def encode(record: EventRecord | Round) -> bytes:
    """Write one record."""
    return _ENCODER.encode(record)


def pack(events: Iterable[GroupEvent]) -> Iterator[GroupsEvent]:
    """Put the groups of one round into records: those that look alike together, beside those that read the same.

    Args:
        events: The groups; those that read the same topic share its object.
    """
    looks: dict[tuple[tuple[int, ...], bytes], list[GroupEvent]] = {}
    for event in events:
        plain = msgspec.structs.replace(event.saw, topics=())
        looks.setdefault((tuple(map(id, event.saw.topics)), _ENCODER.encode(plain)), []).append(event)
    parts = [
        (len(look), some[start : start + GROUPS_PER_RECORD])
        for (_, look), some in sorted(looks.items(), key=lambda each: _place(each[1][0]))
        for start in range(0, len(some), GROUPS_PER_RECORD)
    ]
    waiting: list[list[GroupEvent]] = []
    groups = size = 0
    for plain_bytes, some in parts:
        more = plain_bytes + topics_bytes(some[0].saw.topics) + sum(len(event.key) for event in some)
        if waiting and (groups + len(some) > GROUPS_PER_RECORD or size + more > _PACKED_BYTES):
            yield _record(waiting)
            waiting, groups, size = [], 0, 0
        waiting.append(some)
        groups, size = groups + len(some), size + more
    if waiting:
        yield _record(waiting)


def topics_bytes(topics: Iterable[TopicObservation]) -> int:
    """About how many bytes a record has for topics: three offsets a partition, and its racks."""
    return sum(4 * len(topic.high_watermarks) + (30 * len(topic.racks) if topic.racks else 0) for topic in topics)


def _place(event: GroupEvent) -> tuple[list[str], str]:
    """Where a group comes among others: beside those that read the same."""
    return [topic.topic for topic in event.saw.topics], event.key


def _record(parts: Iterable[list[GroupEvent]]) -> GroupsEvent:
    topics: dict[int, TopicObservation] = {}
    indexes: dict[int, int] = {}
    groups = []
    for part in parts:
        first = part[0]
        for topic in first.saw.topics:
            indexes.setdefault(id(topic), len(indexes))
            topics[id(topic)] = topic
        saw = msgspec.structs.replace(first.saw, topics=())
        of_part = tuple([indexes[id(topic)] for topic in first.saw.topics])
        groups.append(GroupsAlike(tuple([event.key for event in part]), of_part, saw))
    return GroupsEvent(first.v, first.cluster, tuple(topics.values()), tuple(groups))


def decode_event(value: bytes | None) -> EventRecord | UnknownType | RejectedEvent:
    """Read one record of `evenkeel.events`; any bytes are allowed."""
    return _decode(value, _EVENTS)


def decode_round(value: bytes | None) -> Round | UnknownType | RejectedEvent:
    """Read one record of `evenkeel.rounds`; any bytes are allowed."""
    return _decode(value, _ROUNDS)


def _decode(value: bytes | None, decoder: msgspec.json.Decoder[_T]) -> _T | UnknownType | RejectedEvent:
    if value is None:
        return RejectedEvent("the record has no value")
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = visible(str(error))
    try:
        head = _HEAD.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RejectedEvent(f"not one of our records: {reason}")
    if head.type not in _TYPES:
        return UnknownType(visible(head.type, _LONGEST_NAME))
    return RejectedEvent(f"not one of our records: {reason}")
