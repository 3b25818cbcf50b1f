"""Lag per partition at a round, and its judgement.

Lag is what can still be read: the high watermark minus the committed offset, or minus the log start where that is
beyond it, all as of the round. The commit is the last one below the round's log position, the offsets of the log were
asked after it, so the difference is never negative by order alone.

The judgement looks back on the newest rounds of a partition that brought commits (`trend.py`; the idea is Burrow's,
peers.md 3, the rules are ours) and knows the group's own rhythm (`rhythm.py`): a group that commits every five minutes
has not stopped after one.
"""

from __future__ import annotations

import sys
from array import array
from typing import TypeAlias

from streaming.groups.context import Context
from streaming.groups.lag.rhythm import longest_wait
from streaming.groups.lag.state import PartitionState
from streaming.groups.lag.trend import MARKER, WINDOW, look, look_away
from streaming.groups.rows import LOG, LagRow
from streaming.records import CommitWindow, GroupObservation, Member, ModernMember, TopicObservation
from streaming.times import day_of

__all__ = [
    "AHEAD",
    "FALLING_BEHIND",
    "NO_COMMIT",
    "OK",
    "RANKS",
    "REWOUND",
    "STALLED",
    "STATUSES",
    "STOPPED",
    "UNKNOWN",
    "Measured",
    "absorb",
    "judge",
    "lost_below",
    "measure",
    "offsets_of",
    "row",
    "sample",
]

OK = "ok"
NO_COMMIT = "no_commit"
UNKNOWN = "unknown"
AHEAD = "ahead"
REWOUND = "rewound"
FALLING_BEHIND = "falling_behind"
STALLED = "stalled"
STOPPED = "stopped"

STATUSES = (OK, NO_COMMIT, AHEAD, UNKNOWN, REWOUND, FALLING_BEHIND, STALLED, STOPPED)
"""From harmless to bad; a group's status is its worst partition's."""

RANKS = {status: rank for rank, status in enumerate(STATUSES)}
"""Place of each status in `STATUSES`."""

# A lag has grown when it has by more than so many rounds' worth of records: what arrives between two commits makes it
# go up and down by about one.
_GROWN_ROUNDS = 2

# The tables hold int64; a step between two offsets of opposite signs may be longer.
_MOST = 2**63 - 1


class Measured:
    """Lag of one partition at one round; plain attributes, because there are very many.

    Attributes:
        end: High watermark; None when it was not to be had.
        stable: Last stable offset; None when it was not to be had.
        start: Log start offset; None when it was not to be had.
        lag: Offsets that can still be read; None with a reason.
        lag_read_committed: The same up to the last stable offset.
        lost: Offsets that were deleted before the group committed past them; None when lag is, and when that cannot
            be told yet.
        ahead_by: How far the commit lies beyond the high watermark; None when lag is None.
        reason: Why lag is None; None when it is not.
    """

    __slots__ = ("ahead_by", "end", "lag", "lag_read_committed", "lost", "reason", "stable", "start")

    def __init__(
        self, committed: int, end: int, stable: int, start: int, reason: str | None, start_before: int = -1
    ) -> None:
        self.end = end if end >= 0 else None
        self.stable = stable if stable >= 0 else None
        self.start = start if start >= 0 else None
        if reason is None and end < 0:
            reason = "high_watermark_unknown"
        if reason is None and committed < 0:
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
            # Without `min` and `max`, here and below: their calls were a tenth of what a partition costs.
            self.lag = end - first if end > first else 0
            self.ahead_by = committed - end if committed > end else 0
            if stable >= 0:
                self.lag_read_committed = stable - first if stable > first else 0


def lost_below(committed: int, start: int) -> int:
    """Offsets from a committed one up to the log start; a single one may be a transaction's marker, and is none."""
    return start - committed if start - committed > MARKER else 0


def absorb(state: PartitionState, window: CommitWindow, topic_id: str | None) -> None:
    """Take a closed window of commits into the partition's state.

    Args:
        state: Of the partition.
        window: Its commits since the boundary before.
        topic_id: Id of the topic as rounds have shown it; None when not known.
    """
    if window.tombstones and (state.committed >= 0 or (window.commits and window.deleted)):
        # (Of a window that begins with a tombstone nobody can tell what it deleted, if anything.)
        state.offset_deleted = True
    if window.commits:
        back = window.step_back
        if state.committed >= 0 and _are_of_one_topic(state, window, topic_id):
            back = max(back, state.committed - window.first_offset)
        if back > state.rewound_by:
            state.rewound_by = min(_MOST, back)
        state.committed = window.offset
        state.of_topic = window.topic_id
        state.commit_time = window.last_commit_time
        state.commits += window.commits
        state.sampled_commits += window.commits
    if window.deleted:
        state.committed = -1
        state.of_topic = None
        state.forget_rounds()


def _are_of_one_topic(state: PartitionState, window: CommitWindow, topic_id: str | None) -> bool:
    """Whether the last commit known and those of a window are of one topic, and not of another of its name."""
    if state.of_topic is not None:
        return state.of_topic == window.topic_id
    # (The last commit known is of the topic that rounds show; a late one may be of the topic before.)
    return window.topic_id is None or topic_id is None or window.topic_id == topic_id


def offsets_of(packed: bytes, count: int) -> array[int]:
    """Unpack offsets of a `TopicObservation`; -1 where one is missing."""
    offsets = array("q")
    offsets.frombytes(packed[: min(count, len(packed) // 8) * 8])
    offsets.extend([-1] * (count - len(offsets)))
    if sys.byteorder == "big":
        offsets.byteswap()
    return offsets


def measure(
    state: PartitionState, partition: int, topic: TopicObservation | None, offsets: Offsets, held: bool
) -> Measured:
    """Measure one partition at a round.

    Args:
        state: The partition with all commits below the round's position, settled (`offset_events.settle`).
        partition: Its number.
        topic: The topic as the round saw it; None when it did not show it.
        offsets: The topic's offsets, unpacked.
        held: The log is held back by an open transaction: commits may exist that nobody could read.
    """
    if topic is None or topic.partitions is None:
        unseen = "topic_not_visible" if topic is None else "topic_does_not_exist"
        return Measured(state.committed, -1, -1, -1, unseen)
    if not 0 <= partition < topic.partitions:
        return Measured(state.committed, -1, -1, -1, "beyond_partition_count")
    end, stable, start = offsets
    reason = "offsets_blocked" if held else None if state.of_topic is None else "topic_recreated"
    return Measured(state.committed, end[partition], stable[partition], start[partition], reason, state.start)


Offsets: TypeAlias = "tuple[array[int], array[int], array[int]]"
"""High watermarks, last stable offsets and log start offsets by partition."""


def sample(state: PartitionState, measured: Measured, passed: int, rounds: int) -> None:
    """Keep one round for the judgement.

    Args:
        state: Of the partition.
        measured: At this round.
        passed: Steady time since the group's round before, ms.
        rounds: How many rounds this one stands for.
    """
    if measured.start is not None:
        state.start = measured.start
    if measured.lag is None or measured.end is None:
        look_away(state.trend)
        return
    commits = state.sampled_commits > 0
    look(state.trend, state.rhythm, state.committed, measured.lag, measured.end, passed, rounds, commits=commits)
    state.sampled_commits = 0


def judge(state: PartitionState, measured: Measured) -> str:
    """Judge the lag of one partition by its newest rounds; the worst of these that hold.

    - `stopped`: lag has stood for ten rounds or more without a commit, and for longer than the group's rhythm allows.
    - `stalled`: ten rounds with commits have left the offset where it is, and lag.
    - `falling_behind`: in ten rounds with commits or more the lag never shrank, grew in most of the newest ten, and by
      more than what arrives in two.
    - `rewound`: the committed offset went back within the last ten rounds with commits and is still below where it
      was.
    - `ok`: everything else, and whenever there are too few rounds or commits to tell.

    Lag is what is more than the marker of a transaction. Without a commit nothing of this ends but by lag that goes.
    """
    lag = measured.lag
    if lag is None:
        return NO_COMMIT if measured.reason == "no_commit" else UNKNOWN
    if measured.ahead_by:
        return AHEAD
    # This is the most frequent judgement of all, once per partition and round: it looks no further than it must.
    trend = state.trend
    if lag > MARKER:
        if trend.rounds >= WINDOW:
            limit = longest_wait(state.rhythm)
            if limit is not None and trend.waited > limit:
                return STOPPED
        if trend.stood >= WINDOW - 1:
            return STALLED
        if trend.run >= WINDOW and 2 * trend.grew.bit_count() > WINDOW - 1:
            grown, arrived = trend.left - trend.run_lag, trend.end - trend.run_end
            if grown * (trend.run - 1) > _GROWN_ROUNDS * arrived:
                return FALLING_BEHIND
    return REWOUND if lag and trend.high > state.committed else OK


def row(
    context: Context,
    topic: str,
    partition: int,
    observation: GroupObservation,
    state: PartitionState,
    measured: Measured,
    status: str,
    *,
    subscribed: bool,
    owner: Member | ModernMember | None,
    ended: bool = False,
) -> LagRow:
    """Write one row of `lag`, and begin to count anew for the next."""
    # By place: with the names of 28 fields making a row takes twice as long.
    result = LagRow(
        context.config.cluster,
        context.group,
        topic,
        None,
        partition,
        LOG,
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
        measured.reason,
        state.commits,
        state.commit_time if state.commit_time >= 0 else None,
        state.rewound_by,
        state.offset_deleted,
        subscribed,
        owner.member_id if owner is not None else None,
        owner.client_id if owner is not None else None,
        owner.client_host if owner is not None else None,
    )
    state.commits = 0
    state.rewound_by = 0
    state.offset_deleted = False
    state.row_at = observation.steady
    return result
