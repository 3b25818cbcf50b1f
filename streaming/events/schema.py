"""The probe's events and rounds: the one schema of `evenkeel.events` and `evenkeel.rounds`.

The probe writes them; the job and the next probe read them. JSON in UTF-8, one object per record. The schema only
grows, so that probes and jobs of different releases work together:

- Fields are only appended, with defaults. A reader ignores fields it does not know and uses the default for fields that
  an older writer does not write. No field ever changes its meaning or type, or is removed.
- A record that older readers would misread gets a type of its own. A reader skips types it does not know, and counts
  them (`UnknownType`).
- `"v"` is the writer's version of this schema, from 1 up. It is for people; nothing depends on it.

Everything else is refused (`Rejected`); nobody guesses.

A **round** is one observation of the cluster. Its number is the offset of its opening record in `evenkeel.rounds`, its
time the broker's append time of that record, so it depends on neither the probe's clock nor its memory. Events carry
the number; a closing record confirms that all of them are acknowledged and gives their offsets. Events of a round that
never closed count for nothing.

A cluster whose offsets log cannot be read has rounds without log positions: they are closed by a `RoundSeen`, which is
a type of its own, and report their groups by `SeenGroupEvent` and the types of `events/seen.py`. To older readers these
types are unknown: they take no such round, rather than one that seems to have no groups.

Keys: `evenkeel.events` by group id, or by topic where no group is concerned (UTF-8), `evenkeel.rounds` by cluster name.
Times are ms since the epoch, UTC. Offsets are offsets of the monitored topic, positions are exclusive ends in the
offsets log.

(Longer than other modules: every type of record, its fields explained, beside the checks of what a record may hold.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from streaming.events.brokers import Brokers, possible_brokers
from streaming.events.rocketmq import RocketMQGroupEvent, wrong_rocketmq_group
from streaming.events.seen import SEEN_TYPES, ClassicSeen, CommitsSeen, ConsumerSeen, SeenEvent, wrong_seen
from streaming.terminal import visible

EVENTS_VERSION: Final = 1

LOG: Final = "log"
"""Source of groups that are read from the offsets log."""

ADMIN: Final = "admin"
"""Source of groups that are only asked for, by Kafka's requests about groups."""

ROCKETMQ: Final = "rocketmq"
"""Source of RocketMQ's groups."""

# Kafka's controller refuses topics far below this. A larger count comes from a broken or hostile record, and would make
# the core allocate for partitions that cannot exist.
MAX_PARTITIONS: Final = 1_000_000

MAX_RECORD_BYTES: Final = 16 * 1024 * 1024
"""The largest record that a probe may write.

A `TopicEvent` takes up to 60 bytes a partition, so this fits a topic of a quarter of a million partitions. Decoded, a
record takes many times its bytes; larger ones are not decoded at all.
"""

# A closing record takes some 25 bytes for each partition of the log and of the events topic, and some 150 for each that
# is held back: this fits tens of thousands. A record made of event positions alone takes 25 times its bytes in memory.
_MAX_ROUND_BYTES: Final = 4 * 1024 * 1024

# Every broker's offsets fit in int64, and so does the state's encoding of them.
_MAX_OFFSET: Final = 2**63 - 1

FIRST_TIMESTAMP_MS: Final = 1_293_840_000_000
"""2011-01-01, when Kafka was first released. A record with an earlier timestamp has something else in that field, such
as seconds, or nothing (-1)."""

_LAST_TIMESTAMP_MS: Final = 253_402_300_799_999  # the end of the year 9999, the last that the tables hold


class RoundOpened(msgspec.Struct, frozen=True, tag="opened", tag_field="type"):
    """Opens a round: its offset is the round's number, its append time the round's time."""

    v: int
    cluster: str
    probe: str
    interval_ms: int


class LogHold(msgspec.Struct, frozen=True):
    """A partition of the offsets log that an open transaction has held back for more than a few rounds.

    Attributes:
        partition: Partition of the offsets log.
        since: Time of the first round that saw the last stable offset at its present value.
        groups: Groups of the round in that partition.
        producer_id: Producer whose transaction begins there; None when it could not be asked.
        transactional_id: Its transactional id; None when no coordinator reports it.
    """

    partition: int
    since: int
    groups: int
    producer_id: int | None = None
    transactional_id: str | None = None


class RoundClosed(msgspec.Struct, frozen=True, tag="closed", tag_field="type"):
    """Closes a round: all its events are acknowledged.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        probe: Id of the probe process, new at each start.
        interval_ms: Interval between rounds.
        round: Offset of the opening record.
        time: Append time of the opening record.
        log: Last stable offset of each partition of the offsets log, by partition number, read right after the round
            was opened. The round is judged with exactly the records below.
        log_end: High watermark of each, requested before the last stable offset.
        events: Per partition of `evenkeel.events` (as text) with events of this round: first offset and exclusive end.
        groups: Groups with events in this round.
        written: Events written in this round.
        cluster_id: Kafka's own cluster id; None when the broker gives none.
        holds: Partitions of the offsets log that are held back; None from a probe that does not report them.
        resting: As `events`, but only for the events of idle groups, of groups that are gone, and of the cluster's
            topics: a probe that starts finds there the groups and topics without events in this round.
        untold: Groups that the brokers list but that have no events in this round, because they are idle.
        size: Bytes of its events; 0 from a probe that does not report it.
        topics_since: Time of the oldest round that has the newest event of a topic of the cluster; None while there
            are no such events.
        offsets_retention_minutes: `offsets.retention.minutes` of all brokers; None when the probe may not ask
            (DescribeConfigs on the cluster), got no answer, or brokers differ.
        brokers: The brokers, and who coordinates the groups; None from a probe that does not report them.
    """

    v: int
    cluster: str
    probe: str
    interval_ms: int
    round: int
    time: int
    log: tuple[int, ...]
    log_end: tuple[int, ...]
    events: dict[str, tuple[int, int]]
    groups: int
    written: int
    cluster_id: str | None = None
    holds: tuple[LogHold, ...] | None = None
    resting: dict[str, tuple[int, int]] = {}
    untold: int = 0
    size: int = 0
    topics_since: int | None = None
    offsets_retention_minutes: int | None = None
    brokers: Brokers | None = None

    @property
    def source(self) -> str:
        """Where its groups were read from: `LOG`, or what `RoundSeen` says."""
        return LOG


class RoundSeen(RoundClosed, frozen=True, tag="closed_seen", tag_field="type", kw_only=True):
    """Closes a round of a cluster whose offsets log is not read: `log` and `log_end` are empty, `holds` is None.

    Attributes:
        seen_by: How its groups were seen: `ADMIN` (Kafka's requests about groups), or the name of another source.
    """

    seen_by: str = "admin"

    @property
    def source(self) -> str:
        """Where its groups were read from."""
        return self.seen_by


Round = RoundOpened | RoundClosed | RoundSeen


class GroupEvent(msgspec.Struct, frozen=True, tag="group", tag_field="type"):
    """One group in one round. Written before the group's `TopicEvent`s of the round.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        round: The round's number.
        time: The round's time.
        group: Group id.
        log_partition: Partition of the offsets log that holds the group.
        log_position: The round's position in that partition.
        topics: How many `TopicEvent`s follow for this group in this round.
        state: Coordinator's state in Kafka's words; None when it could not be asked.
        protocol_type: As the coordinator reports it; None when it could not be asked.
        group_type: "classic", "consumer", "share", "streams"; None when the broker does not report it.
        held_since: Time since when the partition's last stable offset has stayed below its high watermark, for more
            than a few rounds; None when it has not.
        cluster_id: Kafka's own cluster id.
        held_by_producer: Id of the producer whose open transaction is the reason; None when not known.
        held_by: Its transactional id; None when not known.
        idle: The group has no members and has not changed for a while: until it changes, it has events only once per
            heartbeat.
        rested: For a group that was idle and has changed, times of the first and the last round in which it looked the
            same. Its topics' offsets were the same until then, although the rounds between reported it only once per
            heartbeat. None otherwise, and from a probe that does not report it.
    """

    v: int
    cluster: str
    round: int
    time: int
    group: str
    log_partition: int
    log_position: int
    topics: int
    state: str | None
    protocol_type: str | None
    group_type: str | None
    held_since: int | None = None
    cluster_id: str | None = None
    held_by_producer: int | None = None
    held_by: str | None = None
    idle: bool = False
    rested: tuple[int, int] | None = None


class SeenGroupEvent(GroupEvent, frozen=True, tag="group_seen", tag_field="type"):
    """One group in a round without log positions: `log_partition` and `log_position` are -1, `held_since` is None.

    Attributes:
        seen: How many events of `events/seen.py` follow for this group in this round, beside its `TopicEvent`s.
        looked: The round has seen the group's membership. Without an event about it, it is as it was.
        absent_at: Time of the closed round before, which did not list the group; None for a group that it listed, and
            where nobody knows.
    """

    seen: int = 0
    looked: bool = False
    absent_at: int | None = None


class Retention(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the settings of a topic say of how long its records are kept.

    Attributes:
        ms: `retention.ms`; -1 for unlimited.
        bytes: `retention.bytes`; -1 for unlimited.
        deletes: `cleanup.policy` has "delete": without it both mean nothing.
        append_time: `message.timestamp.type` is LogAppendTime, so that a record's age is its time in the log; False for
            CreateTime, the producer's word.
        compacts: `cleanup.policy` has "compact": offsets may be missing from the log. False also from a probe that does
            not report it.
    """

    ms: int
    bytes: int
    deletes: bool
    append_time: bool
    compacts: bool = False


class UnreadTimestamp(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the brokers say about the timestamps of a partition's records, from the log start to the oldest unread one.

    Attributes:
        partition: Partition.
        offset: Offset of the oldest unread record: the committed offset, or the log start where that is higher.
        reached: One of these records has this timestamp, ms.
        below: All of them have timestamps below this one, ms; -1 when that is not known.
        own: The oldest unread record itself is the one that has `reached`.
    """

    partition: int
    offset: int
    reached: int
    below: int
    own: bool


class TopicEvent(msgspec.Struct, frozen=True, tag="topic", tag_field="type"):
    """One topic of one group in one round.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        round: The round's number.
        group: Group id.
        topic: Topic that the group subscribes to or has committed offsets for.
        partitions: Partition count; None when the topic does not exist.
        topic_id: Kafka's printed topic id; None when the broker gives none.
        end: High watermark per partition; -1 where it is unknown. As long as `partitions` (or empty).
        stable: Last stable offset per partition, the same shape.
        start: Log start offset per partition, the same shape.
        racks: Racks of the replicas per partition; None when no broker has a rack.
        retention: How long records are kept; None when the probe may not ask (DescribeConfigs), has not yet, or does
            not report it.
        unread: Timestamps of the oldest unread records that were there before the probe's first round, as far as it has
            found them. Reported when they are news, and once per heartbeat: they hold while a record stays the oldest
            unread one.
    """

    v: int
    cluster: str
    round: int
    group: str
    topic: str
    partitions: int | None
    topic_id: str | None
    end: tuple[int, ...]
    stable: tuple[int, ...]
    start: tuple[int, ...]
    racks: tuple[tuple[str, ...], ...] | None = None
    retention: Retention | None = None
    unread: tuple[UnreadTimestamp, ...] = ()


class GroupGone(msgspec.Struct, frozen=True, tag="gone", tag_field="type"):
    """A group that the previous round listed and this one does not. Written once.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        round: The round's number.
        time: The round's time.
        group: Group id.
        log_partition: Partition of the offsets log that held the group.
        log_position: The round's position in that partition.
        reason: "deleted" (the brokers no longer list it) or "filtered" (the configuration excludes it now).
    """

    v: int
    cluster: str
    round: int
    time: int
    group: str
    log_partition: int
    log_position: int
    reason: str


class SeenGroupGone(GroupGone, frozen=True, tag="gone_seen", tag_field="type"):
    """The same in a round without log positions: `log_partition` and `log_position` are -1."""


class ClusterTopicEvent(msgspec.Struct, frozen=True, tag="cluster_topic", tag_field="type"):
    """One topic of the cluster in one round, whether or not a group reads it: once per heartbeat, and when it is gone.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        round: The round's number.
        time: The round's time.
        topic: Topic.
        topic_id: Kafka's printed topic id; None when the broker gives none.
        end: High watermark per partition; -1 where it is unknown. Empty when the topic is gone.
        start: Log start offset per partition, the same shape.
        sizes: Bytes of the leader's log per partition, the same shape; -1 where unknown. None when the probe may not
            ask (Describe on the cluster).
        leaders: Node id of the leader per partition, the same shape; -1 where there is none.
        unsized: Why `sizes` is None: "no_right", "unsupported" (brokers before 1.0) or "no_answer".
        groups: Watched groups that read it: they have committed offsets of it, or subscribe to it.
        readers: The first of them by name, at most `MOST_READERS`.
        hidden: Why there may be other groups that read it: "filtered" (the configuration excludes groups), "no_right"
            (to describe any group), "share_groups" (their topics are not in what we ask for), "undescribed" (the
            topics of a group are not known in this round); None when there is none of these reasons.
        gone: None while the topic is there. In its last event "deleted" (brokers that may tell say that it does not
            exist), "not_visible" (the right Describe on it is missing now) or "filtered" (the configuration excludes
            it now).
    """

    v: int
    cluster: str
    round: int
    time: int
    topic: str
    topic_id: str | None = None
    end: tuple[int, ...] = ()
    start: tuple[int, ...] = ()
    sizes: tuple[int, ...] | None = None
    leaders: tuple[int, ...] = ()
    unsized: str | None = None
    groups: int = 0
    readers: tuple[str, ...] = ()
    hidden: str | None = None
    gone: str | None = None


Event = (
    GroupEvent
    | SeenGroupEvent
    | TopicEvent
    | GroupGone
    | SeenGroupGone
    | ClusterTopicEvent
    | ClassicSeen
    | ConsumerSeen
    | CommitsSeen
    | RocketMQGroupEvent
)


@dataclass(frozen=True, slots=True)
class Rejected:
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

MOST_READERS: Final = 20
"""Groups that an event of a topic names: enough to show who reads it, and so few that events and rows stay small.
All of them are a query over `lag_current`."""

LONGEST_READER: Final = 1_000
"""Characters of a group that an event names; an id can have 32 KB. A longer one is cut."""

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


def decode_event(value: bytes | None) -> Event | UnknownType | Rejected:
    """Read one record of `evenkeel.events`; any bytes are allowed."""
    event = _decode(value, _EVENTS, MAX_RECORD_BYTES)
    if isinstance(event, TopicEvent):
        reason = _wrong_topic_event(event)
        return Rejected(reason) if reason else _with_possible_extras(event)
    if isinstance(event, ClusterTopicEvent):
        reason = _wrong_cluster_topic(event)
        return Rejected(reason) if reason else event
    if isinstance(event, SeenEvent):
        reason = wrong_seen(event)
        return Rejected(reason) if reason else event
    if isinstance(event, SeenGroupEvent | SeenGroupGone):
        return Rejected(reason) if (reason := _wrong_seen_group(event)) else event
    if isinstance(event, RocketMQGroupEvent):
        reason = wrong_rocketmq_group(event)
        return Rejected(reason) if reason else event
    if isinstance(event, (GroupEvent, GroupGone)):
        if not 0 <= event.log_partition < MAX_PARTITIONS:
            return Rejected(f"log_partition is {event.log_partition}")
        if not 0 <= event.log_position <= _MAX_OFFSET or not 0 <= event.round <= _MAX_OFFSET:
            return Rejected(f"log_position is {event.log_position}, round {event.round}")
        producer = event.held_by_producer if isinstance(event, GroupEvent) else None
        if producer is not None and not 0 <= producer <= _MAX_OFFSET:
            return Rejected(f"held_by_producer is {producer}")
        return event
    return event if isinstance(event, Rejected | UnknownType) else Rejected("not an event")


def decode_round(value: bytes | None) -> Round | UnknownType | Rejected:
    """Read one record of `evenkeel.rounds`; any bytes are allowed."""
    record = _decode(value, _ROUNDS, _MAX_ROUND_BYTES)
    if isinstance(record, RoundSeen):
        if record.log or record.log_end or record.holds is not None:
            return Rejected("a round without a log that has log positions")
        if not _SOURCE.fullmatch(record.seen_by) or record.seen_by == LOG:
            return Rejected(f"{visible(record.seen_by, _LONGEST_NAME)} is not a source of groups")
        return Rejected(reason) if (reason := _wrong_positions(record)) else _with_possible_brokers(record)
    if isinstance(record, RoundClosed):
        if not 0 < len(record.log) <= MAX_PARTITIONS or len(record.log) != len(record.log_end):
            return Rejected(f"positions of {len(record.log)} and ends of {len(record.log_end)} log partitions")
        if not all(0 <= position <= _MAX_OFFSET for position in (*record.log, *record.log_end)):
            return Rejected("a negative or impossible log position")
        for hold in record.holds or ():
            if not (0 <= hold.partition < len(record.log) and 0 <= hold.groups <= _MAX_OFFSET):
                return Rejected(f"a hold of log partition {hold.partition} with {hold.groups} groups")
            if record.log[hold.partition] >= record.log_end[hold.partition]:
                return Rejected(f"a hold of log partition {hold.partition}, which nothing holds back")
            if hold.producer_id is not None and not 0 <= hold.producer_id <= _MAX_OFFSET:
                return Rejected(f"a hold by producer {hold.producer_id}")
        return Rejected(reason) if (reason := _wrong_positions(record)) else _with_possible_brokers(record)
    if isinstance(record, RoundOpened | UnknownType | Rejected):
        return record
    return Rejected("not a round")


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
        return Rejected("the record has no value")
    if len(value) > most:
        return Rejected(f"the record has {len(value):,} bytes; no probe writes one of more than {most:,}")
    try:
        record = decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _unread(value, error)
    if record.v < 1:
        return Rejected("its schema version is below 1")
    return record


def _unread(value: bytes, error: Exception) -> UnknownType | Rejected:
    try:
        head = _HEAD.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = None
    if head is not None and head.v >= 1 and head.type not in _TYPES:
        return UnknownType(visible(head.type, _LONGEST_NAME))
    return Rejected(f"not one of our records: {visible(str(error))}")


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
