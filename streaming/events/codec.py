"""Reading and writing records of `evenkeel.events` and `evenkeel.rounds`, and which of them can be true.

Anybody who may write to the two topics may write anything. A record that contradicts itself, or that no probe could
have written, is refused as a whole (`RejectedEvent`). Where only an extra is impossible (retention, timestamps,
brokers, a run) the record counts without it: then that is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from streaming.events.brokers import possible_brokers
from streaming.events.rocketmq import RocketMQGroupEvent, are_possible_brokers, wrong_rocketmq_group
from streaming.events.schema import (
    FIRST_TIMESTAMP_MS,
    LOG,
    LONGEST_READER,
    LONGEST_SUPERVISOR,
    MAX_PARTITIONS,
    MAX_RECORD_BYTES,
    MOST_READERS,
    ClusterTopicEvent,
    Event,
    GroupEvent,
    GroupGone,
    Round,
    RoundClosed,
    RoundOpened,
    RoundSeen,
    SeenGroupEvent,
    SeenGroupGone,
    TopicEvent,
)
from streaming.events.seen import SEEN_TYPES, SeenEvent, wrong_seen
from streaming.terminal import visible

# A closing record takes some 25 bytes for each partition of the log and of the events topic, and some 150 for each that
# is held back: this fits tens of thousands. A record made of event positions alone takes 25 times its bytes in memory.
_MAX_ROUND_BYTES: Final = 4 * 1024 * 1024

# Every broker's offsets fit in int64, and so does the state's encoding of them.
_MAX_OFFSET: Final = 2**63 - 1

_LAST_TIMESTAMP_MS: Final = 253_402_300_799_999  # the end of the year 9999, the last that the tables hold


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


_ENCODER = msgspec.json.Encoder()
_EVENTS = msgspec.json.Decoder(Event)
_ROUNDS = msgspec.json.Decoder(Round)
_HEAD = msgspec.json.Decoder(_Head)
# Brokers allow these names of topics (`org.apache.kafka.common.internals.Topic`).
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")

_TYPES = {"opened", "closed", "closed_seen", "group", "topic", "gone", "cluster_topic", "group_seen", "gone_seen"}
_TYPES |= {"rocketmq_group", *SEEN_TYPES}

# Characters of a name in a reason; an id can have 32 KB.
_LONGEST_NAME = 100

# Sources are our own words; a column of the tables holds them.
_SOURCE = re.compile(r"[a-z][a-z_]{0,31}")

_MAX_GROUPS = 2**31 - 1


def encode_event(event: Event) -> bytes:
    """Write one event."""
    return _ENCODER.encode(event)


def encode_round(record: Round) -> bytes:
    """Write one opening or closing record."""
    return _ENCODER.encode(record)


def decode_event(value: bytes | None) -> Event | UnknownType | RejectedEvent:
    """Read one record of `evenkeel.events`; any bytes are allowed."""
    event = _decode(value, _EVENTS, MAX_RECORD_BYTES)
    if isinstance(event, TopicEvent):
        reason = _wrong_topic_event(event)
        return RejectedEvent(reason) if reason else _with_possible_extras(event)
    if isinstance(event, ClusterTopicEvent):
        reason = _wrong_cluster_topic(event)
        return RejectedEvent(reason) if reason else event
    if isinstance(event, SeenEvent):
        reason = wrong_seen(event)
        return RejectedEvent(reason) if reason else event
    if isinstance(event, SeenGroupEvent | SeenGroupGone):
        return RejectedEvent(reason) if (reason := _wrong_seen_group(event)) else event
    if isinstance(event, RocketMQGroupEvent):
        reason = wrong_rocketmq_group(event)
        return RejectedEvent(reason) if reason else event
    if isinstance(event, (GroupEvent, GroupGone)):
        if not 0 <= event.log_partition < MAX_PARTITIONS:
            return RejectedEvent(f"log_partition is {event.log_partition}")
        if not 0 <= event.log_position <= _MAX_OFFSET or not 0 <= event.round <= _MAX_OFFSET:
            return RejectedEvent(f"log_position is {event.log_position}, round {event.round}")
        producer = event.held_by_producer if isinstance(event, GroupEvent) else None
        if producer is not None and not 0 <= producer <= _MAX_OFFSET:
            return RejectedEvent(f"held_by_producer is {producer}")
        return event
    return event if isinstance(event, RejectedEvent | UnknownType) else RejectedEvent("not an event")


def decode_round(value: bytes | None) -> Round | UnknownType | RejectedEvent:
    """Read one record of `evenkeel.rounds`; any bytes are allowed."""
    record = _decode(value, _ROUNDS, _MAX_ROUND_BYTES)
    if isinstance(record, RoundSeen):
        if record.log or record.log_end or record.holds is not None:
            return RejectedEvent("a round without a log that has log positions")
        if not _SOURCE.fullmatch(record.seen_by) or record.seen_by == LOG:
            return RejectedEvent(f"{visible(record.seen_by, _LONGEST_NAME)} is not a source of groups")
        if record.known_brokers is not None and not are_possible_brokers(record.known_brokers):
            record = msgspec.structs.replace(record, known_brokers=None)
        return RejectedEvent(reason) if (reason := _wrong_positions(record)) else _with_possible_brokers(record)
    if isinstance(record, RoundClosed):
        if not 0 < len(record.log) <= MAX_PARTITIONS or len(record.log) != len(record.log_end):
            return RejectedEvent(f"positions of {len(record.log)} and ends of {len(record.log_end)} log partitions")
        if not all(0 <= position <= _MAX_OFFSET for position in (*record.log, *record.log_end)):
            return RejectedEvent("a negative or impossible log position")
        for hold in record.holds or ():
            if not (0 <= hold.partition < len(record.log) and 0 <= hold.groups <= _MAX_OFFSET):
                return RejectedEvent(f"a hold of log partition {hold.partition} with {hold.groups} groups")
            if record.log[hold.partition] >= record.log_end[hold.partition]:
                return RejectedEvent(f"a hold of log partition {hold.partition}, which nothing holds back")
            if hold.producer_id is not None and not 0 <= hold.producer_id <= _MAX_OFFSET:
                return RejectedEvent(f"a hold by producer {hold.producer_id}")
        return RejectedEvent(reason) if (reason := _wrong_positions(record)) else _with_possible_brokers(record)
    if isinstance(record, RoundOpened):
        return _with_possible_run(record)
    if isinstance(record, UnknownType | RejectedEvent):
        return record
    return RejectedEvent("not a round")


def _with_possible_run(record: RoundOpened) -> RoundOpened:
    """The record without a run or a supervisor that cannot be: readers of rounds need neither."""
    if record.since is not None and not 0 <= record.since <= _MAX_OFFSET:
        record = msgspec.structs.replace(record, since=None)
    if record.supervisor is not None and not 0 < len(record.supervisor) <= LONGEST_SUPERVISOR:
        record = msgspec.structs.replace(record, supervisor=None)
    return record


def _with_possible_brokers(record: RoundClosed) -> RoundClosed:
    possible = possible_brokers(record.brokers, len(record.log))
    return record if possible is record.brokers else msgspec.structs.replace(record, brokers=None)


def _wrong_positions(record: RoundClosed) -> str | None:
    for positions in (record.events, record.resting):
        for partition, (first, end) in positions.items():
            if not (_is_partition(partition) and 0 <= first <= end <= _MAX_OFFSET):
                return f"event positions {first} to {end} of partition {partition[:20]!r}"
    return None


def _wrong_seen_group(event: SeenGroupEvent | SeenGroupGone) -> str | None:
    if event.log_partition != -1 or event.log_position != -1 or not 0 <= event.round <= _MAX_OFFSET:
        return f"log position {event.log_position} in a round without a log, round {event.round}"
    if isinstance(event, SeenGroupEvent) and not 0 <= event.seen <= len(SEEN_TYPES):
        return f"{event.seen} events as seen of one group"
    absent_at = event.absent_at if isinstance(event, SeenGroupEvent) else None
    if absent_at is not None and not 0 <= absent_at <= _LAST_TIMESTAMP_MS:
        return f"a round before at {absent_at}"
    return None


def _is_partition(name: str) -> bool:
    # (Python refuses to convert a number of thousands of digits.)
    return name.isascii() and name.isdigit() and len(name) < 10 and int(name) < MAX_PARTITIONS


def _decode(
    value: bytes | None, decoder: msgspec.json.Decoder[Event] | msgspec.json.Decoder[Round], most: int
) -> object:
    if value is None:
        return RejectedEvent("the record has no value")
    if len(value) > most:
        return RejectedEvent(f"the record has {len(value):,} bytes; no probe writes one of more than {most:,}")
    try:
        record = decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _unread(value, error)
    if record.v < 1:
        return RejectedEvent("its schema version is below 1")
    return record


def _unread(value: bytes, error: Exception) -> UnknownType | RejectedEvent:
    try:
        head = _HEAD.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = None
    if head is not None and head.v >= 1 and head.type not in _TYPES:
        return UnknownType(visible(head.type, _LONGEST_NAME))
    return RejectedEvent(f"not one of our records: {visible(str(error))}")


def _with_possible_extras(event: TopicEvent) -> TopicEvent:
    """The event without a retention or timestamps that make no sense: they are not known then, the offsets are."""
    kept = event.retention
    if kept is not None and not (-1 <= kept.ms <= _MAX_OFFSET and -1 <= kept.bytes <= _MAX_OFFSET):
        event = msgspec.structs.replace(event, retention=None)
    if event.unread and not _are_possible(event):
        event = msgspec.structs.replace(event, unread=())
    return event


def _are_possible(event: TopicEvent) -> bool:
    count = event.partitions or 0
    return len(event.unread) <= count and all(
        0 <= one.partition < count
        and 0 <= one.offset <= _MAX_OFFSET
        and FIRST_TIMESTAMP_MS <= one.reached <= _LAST_TIMESTAMP_MS
        and (one.below == -1 or one.reached < one.below <= _LAST_TIMESTAMP_MS)
        for one in event.unread
    )


def _wrong_topic_event(event: TopicEvent) -> str | None:
    count = event.partitions
    if count is not None and not 0 < count <= MAX_PARTITIONS:
        return f"partition count {count} of topic {visible(event.topic, _LONGEST_NAME)}"
    expected = count or 0
    if not len(event.end) == len(event.stable) == len(event.start) == expected:
        return f"offsets of {len(event.end)}, {len(event.stable)}, {len(event.start)} partitions instead of {expected}"
    if event.racks is not None and len(event.racks) != expected:
        return f"racks of {len(event.racks)} partitions instead of {expected}"
    for offsets in (event.end, event.stable, event.start):
        if offsets and (min(offsets) < -1 or max(offsets) > _MAX_OFFSET):
            return "an offset below -1 or beyond int64"
    return None


def _wrong_cluster_topic(event: ClusterTopicEvent) -> str | None:
    if not _TOPIC_NAME.fullmatch(event.topic) or event.topic in {".", ".."}:
        return f"{visible(event.topic, _LONGEST_NAME)} is not a name of a topic"
    if not 0 <= event.round <= _MAX_OFFSET or event.time < 0:
        return f"round {event.round} at {event.time}"
    if not 0 <= event.groups <= _MAX_GROUPS or len(event.readers) != min(event.groups, MOST_READERS):
        return f"{len(event.readers)} readers of {event.groups} groups"
    if any(len(reader) > LONGEST_READER for reader in event.readers) or not event.time <= _LAST_TIMESTAMP_MS:
        return "a reader with too long a name, or an impossible time"
    reasons = (event.gone, event.hidden, event.unsized, event.topic_id)
    if any(reason is not None and not 0 < len(reason) <= _LONGEST_NAME for reason in reasons):
        return "a reason, or an id, of impossible length"
    if event.gone is not None:
        return None if not event.end else "a topic that is gone with partitions"
    count = len(event.end)
    if not 0 < count <= MAX_PARTITIONS:
        return f"partition count {count} of topic {event.topic}"
    shapes = (event.start, event.leaders, event.end if event.sizes is None else event.sizes)
    if any(len(values) != count for values in shapes):
        return f"start, leader or size of another number of partitions than the {count} of topic {event.topic}"
    for values in (event.end, event.start, event.leaders, event.sizes or ()):
        if values and (min(values) < -1 or max(values) > _MAX_OFFSET):
            return "an offset, a leader or a size below -1 or beyond int64"
    return None
