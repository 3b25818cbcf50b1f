"""Rows of `lag` of one round, and their sums over the group."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from streaming.groups.classic.membership import owning_members, subscribed_topics
from streaming.groups.config import GroupConfig
from streaming.groups.lag import offset_events
from streaming.groups.lag import partitions as lag
from streaming.groups.modern.decisions import modern_owners, modern_topics
from streaming.groups.rows import Rows
from streaming.groups.state import GroupState, PartitionState
from streaming.records import Member, MembershipRecord, ModernMember, Tick, TopicTick

__all__ = ["Totals", "close_partition", "lag_rows", "live_record"]

# The tables hold int64.
_MOST = 2**63 - 1

_EMPTY: lag.Offsets = (array("q"), array("q"), array("q"))


class Totals:
    """Sums over the partitions of subscribed topics."""

    __slots__ = ("largest", "lost", "partitions", "stable", "status", "topics", "total", "unknown")

    def __init__(self) -> None:
        self.total: int | None = None
        self.stable: int | None = None
        self.largest: int | None = None
        self.unknown = 0
        self.partitions = 0
        self.topics = 0
        self.status = 0
        self.lost: dict[str, dict[int, int]] = {}

    def add(self, measured: lag.Measured, status: str) -> None:
        """Add one partition."""
        self.partitions += 1
        rank = lag.RANKS[status]
        self.status = max(self.status, rank)
        if measured.lag is None:
            self.unknown += 1
            return
        self.total = (self.total or 0) + measured.lag
        if self.largest is None or measured.lag > self.largest:
            self.largest = measured.lag
        if measured.lag_stable is not None:
            self.stable = (self.stable or 0) + measured.lag_stable

    def lose(self, topic: str, partition: int, lost: int) -> None:
        """Add what of a partition is gone, as the round before already showed it."""
        if lost:
            self.lost.setdefault(topic, {})[partition] = lost


def lag_rows(
    state: GroupState, tick: Tick, group: str, config: GroupConfig, rows: Rows, passed: int, rounds: int
) -> Totals:
    """Judge the lag of every partition at a round, and write the rows of those of which something changed.

    Args:
        state: The group's state, with the topics of this round taken in.
        tick: The round.
        group: Group id.
        config: Settings.
        rows: Rows are appended here.
        passed: Steady time since the group's round before, ms.
        rounds: How many rounds this one stands for.

    Returns:
        The sums over the partitions of subscribed topics.
    """
    record = live_record(state)
    subscribed = subscribed_topics(record) if record is not None else modern_topics(state)
    owners: Mapping[str, Mapping[int, Member | ModernMember]] = (
        owning_members(record) if record is not None else modern_owners(state)
    )
    shown = {t.topic: t for t in tick.topics}
    held = tick.held_since is not None
    # Rows older than this are due again; all are where the rounds themselves come a heartbeat apart.
    old = _MOST if tick.idle else tick.steady - config.heartbeat_ms
    totals = Totals()
    for topic in sorted({*state.partitions, *shown}):
        seen = shown.get(topic)
        partitions = state.partitions.get(topic)
        ours = subscribed is None or topic in subscribed
        if partitions is None:
            partitions = state.partitions[topic] = {}
        of_owner = owners.get(topic, {})
        if seen is not None and seen.partitions is not None and subscribed is not None and ours:
            for partition in range(seen.partitions):
                if partition not in partitions:
                    partitions[partition] = PartitionState()
        offsets = _unpack(seen)
        counted = False
        for partition in sorted(partitions):
            known = partitions[partition]
            owner = of_owner.get(partition)
            if (
                known.committed < 0
                and owner is None
                and not (ours and subscribed is not None and _exists(seen, partition))
            ):
                # Neither a commit nor a subscription speaks of it any more: the row is closed, the state forgotten.
                if not known.is_void():
                    close_partition(state, known, tick, group, topic, partition, config, rows, subscribed=ours)
                del partitions[partition]
                continue
            if known.of_topic is not None:
                offset_events.settle(known, seen)
            measured = lag.measure(known, partition, seen, offsets, held)
            if (
                ours
                and -1 < known.committed < known.start
                and known.of_topic is None
                and (seen is None or _exists(seen, partition))
            ):
                totals.lose(topic, partition, lag.lost_below(known.committed, known.start))
            lag.sample(known, measured, passed, rounds)
            status = lag.judge(known, measured)
            if ours:
                totals.add(measured, status)
                counted = True
            state.commits += known.commits
            says = (
                known.committed if known.committed >= 0 else -1,
                measured.end,
                measured.stable,
                measured.start,
                measured.lost,
                owner.member_id if owner is not None else None,
                status,
                measured.reason,
                ours,
            )
            due = known.row_at <= old
            if known.row != says or known.commits or known.offset_deleted or due:
                rows.lag.append(
                    lag.row(
                        config.cluster,
                        group,
                        topic,
                        partition,
                        tick,
                        known,
                        measured,
                        status,
                        subscribed=ours,
                        owner=owner,
                    )
                )
                known.row = says
        totals.topics += counted
        if not partitions:
            del state.partitions[topic]
    return totals


def close_partition(
    state: GroupState,
    known: PartitionState,
    tick: Tick,
    group: str,
    topic: str,
    partition: int,
    config: GroupConfig,
    rows: Rows,
    *,
    subscribed: bool,
) -> None:
    """Write the last row of a partition."""
    state.commits += known.commits
    measured = lag.Measured(known.committed, -1, -1, -1, "closed")
    rows.lag.append(
        lag.row(
            config.cluster,
            group,
            topic,
            partition,
            tick,
            known,
            measured,
            lag.UNKNOWN,
            subscribed=subscribed,
            owner=None,
            closed=True,
        )
    )


def _exists(seen: TopicTick | None, partition: int) -> bool:
    return seen is not None and seen.partitions is not None and partition < seen.partitions


def _unpack(seen: TopicTick | None) -> lag.Offsets:
    if seen is None or seen.partitions is None:
        return _EMPTY
    count = seen.partitions
    return (
        lag.offsets_of(seen.end_offsets, count),
        lag.offsets_of(seen.stable_offsets, count),
        lag.offsets_of(seen.start_offsets, count),
    )


def live_record(state: GroupState) -> MembershipRecord | None:
    """The newest membership record, as long as its membership has not ended."""
    if state.current is None or state.tombstoned is not None or state.modern is not None:
        return None
    return state.current.record
