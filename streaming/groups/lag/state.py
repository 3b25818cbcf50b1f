"""The state of the partitions that a group consumes: its rhythm, its trend, and recently deleted offsets.

**Rhythm**: how long a group usually leaves lag on a partition before it commits, from its recent pauses. A pause is the
time between two commits during which there were records to read, in elapsed time, so outages of the probe do not add to
it. It does not count if a round in between did not know the lag, or while the group works off a backlog: how often a
batch job commits while it runs says nothing about how long it then rests.

The rhythm is the **third-longest recent pause**. The longest would follow a single accident for as long as it is
remembered, and a median would follow the many short pauses within the runs of a nightly job. Two accidents (an outage
of the consumers, a weekend off) change nothing; what happens three times is the rhythm. A pause is recent until ten
times its own length, at least a day, has passed in counted pauses, or until three later pauses of about the same length
replace it. So a partition keeps three entries if it commits regularly, and a few more if it does not.

**Trend**: lag from round to round, as input for the status. Everything is counted in rounds with commits, not in all
rounds, so that no status of a partition with lag improves just because time passes. The one value in clock time,
`waited`, only grows until the next commit.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from streaming.times import DAY_MS

_ACCIDENTS = 2
"""Pauses that may be longer than the rhythm, which is the third-longest."""

# With fewer pauses, fewer of them can be accidents: below `_FEW` the rhythm is the longest, below `_ENOUGH` the
# second-longest.
_FEW = 4
_ENOUGH = 8

# With fewer pauses the rhythm is unknown: two commits by hand do not make one.
_LEAST = 3

# A wait longer than 2.4 times the rhythm is too long: two intervals, each a fifth longer than usual, with a run skipped
# in between. With a higher value, a nightly job (23 to 26 hours between runs) would be reported only after its third
# day; with a lower one, a single skipped run would raise an alarm.
_PATIENCE_PERCENT = 240

# How long a pause is remembered, in multiples of its length: more than a week for a nightly job, weekend included.
_REMEMBERED = 10
_REMEMBERED_LEAST_MS = DAY_MS

# Two pauses are about as long if one is at least this share of the other. This keeps the list short for regular pauses.
_ALIKE_PERCENT = 80

# Limit for pauses that only get shorter, so that none replaces another; the shortest is dropped.
_MOST_KEPT = 24

# A group first seen in the middle of a backlog commits without showing when it rests. It is treated like a nightly job
# rather than trusted forever.
_UNKNOWN_RHYTHM_MS = DAY_MS

COMMITTED_ROUNDS: Final = 5
"""Rounds with commits after which a group is assumed to commit regularly."""

# Integers per entry in `Rhythm.pauses`.
_WIDTH = 2

WINDOW: Final = 10
"""Number of rounds to look back on. With fewer, a slow poll looks like trouble; with more, trouble is reported late.
Ten is Burrow's default, and spans a minute and a half with rounds every 10 s."""

MARKER: Final = 1
"""Lag of this many offsets may be a transaction marker, which has an offset but cannot be consumed. It follows the last
record of a transaction, so a group that commits what it has read can stay one behind forever (an exactly-once pipeline
with nothing to do)."""

# Mask for the steps between these rounds, one bit each.
_STEPS = (1 << (WINDOW - 1)) - 1


class Rhythm(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Recent pauses of a group on one partition. Changed in place.

    Attributes:
        pauses: For each pause its length and the value of `lived` at its end, both ms; flat, oldest first.
        lived: Sum of all counted pauses, ms.
        counted: Number of counted pauses, up to `_ENOUGH`.
        rounds: Number of rounds with commits, up to `COMMITTED_ROUNDS`.
    """

    pauses: list[int] = []
    lived: int = 0
    counted: int = 0
    rounds: int = 0


def count_pause(rhythm: Rhythm, length: int) -> None:
    """Add a finished pause of a length in ms."""
    pauses = rhythm.pauses
    rhythm.lived = lived = rhythm.lived + length
    if rhythm.counted < _ENOUGH:
        rhythm.counted += 1
    pauses.append(length)
    pauses.append(lived)
    if len(pauses) <= _WIDTH * (_ACCIDENTS + 1):
        return
    # The usual, regular case: the newest four pauses are alike, and the oldest of them is dropped.
    if 100 * min(length, pauses[-4], pauses[-6]) >= _ALIKE_PERCENT * pauses[-8]:
        del pauses[-8:-6]
        if len(pauses) == _WIDTH * (_ACCIDENTS + 1) or _is_recent(pauses[0], pauses[1], lived):
            return
    rhythm.pauses = _pruned(pauses, lived)


def longest_wait(rhythm: Rhythm) -> int | None:
    """How long there may be lag without a commit before the group counts as stopped, ms; None if unknown."""
    if rhythm.counted < _LEAST:
        known = rhythm.rounds >= COMMITTED_ROUNDS
        if known:
            return _UNKNOWN_RHYTHM_MS * _PATIENCE_PERCENT // 100
        return None
    accidents = 0 if rhythm.counted < _FEW else 1 if rhythm.counted < _ENOUGH else _ACCIDENTS
    return sorted(rhythm.pauses[::_WIDTH], reverse=True)[accidents] * _PATIENCE_PERCENT // 100


def _pruned(pauses: list[int], lived: int) -> list[int]:
    """The pauses that can still be among the three longest recent ones, and always the three newest."""
    kept: list[tuple[int, int]] = []
    entries = list(zip(pauses[::_WIDTH], pauses[1::_WIDTH], strict=True))
    for length, at in reversed(entries):
        if len(kept) > _ACCIDENTS:
            if not _is_recent(length, at, lived):
                continue
            if sum(100 * later >= _ALIKE_PERCENT * length for later, _ in kept) > _ACCIDENTS:
                continue
        kept.append((length, at))
    if len(kept) > _MOST_KEPT:
        kept.remove(min(kept[_ACCIDENTS + 1 :]))
    return [number for entry in reversed(kept) for number in entry]


def _is_recent(length: int, at: int, lived: int) -> bool:
    return lived - at <= max(_REMEMBERED_LEAST_MS, _REMEMBERED * length)


class Trend(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Lag of one partition over recent rounds. Changed in place by `add_round` and `skip_round`.

    Attributes:
        lag: Lag at the newest round; -1 if that round did not know it.
        committed: Committed offset at the newest round with commits; -1 before the first.
        left: Lag at that round, which the last commit left.
        end: High watermark at that round.
        waited: Elapsed time since that round during which there were records to read, ms.
        rounds: Number of rounds in that time, up to `WINDOW`.
        whole: All rounds since then knew the lag.
        stood: Number of consecutive rounds with commits that did not move the offset and left lag.
        high: Offset from which the committed one went back; -1 if it did not, or has caught up again.
        below: Rounds with commits since it went back.
        run: Number of consecutive rounds with commits in which the lag did not shrink.
        grew: One bit for each of the newest `WINDOW` - 1 of them, the newest in the lowest bit: whether the lag grew.
        run_lag: Lag at the first of them.
        run_end: High watermark at the first of them.
    """

    lag: int = -1
    committed: int = -1
    left: int = 0
    end: int = 0
    waited: int = 0
    rounds: int = 0
    whole: bool = False
    stood: int = 0
    high: int = -1
    below: int = 0
    run: int = 0
    grew: int = 0
    run_lag: int = 0
    run_end: int = 0


def add_round(
    trend: Trend, rhythm: Rhythm, committed: int, lag: int, end: int, passed: int, rounds: int, *, commits: bool
) -> None:
    """Add a round that knows the lag.

    Args:
        trend: The partition's trend.
        rhythm: The partition's rhythm.
        committed: Committed offset.
        lag: Records that can still be read.
        end: High watermark.
        passed: Elapsed time since the previous round, ms.
        rounds: How many rounds this one stands for; more than one if the group was idle.
        commits: The group has committed since the previous round that knew the lag.
    """
    # A lag of one that the last commit already left may be a marker that is never read.
    if trend.lag > MARKER or (trend.lag == MARKER and trend.left != MARKER):
        trend.waited += passed
        if trend.rounds < WINDOW:
            trend.rounds += rounds
    trend.lag = lag
    if not commits:
        return
    moved = committed != trend.committed
    left = trend.left
    if rhythm.rounds < COMMITTED_ROUNDS:
        rhythm.rounds += 1
    # In an idle group, commits that repeat the offset end no pause: they may be from any time since the last round.
    if trend.whole and (moved or (trend.waited and rounds == 1)):
        # If more was left than has arrived since, and lag shrinks, the group is working off a backlog.
        arrived = end - trend.end
        pause = trend.waited or passed  # records read at once waited for less than a round
        if pause and (lag >= left or left <= MARKER or left <= arrived):
            count_pause(rhythm, pause)
    if committed < trend.committed:
        trend.high = max(trend.high, trend.committed)
        trend.below = 0
    elif trend.high >= 0:
        trend.below += 1
        if committed >= trend.high or trend.below >= WINDOW:
            trend.high = -1
    trend.stood = trend.stood + 1 if not moved and lag > MARKER else 0
    if trend.run and lag >= left and lag > MARKER:
        trend.run += 1
        trend.grew = (trend.grew << 1 | (lag > left)) & _STEPS
    else:
        trend.run, trend.grew, trend.run_lag, trend.run_end = 1 if lag > MARKER else 0, 0, lag, end
    trend.committed, trend.left, trend.end = committed, lag, end
    trend.waited, trend.rounds, trend.whole = 0, 0, True


def skip_round(trend: Trend) -> None:
    """Add a round that does not know the lag; the time up to the next round does not count."""
    trend.lag = -1
    trend.whole = False


class RoundTimes(NamedTuple):
    """Opening and closing time of a round, ms; -1 where it is not certain."""

    opened: int
    closed: int


class ShareProgress(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """What a share group has done behind the start offset of a partition (`share/deliveries.py`).

    Attributes:
        done: Records behind the start offset that are done, as far as they count for the position.
        done_told: Their number, as the newest round told it; -1 where it did not.
        lag: Lag as the broker told it; -1 where `done` tells it.
        first: First offset that is not done; -1 when unknown.
        front: The same, or the start offset where it is unknown.
        archived: Records from the start offset on that will not be delivered again; -1 when unknown.
        released: Those that came back after a delivery; -1 when unknown.
        deliveries: How often the one that came back most often has been delivered; -1 when unknown.
        counted_since: Names the beginning of what `archivals` counts; -1 before the first.
        archivals: Records archived since then, by the number of their deliveries.
        given_up: Records archived since the last row of `lag`, with as many deliveries as the group allows.
        rejected: The others archived since then.
        given_up_in_round: Those given up since a finding has counted them.
        given_up_shown: How many the finding shows.
        given_up_at: Elapsed time at the newest round that found some, ms.
        stands_since: Elapsed time at the first round that saw `front` where it is, with members; -1 before the first.
        row: The values of the last row that cause a new row when they change.
    """

    done: int = 0
    done_told: int = -1
    lag: int = -1
    first: int = -1
    front: int = -1
    archived: int = -1
    released: int = -1
    deliveries: int = -1
    counted_since: int = -1
    archivals: tuple[tuple[int, int], ...] = ()
    given_up: int = 0
    rejected: int = 0
    given_up_in_round: int = 0
    given_up_shown: int = 0
    given_up_at: int = -1
    stands_since: int = -1
    row: tuple[int, ...] = ()

    def forget_reported(self) -> None:
        """Forget what the newest round that saw the broker's figures has of them: this one has none."""
        self.done_told = self.lag = -1

    def is_news(self) -> bool:
        """Whether a row has to tell something of it."""
        says = self.done_told, self.lag, self.archived, self.released, self.deliveries
        if says == self.row and not self.given_up and not self.rejected:
            return False
        self.row = says
        return True


class PartitionState(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """One partition as the group consumes it.

    Attributes:
        committed: Last committed offset; -1 if there is none.
        commit_time: Record time of the last commit, ms; -1 if there is none.
        commits: Commits since the last row of `lag`.
        sampled_commits: Commits since the last round that knew the lag.
        rewound_by: Largest step back since the last row, in offsets.
        offset_deleted: The committed offset was deleted since the last row.
        rhythm: Its recent pauses.
        trend: Its lag over the newest rounds.
        start: Log start offset at the newest round that knew it; -1 before the first.
        row: The values of the last row that cause a new row when they change; None before the first row.
        row_at: Elapsed time at the last row, ms.
        of_topic: Topic id of the last commit, or "" if it has none and the topic was created again since; None if the
            commit is for the topic that the newest round showed (`totals.py`).
        marks: High watermarks of rounds with their times (`oldest_unread.py`); empty while the partition is not behind.
        fresh: Number of marks added since they were thinned out.
        unreadable: The newest commit cannot be decoded: `committed` is of an earlier one.
        share: What a share group has done behind `committed`, its start offset; None for any other group.
    """

    committed: int = -1
    commit_time: int = -1
    commits: int = 0
    sampled_commits: int = 0
    rewound_by: int = 0
    offset_deleted: bool = False
    rhythm: Rhythm = msgspec.field(default_factory=Rhythm)
    trend: Trend = msgspec.field(default_factory=Trend)
    start: int = -1
    row: tuple[int, int | None, int | None, int | None, int | None, str | None, str, str | None, bool] | None = None
    row_at: int = -1
    of_topic: str | None = None
    marks: list[int] = []
    fresh: int = 0
    unreadable: bool = False
    share: ShareProgress | None = None

    @property
    def position(self) -> int:
        """The committed offset, or the start offset of a share group and what is done behind it."""
        if self.share is None:
            return self.committed
        return self.committed + self.share.done

    def forget_rounds(self) -> None:
        """Drop the trend, because earlier rounds showed another topic, or because records are missing."""
        self.trend = Trend()
        self.start = -1

    def is_void(self) -> bool:
        """Whether the state holds nothing that a row or a judgement could still need."""
        events = self.commits or self.offset_deleted or self.unreadable
        return self.committed < 0 and not events and self.row is None


class DeletedOffsets(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Committed offsets that were deleted, while a finding still reports them.

    Attributes:
        topics: Number of partitions by topic, at the newest round with a deletion.
        time: Time of that round, ms.
    """

    topics: dict[str, int]
    time: int
