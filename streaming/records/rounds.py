"""Rounds of the probe: their opening and closing records in `evenkeel.rounds`, and a closed one as the core gets it.

A round is one observation of the cluster. Its number is the offset of its opening record, its time the broker's append
time of that record, so it depends on neither the probe's clock nor its memory. Events carry the number; a closing
record confirms that all of them are acknowledged and gives their offsets. Every closing record is complete in itself:
it says what was seen of brokers that are gone.

Times are ms since the epoch, UTC. Offsets are offsets of the monitored topic, positions are exclusive ends in the
offsets log.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.records.unreadable import CountedRecords, QuarantinedRecord

LOG: Final = "log"
"""Source of groups that are read from the offsets log."""

ADMIN: Final = "admin"
"""Source of groups that are only asked for, by Kafka's requests about groups."""

ROCKETMQ: Final = "rocketmq"
"""Source of RocketMQ's groups."""

SILENT_INTERVALS: Final = 3
"""After this many of the probe's intervals without a round there is a gap: the log is read on without rounds, and a
step between two rounds counts no more than this. One round may be late because of a garbage collection or a slow
broker. (The alert rules have their own threshold for silence.)"""

LONGEST_INTERVAL_MS: Final = 600_000
"""Upper limit for a probe's interval: a longer one would delay membership for days, or allow absurd steps."""


_REST_ROUNDS: Final = 3
_LONGEST_REST_MS: Final = 30_000


def rest_interval_ms(interval_ms: int) -> int:
    """How often rounds in which nothing moves are written, ms: each by itself would cost as much as one with news.

    Args:
        interval_ms: How often they come.
    """
    return max(interval_ms, min(_REST_ROUNDS * interval_ms, _LONGEST_REST_MS))


class _OfProbe(msgspec.Struct, frozen=True):
    """What each record of a round says of its probe.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        probe: Id of the probe process, new at each start.
        interval_ms: Interval between rounds.
    """

    v: int
    cluster: str
    probe: str
    interval_ms: int


class RoundOpened(_OfProbe, frozen=True, tag="opened", tag_field="type", omit_defaults=True):
    """Opens a round: its offset is the round's number, its append time the round's time.

    Attributes:
        since: Number of the first round of the probe's present run (`streaming/probe/standby/`); None in that round
            itself.
        supervisor: Id of what starts the probe again when it dies; None where nobody said.
        ends: Opens nothing: the probe makes no further round for now. A reader that does not know this field takes the
            record for a round that never closed, which counts for nothing either.
    """

    since: int | None = None
    supervisor: str | None = None
    ends: bool = False


class HeldPartition(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition of the offsets log that an open transaction has held back for more than a few rounds.

    Attributes:
        partition: Partition of the offsets log.
        since: Time of the first round with the present last stable offset, ms.
        position: Last stable offset: the beginning of the transaction.
        end: High watermark.
        groups: Number of the round's groups in the partition.
        producer_id: Producer of the transaction; None when it could not be asked.
        transactional_id: Its transactional id; None when no coordinator reports it.
    """

    partition: int
    since: int
    position: int
    end: int
    groups: int
    producer_id: int | None = None
    transactional_id: str | None = None


class Broker(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A broker of the cluster.

    Attributes:
        node: Its node id.
        host: The host that it advertises to the probe.
        rack: Its rack; None without one.
        since: For a broker that is up, time of the first round that had it again, or for the first time; None if it was
            there in the first round that the probe knows. For one that is gone, time of the first round without it.
    """

    node: int
    host: str
    rack: str | None = None
    since: int | None = None


class Brokers(msgspec.Struct, frozen=True, omit_defaults=True):
    """The brokers in one round.

    Each election of a leader raises a partition's leader epoch, so epochs tell which of two answers is the older one.

    Attributes:
        up: Those in the metadata, by node id.
        gone: Those that an earlier round had, for a day after they went, by node id.
        coordinators: Leader's node id and leader epoch per partition of the offsets log; empty where the log is not
            read, or the brokers do not report leader epochs (before 2.1).
    """

    up: tuple[Broker, ...]
    gone: tuple[Broker, ...] = ()
    coordinators: tuple[tuple[int, int], ...] = ()


class RoundClosed(_OfProbe, frozen=True, tag="closed", tag_field="type"):
    """Closes a round: all its events are acknowledged.

    Attributes:
        round: Offset of the opening record.
        time: Append time of the opening record.
        log: Last stable offset of each partition of the offsets log, by partition number, read right after the round
            was opened. The round is judged with exactly the records below. Empty where the log is not read.
        log_end: High watermark of each, requested before the last stable offset.
        events: Per partition of `evenkeel.events` (as text) with records of this round: first offset and exclusive end.
        groups: Groups with events in this round.
        written: Events of this round: of groups, and of topics.
        cluster_id: Kafka's own cluster id; None when the broker gives none.
        holds: Partitions of the offsets log that are held back; None where the log is not read.
        resting: As `events`, but only for the events of idle groups, of groups that are gone, and of the cluster's
            topics: a probe that starts finds there the groups and topics without events in this round.
        untold: Groups that the brokers list but that have no events in this round, because they are idle.
        size: Bytes of its events, each group's with its topics.
        topics_since: Time of the oldest round that has the newest event of a topic of the cluster; None while there
            are no such events.
        offsets_retention_minutes: `offsets.retention.minutes` of all brokers; None when the probe may not ask
            (DescribeConfigs on the cluster), got no answer, or brokers differ.
        brokers: The brokers, and who coordinates the groups; None for RocketMQ.
        source: Where its groups were read from: `LOG`, `ADMIN` or `ROCKETMQ`.
        known_brokers: RocketMQ: for how long no name server has listed a broker, in elapsed time, ms, by its name; 0
            for those that one lists. Groups of a broker that is missing are not gone. None for Kafka.
        share_log: How far each partition of `__share_group_state` was read; empty where it is not read.
        unreadable: Its records since the round before that could not be decoded: some of them, and a count of the
            others.
    """

    round: int
    time: int
    log: tuple[int, ...]
    log_end: tuple[int, ...]
    events: dict[str, tuple[int, int]]
    groups: int
    written: int
    cluster_id: str | None = None
    holds: tuple[HeldPartition, ...] | None = None
    resting: dict[str, tuple[int, int]] = {}
    untold: int = 0
    size: int = 0
    topics_since: int | None = None
    offsets_retention_minutes: int | None = None
    brokers: Brokers | None = None
    source: str = LOG
    known_brokers: dict[str, int] | None = None
    share_log: tuple[int, ...] = ()
    unreadable: tuple[QuarantinedRecord | CountedRecords, ...] = ()

    @property
    def tells_news(self) -> bool:
        """Whether something moved, as far as the record shows: of groups, brokers, or what holds the log back."""
        brokers = self.brokers or Brokers(())
        since = [broker.since for broker in (*brokers.up, *brokers.gone)]
        return self.events != self.resting or bool(self.holds) or bool(self.unreadable) or self.time in since


Round = RoundOpened | RoundClosed


class ClosedRound(msgspec.Struct, frozen=True, array_like=True):
    """A closed round that a batch contains.

    Attributes:
        closed: Its closing record.
        round: Number of the round: the offset of its opening record, or more after the rounds topic was recreated.
        offset: Offset of its closing record.
        closed_time: Append time of its closing record, ms.
        elapsed: As in `GroupObservation`, ms.
        log_records: Number of log offsets between the previous round and this one, over all partitions.
    """

    closed: RoundClosed
    round: int
    offset: int
    closed_time: int
    elapsed: int
    log_records: int

    @property
    def rests(self) -> bool:
        """Whether nothing moved since the round before."""
        return not self.log_records and not self.closed.tells_news
