"""The probe's events and rounds: the one schema of `evenkeel.events` and `evenkeel.rounds`.

The probe writes them; the job and the next probe read them. JSON in UTF-8, one object per record. The schema only
grows, so that probes and jobs of different releases work together:

- Fields are only appended, with defaults. A reader ignores fields it does not know and uses the default for fields that
  an older writer does not write. No field ever changes its meaning or type, or is removed.
- A record that older readers would misread gets a type of its own. A reader skips types it does not know, and counts
  them (`codec.UnknownType`).
- `"v"` is the writer's version of this schema, from 1 up. It is for people; nothing depends on it.

Everything else is refused (`codec.Rejected`); nobody guesses.

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

What of it can be true is checked where it is read, in `codec.py`. (Longer than other modules: every type of record, its
fields explained.)
"""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.events.brokers import Brokers
from streaming.events.rocketmq import RocketMQGroupEvent
from streaming.events.seen import ClassicSeen, CommitsSeen, ConsumerSeen
from streaming.records import Configured

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

FIRST_TIMESTAMP_MS: Final = 1_293_840_000_000
"""2011-01-01, when Kafka was first released. A record with an earlier timestamp has something else in that field, such
as seconds, or nothing (-1)."""

MOST_READERS: Final = 20
"""Groups that an event of a topic names: enough to show who reads it, and so few that events and rows stay small.
All of them are a query over `lag_current`."""

LONGEST_READER: Final = 1_000
"""Characters of a group that an event names; an id can have 32 KB. A longer one is cut."""

LONGEST_SUPERVISOR: Final = 100
"""Characters of a supervisor's id: a UUID has 36, a host with the name of a unit some more."""


class RoundOpened(msgspec.Struct, frozen=True, tag="opened", tag_field="type", omit_defaults=True):
    """Opens a round: its offset is the round's number, its append time the round's time.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        probe: Id of the probe process, new at each start.
        interval_ms: Interval between rounds.
        since: Number of the first round of the probe's present run (`streaming/probe/standby/`); None in that round
            itself, and from a probe that does not report it.
        supervisor: Id of what starts the probe again when it dies; None where nobody said.
        ends: Opens nothing: the probe makes no further round for now. A reader that does not know this field takes the
            record for a round that never closed, which counts for nothing either.
    """

    v: int
    cluster: str
    probe: str
    interval_ms: int
    since: int | None = None
    supervisor: str | None = None
    ends: bool = False


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
        known_brokers: RocketMQ: for how long no name server has listed a broker, in elapsed time, ms, by its name; 0
            for those that one lists. Groups of a broker that is missing are not gone. None from a probe that does not
            report it, and of Kafka.
    """

    seen_by: str = "admin"
    known_brokers: dict[str, int] | None = None

    @property
    def source(self) -> str:
        """Where its groups were read from."""
        return self.seen_by


Round = RoundOpened | RoundClosed | RoundSeen


class _OfGroup(msgspec.Struct, frozen=True):
    """What a group's own event of a round begins with.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        round: The round's number.
        time: The round's time.
        group: Group id.
        log_partition: Partition of the offsets log that holds the group.
        log_position: The round's position in that partition.
    """

    v: int
    cluster: str
    round: int
    time: int
    group: str
    log_partition: int
    log_position: int


class GroupEvent(_OfGroup, frozen=True, tag="group", tag_field="type"):
    """One group in one round. Written before the group's `TopicEvent`s of the round.

    Attributes, after those of `_OfGroup`:
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
        configured: What the settings say of the group; None where they say nothing, and from a probe that does not
            report it.
    """

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
    configured: Configured | None = None


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


class RetentionSettings(msgspec.Struct, frozen=True, omit_defaults=True):
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
    retention: RetentionSettings | None = None
    unread: tuple[UnreadTimestamp, ...] = ()


class GroupGone(_OfGroup, frozen=True, tag="gone", tag_field="type"):
    """A group that the previous round listed and this one does not. Written once.

    Attributes, after those of `_OfGroup`:
        reason: "deleted" (the brokers no longer list it) or "filtered" (the configuration excludes it now).
    """

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
