"""Lag of one partition at a round, and its status.

Lag is the number of records that can still be read: the high watermark minus the committed offset, or minus the log
start offset if that is higher, all as of the round. The commit is the last one below the round's log position, and the
high watermark was fetched after it, so their order alone never makes lag negative.

The status looks at the partition's newest rounds with commits (`Trend`; the idea is that of Burrow's evaluator, the
rules are our own) and at the group's rhythm (`Rhythm`): a group that commits every five minutes has not stopped
after one.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

from streaming.groups.context import Context
from streaming.groups.lag.oldest_unread import Unread
from streaming.groups.lag.state import (
    MARKER,
    WINDOW,
    PartitionState,
    ShareProgress,
    add_round,
    longest_wait,
    skip_round,
)
from streaming.groups.rows import MOST, LagRow, split
from streaming.records import LOG, CommitWindow, GroupObservation, Member, ModernMember, TopicObservation
from streaming.times import day_of

LagStatus = Literal["ok", "no_commit", "ahead", "unknown", "rewound", "falling_behind", "stalled", "stopped"]
"""From harmless to bad; a group's status is that of its worst partition."""

STATUSES: Final[tuple[LagStatus, ...]] = get_args(LagStatus)

OFFSETS_BLOCKED = "offsets_blocked"
"""Why lag is unknown while an open transaction blocks the offsets log."""

COMMIT_UNREADABLE = "commit_unreadable"
"""Why lag is unknown after a commit that cannot be decoded."""

_NEWER_COMMITS = (OFFSETS_BLOCKED, COMMIT_UNREADABLE)
"""Reasons that mean that the group may have committed since."""

RANKS = {status: rank for rank, status in enumerate(STATUSES)}
"""Index of each status in `STATUSES`."""

# Lag counts as growing only beyond this many rounds' worth of records: the records that arrive between two commits
# alone move it up and down by about one round's worth.
_GROWN_ROUNDS = 2


class Measured:
    """Lag of one partition at one round. A plain class for speed: there are very many of them.

    Attributes:
        end: High watermark; None when unknown.
        stable: Last stable offset; None when unknown.
        start: Log start offset; None when unknown.
        lag: Offsets that can still be read; None if `reason` is set.
        lag_read_committed: The same up to the last stable offset; None if lag or that offset is unknown.
        lost: Offsets deleted before the group committed past them; None if lag is None, or while it is not yet
            certain.
        ahead_by: How far the commit lies beyond the high watermark, in offsets; None if lag is None.
        reason: Why lag is None; None if it is known.
    """

    __slots__ = ("ahead_by", "end", "lag", "lag_read_committed", "lost", "reason", "stable", "start")

    def __init__(
        self,
        committed: int,
        end: int,
        stable: int,
        start: int,
        reason: str | None,
        start_before: int = -1,
        *,
        empty_counts: bool = False,
    ) -> None:
        self.end = end if end >= 0 else None
        self.stable = stable if stable >= 0 else None
        self.start = start if start >= 0 else None
        if reason is None and end < 0:
            reason = "high_watermark_unknown"
        if reason is None and committed < 0:
            if empty_counts and 0 <= end == start:
                committed = start  # wherever the group begins, nothing can be read
            else:
                reason = "no_commit"
        self.reason: str | None = reason
        self.lag: int | None = None
        self.lag_read_committed: int | None = None
        self.lost: int | None = None
        self.ahead_by: int | None = None
        if reason is None:
            first = committed
            if start > committed:
                first = start
                self.lost = lost_below(committed, start_before) if start_before >= 0 else None
            elif start >= 0:
                self.lost = 0
            # No `min` and `max` here and below: their calls took a tenth of a partition's time.
            self.lag = end - first if end > first else 0
            self.ahead_by = committed - end if committed > end else 0
            if stable >= end:
                # It is asked for after the high watermark, and may be of some records more.
                self.lag_read_committed = self.lag
            elif stable >= 0:
                self.lag_read_committed = stable - first if stable > first else 0


def lost_below(committed: int, start: int) -> int:
    """Offsets from a committed one up to the log start; 0 for a single one, which may be a transaction marker."""
    if start - committed > MARKER:
        return start - committed
    return 0


def absorb(state: PartitionState, window: CommitWindow, topic_id: str | None) -> None:
    """Apply a window of commits to the partition's state.

    Args:
        state: The partition's state.
        window: Its commits since the last boundary.
        topic_id: Id of the topic as rounds have shown it; None when unknown.
    """
    if window.tombstones and (state.committed >= 0 or (window.commits and window.deleted)):
        # Without a known commit before it, a tombstone at the start of a window may have deleted nothing.
        state.offset_deleted = True
    if window.commits:
        state.share = None  # a share group commits nothing: another group has its name now
        back = window.step_back
        if state.committed >= 0 and _are_of_one_topic(state, window, topic_id):
            back = max(back, state.committed - window.first_offset)
        if back > state.rewound_by:
            state.rewound_by = min(MOST, back)
        state.committed = window.offset
        state.of_topic = window.topic_id
        state.commit_time = window.last_commit_time
        state.commits += window.commits
        state.sampled_commits += window.commits
    state.unreadable = window.unreadable
    if window.deleted:
        state.committed = -1
        state.of_topic = None
        state.forget_rounds()


def _are_of_one_topic(state: PartitionState, window: CommitWindow, topic_id: str | None) -> bool:
    """Whether the last known commit and those of a window are for the same topic, not another one of its name."""
    if state.of_topic is not None:
        return state.of_topic == window.topic_id
    # The last known commit is for the topic that rounds show; a late one may be for its predecessor.
    return window.topic_id is None or topic_id is None or window.topic_id == topic_id


def offsets_of(packed: bytes, count: int) -> Sequence[int]:
    """Unpack offsets of a `TopicObservation`; -1 where one is missing."""
    if len(packed) == count * 8:
        return memoryview(packed).cast("q")
    offsets = array("q")
    offsets.frombytes(packed[: min(count, len(packed) // 8) * 8])
    offsets.extend([-1] * (count - len(offsets)))
    return offsets


def measure(
    state: PartitionState,
    partition: int,
    topic: TopicObservation | None,
    offsets: Offsets,
    held: bool,
    *,
    empty_counts: bool = False,
) -> Measured:
    """Measure one partition at a round.

    Args:
        state: The partition with all commits below the round's position; it has `of_topic` only where its commit is of
            another topic.
        partition: Its number.
        topic: The topic in the round; None if the round did not show it.
        offsets: The topic's offsets, unpacked.
        held: An open transaction blocks the offsets log: there may be commits that cannot be read yet.
        empty_counts: Lag of a partition that holds no record is 0, also without a commit.
    """
    if topic is None or topic.partitions is None:
        unseen = "topic_not_visible" if topic is None else "topic_does_not_exist"
        return Measured(state.committed, -1, -1, -1, unseen)
    if not 0 <= partition < topic.partitions:
        return Measured(state.committed, -1, -1, -1, "beyond_partition_count")
    end, stable, start = offsets
    reason = None
    if held:
        reason = OFFSETS_BLOCKED
    elif state.unreadable:
        reason = COMMIT_UNREADABLE
    elif state.of_topic is not None:
        reason = "topic_recreated"
    return Measured(
        state.committed,
        end[partition],
        stable[partition],
        start[partition],
        reason,
        state.start,
        empty_counts=empty_counts,
    )


Offsets: TypeAlias = "tuple[Sequence[int], Sequence[int], Sequence[int]]"
"""High watermarks, last stable offsets and log start offsets by partition."""


def sample(state: PartitionState, measured: Measured, passed: int, rounds: int) -> None:
    """Record one round for later judgement.

    Args:
        state: The partition's state.
        measured: Its lag at this round.
        passed: Elapsed time since the group's previous round, ms.
        rounds: How many rounds this one stands for.
    """
    # While commits cannot be read, a group may have committed past what it then lets be deleted: what counts as lost
    # stays as it was.
    if measured.start is not None and measured.reason not in _NEWER_COMMITS:
        state.start = measured.start
    if measured.lag is None or measured.end is None or state.committed < 0:
        skip_round(state.trend)
        return
    commits = state.sampled_commits > 0
    add_round(state.trend, state.rhythm, state.position, measured.lag, measured.end, passed, rounds, commits=commits)
    state.sampled_commits = 0


def lag_status(state: PartitionState, measured: Measured) -> LagStatus:
    """The lag status of one partition by its newest rounds: the worst of these that applies.

    - `stopped`: there has been lag without a commit for at least ten rounds and longer than the group's rhythm allows.
    - `stalled`: in ten rounds with commits the offset has not moved, and there is lag.
    - `falling_behind`: in at least ten rounds with commits the lag never shrank, grew in most of the newest ten, and
      grew by more than what arrives in two.
    - `rewound`: the committed offset went back within the last ten rounds with commits and is still below where it was.
    - `ok`: everything else, including too few rounds or commits to judge.

    Lag here means more than one offset, which could be a transaction marker. Without a commit, a status lasts until the
    lag is gone.
    """
    lag = measured.lag
    if lag is None:
        if measured.reason == "no_commit":
            return "no_commit"
        return "unknown"
    if measured.ahead_by:
        return "ahead"
    # Called once per partition and round, so it does no more work than needed.
    trend = state.trend
    if lag > MARKER:
        if trend.rounds >= WINDOW:
            limit = longest_wait(state.rhythm)
            if limit is not None and trend.waited > limit:
                return "stopped"
        if trend.stood >= WINDOW - 1:
            return "stalled"
        if trend.run >= WINDOW and 2 * trend.grew.bit_count() > WINDOW - 1:
            grown, arrived = trend.left - trend.run_lag, trend.end - trend.run_end
            if grown * (trend.run - 1) > _GROWN_ROUNDS * arrived:
                return "falling_behind"
    if lag and trend.high >= 0 and trend.high > state.position:
        return "rewound"
    return "ok"


_Deliveries = tuple[int | None, int | None, int | None, int | None, int | None, int | None]

_NO_DELIVERIES: Final[_Deliveries] = (None, None, None, None, None, None)


def _deliveries(share: ShareProgress) -> _Deliveries:
    """The columns that only share groups have; resets what is counted for the next row."""
    counts = share.counted_since >= 0
    told = share.done_told, share.archived, share.released, share.deliveries
    counted = (share.given_up, share.rejected) if counts else (None, None)
    share.given_up = share.rejected = 0
    return *[value if value >= 0 else None for value in told], *counted


def row(
    context: Context,
    topic: str,
    partition: int,
    observation: GroupObservation,
    state: PartitionState,
    measured: Measured,
    status: LagStatus,
    unread: Unread,
    *,
    subscribed: bool,
    owner: Member | ModernMember | None,
    reason: str | None,
    rates: tuple[float | None, float | None] = (None, None),
    ended: bool = False,
    subtopology: str | None = None,
) -> LagRow:
    """One row of `lag`; resets the counters of the partition's state for the next row."""
    # Positional arguments: with 35 keywords, building a row takes twice as long.
    name, broker = split(topic)
    result = LagRow(
        context.config.cluster,
        context.group,
        name,
        broker,
        partition,
        context.source,
        observation.round,
        observation.time,
        day_of(observation.time),
        ended,
        state.committed if state.committed >= 0 else None,
        measured.end,
        measured.stable,
        measured.start,
        measured.lag,
        measured.lag_read_committed,
        measured.lost,
        measured.ahead_by,
        status,
        reason,
        state.commits if context.source == LOG else None,
        state.commit_time if state.commit_time >= 0 else None,
        state.rewound_by,
        state.offset_deleted,
        subscribed,
        owner.member_id if owner is not None else None,
        owner.client_id if owner is not None else None,
        owner.client_host if owner is not None else None,
        unread.time_min,
        unread.time_max,
        unread.method,
        unread.reason,
        rates[0],
        rates[1],
        *(_NO_DELIVERIES if state.share is None else _deliveries(state.share)),
        subtopology,
    )
    state.commits = 0
    state.rewound_by = 0
    state.offset_deleted = False
    return result
