"""Rows of `lag` at one round, and their sums over the group."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from streaming.groups.classic.membership import owning_members, subscribed_topics
from streaming.groups.context import Context
from streaming.groups.lag import offset_events
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.state import PartitionState
from streaming.groups.modern.decisions import modern_owners, modern_topics
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, Member, ModernMember, TopicObservation

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
        if measured.lag_read_committed is not None:
            self.stable = (self.stable or 0) + measured.lag_read_committed

    def lose(self, topic: str, partition: int, lost: int) -> None:
        """Add a partition's lost offsets, as of the previous round's log start offset; 0 adds nothing."""
        if lost:
            self.lost.setdefault(topic, {})[partition] = lost


def lag_rows(state: GroupState, observation: GroupObservation, context: Context, passed: int, rounds: int) -> Totals:
    """Judge the lag of every partition at a round, and write rows for the partitions that have changed.

    Args:
        state: The group's state, including this round's topics.
        observation: The round.
        context: Rows are written here.
        passed: Elapsed time since the group's previous round, ms.
        rounds: How many rounds this one stands for.

    Returns:
        The sums over the partitions of subscribed topics.
    """
    return _Round(state, observation, context, passed, rounds).measure()


class _Round:
    """One round of one group, while its partitions are judged."""

    __slots__ = (
        "_context",
        "_held",
        "_observation",
        "_old",
        "_owners",
        "_passed",
        "_rounds",
        "_state",
        "_subscribed",
        "_totals",
    )

    def __init__(
        self, state: GroupState, observation: GroupObservation, context: Context, passed: int, rounds: int
    ) -> None:
        self._state, self._observation, self._context = state, observation, context
        self._passed, self._rounds = passed, rounds
        record = state.live_record()
        self._subscribed = subscribed_topics(record) if record is not None else modern_topics(state)
        self._owners: Mapping[str, Mapping[int, Member | ModernMember]] = (
            owning_members(record) if record is not None else modern_owners(state)
        )
        self._held = observation.held_since is not None
        # Rows older than this are repeated; for an idle group, whose rounds are a heartbeat apart, all are.
        self._old = _MOST if observation.idle else observation.elapsed_time - context.config.heartbeat_ms
        self._totals = Totals()

    def measure(self) -> Totals:
        """Judge all topics."""
        shown = {t.topic: t for t in self._observation.topics}
        for topic in sorted({*self._state.partitions, *shown}):
            self._topic(topic, shown.get(topic))
        return self._totals

    def _topic(self, topic: str, seen: TopicObservation | None) -> None:
        state, subscribed = self._state, self._subscribed
        partitions = state.partitions.setdefault(topic, {})
        ours = subscribed is None or topic in subscribed
        exist = seen.partitions or 0 if seen is not None else 0
        if subscribed is not None and ours:
            for partition in range(exist):
                if partition not in partitions:
                    partitions[partition] = PartitionState()
        owners = self._owners.get(topic, {})
        offsets = _unpack(seen)
        counted = False
        for partition in sorted(partitions):
            known = partitions[partition]
            owner = owners.get(partition)
            if (
                known.committed < 0
                and owner is None
                and not (ours and subscribed is not None and 0 <= partition < exist)
            ):
                # No commit, owner or subscription any more: write the closing row and drop the state.
                if not known.is_void():
                    end_partition(state, known, self._observation, self._context, topic, partition, subscribed=ours)
                del partitions[partition]
                continue
            if known.of_topic is not None:
                offset_events.settle(known, seen)
            measured = lag.measure(known, partition, seen, offsets, self._held)
            if (
                ours
                and -1 < known.committed < known.start
                and known.of_topic is None
                and (seen is None or partition < exist)
            ):
                self._totals.lose(topic, partition, lag.lost_below(known.committed, known.start))
            lag.sample(known, measured, self._passed, self._rounds)
            status = lag.judge(known, measured)
            if ours:
                self._totals.add(measured, status)
                counted = True
            self._write(topic, partition, known, measured, status, owner, ours)
        self._totals.topics += counted
        if not partitions:
            del state.partitions[topic]

    def _write(
        self,
        topic: str,
        partition: int,
        known: PartitionState,
        measured: lag.Measured,
        status: str,
        owner: Member | ModernMember | None,
        subscribed: bool,
    ) -> None:
        """Write the partition's row if it has changed, or if the last one is a heartbeat old."""
        self._state.commits += known.commits
        says = (
            known.committed if known.committed >= 0 else -1,
            measured.end,
            measured.stable,
            measured.start,
            measured.lost,
            owner.member_id if owner is not None else None,
            status,
            measured.reason,
            subscribed,
        )
        if known.row != says or known.commits or known.offset_deleted or known.row_at <= self._old:
            row = lag.row(
                self._context,
                topic,
                partition,
                self._observation,
                known,
                measured,
                status,
                subscribed=subscribed,
                owner=owner,
            )
            self._context.rows.lag.append(row)
            known.row = says


def end_partition(
    state: GroupState,
    known: PartitionState,
    observation: GroupObservation,
    context: Context,
    topic: str,
    partition: int,
    *,
    subscribed: bool,
) -> None:
    """Write the closing row of a partition."""
    state.commits += known.commits
    measured = lag.Measured(known.committed, -1, -1, -1, "ended")
    row = lag.row(
        context,
        topic,
        partition,
        observation,
        known,
        measured,
        lag.UNKNOWN,
        subscribed=subscribed,
        owner=None,
        ended=True,
    )
    context.rows.lag.append(row)


def _unpack(seen: TopicObservation | None) -> lag.Offsets:
    if seen is None or seen.partitions is None:
        return _EMPTY
    count = seen.partitions
    return (
        lag.offsets_of(seen.high_watermarks, count),
        lag.offsets_of(seen.last_stable_offsets, count),
        lag.offsets_of(seen.log_start_offsets, count),
    )
