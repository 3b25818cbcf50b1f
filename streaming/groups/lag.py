"""Lag per partition at a round, and its judgement.

Lag is the high watermark minus the committed offset, both as of the round: the commit is the last one below the
round's log position, the high watermark was asked after it, so the difference is never negative by order alone.

The judgement looks back on the newest rounds of a partition (the idea is Burrow's, peers.md 3; the rules are
ours) and knows the group's own rhythm: a group that commits every five minutes has not stopped after one.
"""

from __future__ import annotations

import sys
from array import array
from typing import TypeAlias

from streaming.groups.facts import LagRow
from streaming.groups.inputs import CommitWindow, Member, Tick, TopicTick
from streaming.groups.modern_inputs import ModernMember
from streaming.groups.state import PartitionState, Sample
from streaming.groups.times import day_of

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

# Rounds looked back on. Fewer, and a slow poll looks like trouble; more, and trouble is told late. Ten is what
# Burrow keeps by default, and at 10 s rounds is a minute and a half.
WINDOW = 10

# A pause counts as stopped only when it is this many times longer than the longest the group has made before.
_PAUSE_FACTOR = 3

# The group's rhythm counts as known after so many rounds with commits: a batch job may commit a few times in a row
# and then pause for as long as it likes.
_RHYTHM_ROUNDS = 5

# Offsets hold what a group cannot consume: after the last record of a transaction stands its marker, and a group
# that commits what it has read stays one behind for good (exactly-once pipelines that have nothing to do).
_MARKER = 1

# The tables hold int64; a step between two offsets of opposite signs may be longer.
_MOST = 2**63 - 1


class Measured:
    """Lag of one partition at one round; plain attributes, because there are very many.

    Attributes:
        end: High watermark; None when it was not to be had.
        stable: Last stable offset; None when it was not to be had.
        start: Log start offset; None when it was not to be had.
        lag: None with a reason.
        lag_stable: The same against the last stable offset.
        ahead_by: How far the commit lies beyond the high watermark; None when lag is None.
        reason: Why lag is None; None when it is not.
    """

    __slots__ = ("ahead_by", "end", "lag", "lag_stable", "reason", "stable", "start")

    def __init__(self, committed: int, end: int, stable: int, start: int, reason: str | None) -> None:
        self.end = end if end >= 0 else None
        self.stable = stable if stable >= 0 else None
        self.start = start if start >= 0 else None
        if reason is None and end < 0:
            reason = "end_offset_unknown"
        if reason is None and committed < 0:
            reason = "no_commit"
        self.reason: str | None = reason
        self.lag: int | None = None
        self.lag_stable: int | None = None
        self.ahead_by: int | None = None
        if reason is None:
            # Without `min` and `max`, here and below: their calls were a tenth of what a partition costs.
            self.lag = end - committed if end > committed else 0
            self.ahead_by = committed - end if committed > end else 0
            if stable >= 0:
                self.lag_stable = stable - committed if stable > committed else 0


def absorb(state: PartitionState, window: CommitWindow) -> None:
    """Take a closed window of commits into the partition's state."""
    if window.tombstones and (state.committed >= 0 or (window.commits and window.deleted)):
        # (Of a window that begins with a tombstone nobody can tell what it deleted, if anything.)
        state.offset_deleted = True
    if window.commits:
        if state.commit_time >= 0:
            pause = window.first_commit_time - state.commit_time
            state.longest_pause = max(state.longest_pause, pause)
        if window.commits > 1:
            # A window tells its ends only: the mean pause inside is the least that the longest can have been.
            inside = (window.last_commit_time - window.first_commit_time) // (window.commits - 1)
            state.longest_pause = max(state.longest_pause, inside)
        back = window.step_back
        if state.committed >= 0 and state.of_topic in {None, window.topic_id}:
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
        state.samples = []


def offsets_of(packed: bytes, count: int) -> array[int]:
    """Unpack offsets of a `TopicTick`; -1 where one is missing."""
    offsets = array("q")
    offsets.frombytes(packed[: min(count, len(packed) // 8) * 8])
    offsets.extend([-1] * (count - len(offsets)))
    if sys.byteorder == "big":
        offsets.byteswap()
    return offsets


def measure(state: PartitionState, partition: int, topic: TopicTick | None, offsets: Offsets, held: bool) -> Measured:
    """Measure one partition at a round.

    Args:
        state: The partition with all commits below the round's position, settled (`offset_events.settle`).
        partition: Its number.
        topic: The topic as the round saw it; None when it did not show it.
        offsets: The topic's offsets, unpacked.
        held: The log is held back by an open transaction: commits may exist that nobody could read.
    """
    if topic is None or topic.partitions is None:
        unseen = "topic_unseen" if topic is None else "topic_does_not_exist"
        return Measured(state.committed, -1, -1, -1, unseen)
    if not 0 <= partition < topic.partitions:
        return Measured(state.committed, -1, -1, -1, "beyond_partition_count")
    end, stable, start = offsets
    reason = "log_held_back" if held else None if state.of_topic is None else "topic_recreated"
    return Measured(state.committed, end[partition], stable[partition], start[partition], reason)


Offsets: TypeAlias = "tuple[array[int], array[int], array[int]]"
"""High watermarks, last stable offsets and log start offsets by partition."""


def sample(state: PartitionState, time: int, measured: Measured) -> None:
    """Keep one round for the judgement; rounds with an unknown lag are not kept."""
    if measured.lag is None:
        return
    if state.sampled_commits and state.active_rounds < _RHYTHM_ROUNDS:
        state.active_rounds += 1
    samples = state.samples
    samples.append(Sample(time, state.committed, measured.lag, state.sampled_commits))
    if len(samples) > WINDOW:
        del samples[0]
    state.sampled_commits = 0


def judge(state: PartitionState, time: int, measured: Measured) -> str:
    """Judge the lag of one partition by its newest rounds.

    - `rewound`: the committed offset went back within the window and is still below where it was.
    - `stopped`: behind in every round, nothing committed in the window nor for three times the longest pause
      that the group has made before, while the lag did not shrink.
    - `stalled`: behind in every round, commits go on, the offset does not move.
    - `falling_behind`: behind in every round, the offset moves, the lag never shrank and grew in more than half, and
      the group's rhythm is known: somebody who has committed twice by hand is not behind for that.
    - `ok`: everything else, and whenever there are too few rounds or commits to tell.

    Behind is by more than the marker of a transaction.
    """
    if measured.lag is None:
        return NO_COMMIT if measured.reason == "no_commit" else UNKNOWN
    if measured.ahead_by:
        return AHEAD
    # This is the most frequent judgement of all, once per partition and round: it looks no further than it must.
    committed, samples = state.committed, state.samples
    behind = 0
    for seen in samples:
        if seen.committed > committed and measured.lag:
            return REWOUND
        if seen.lag > _MARKER:
            behind += 1
    if behind < WINDOW:
        return OK
    shrank = False
    grew = 0
    before = samples[0].lag
    for seen in samples:
        if seen.lag < before:
            shrank = True
        elif seen.lag > before:
            grew += 1
        before = seen.lag
    if committed != samples[0].committed:
        known = state.active_rounds >= _RHYTHM_ROUNDS
        return FALLING_BEHIND if known and not shrank and 2 * grew > WINDOW - 1 else OK
    if any(seen.commits > 0 for seen in samples[1:]):
        return STALLED
    if shrank or state.active_rounds < _RHYTHM_ROUNDS or state.longest_pause < 0:
        return OK
    return STOPPED if time - state.commit_time > _PAUSE_FACTOR * state.longest_pause else OK


def row(
    cluster: str,
    group: str,
    topic: str,
    partition: int,
    tick: Tick,
    state: PartitionState,
    measured: Measured,
    status: str,
    *,
    subscribed: bool,
    owner: Member | ModernMember | None,
    closed: bool = False,
) -> LagRow:
    """Write one row of `lag`, and begin to count anew for the next."""
    # By place: with the names of 25 fields making a row takes twice as long.
    result = LagRow(
        cluster,
        group,
        topic,
        partition,
        tick.round,
        tick.time,
        day_of(tick.time),
        closed,
        state.committed if state.committed >= 0 else None,
        measured.end,
        measured.stable,
        measured.start,
        measured.lag,
        measured.lag_stable,
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
    state.row_time = tick.time
    return result
