"""When the oldest unread record of a partition became readable, as bounds that the rounds give.

A round knows each partition's high watermark between its opening and its closing record, because it asks in between. So
a record was readable by the time at which a round closed that saw a high watermark above its offset, and was not
readable before the opening of a round that saw one at or below it. The oldest unread record is the one at the committed
offset, or at the log start where that is higher.

The state keeps **marks**: a high watermark, the opening time of the last round that saw it, the closing time of the
first one. While a partition is behind, it keeps the newest mark at or below the oldest unread record and all above it;
once it has caught up, none. The mark of the newest round is not among them: it is in the row and the group's times.
Marks are thinned out: what lies between two others may go once these are closer together than a tenth of the age of
what is between them. So the bounds of a backlog that is read later are at most that wide, and a partition that is
behind for a day keeps about a hundred.

Marks are three integers each in a flat list, oldest first: [high watermark, opened, closed, ...]; an unknown time is
-1. The times are the rounds' (`RoundClock`). A round whose time has jumped, or that does not tell when it closed, makes
no mark: one round cannot show whether its clock is wrong.

A record that was there before the first known round has no lower bound by rounds. For these the probe asks brokers by
timestamp (`UnreadTimestamp`). Their answer bounds the largest timestamp up to the record, and so its own from above;
from below only if the record is the one that has it, or if timestamps only grow, as those of brokers do
(LogAppendTime). It is kept as two marks, as if the high watermark had been at the record and right behind it at these
times; the closing time of the first is a number that says so. They hold for this record alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from streaming.groups.lag.state import PartitionState, RoundTimes
from streaming.groups.rows import MOST
from streaming.records import GroupObservation, UnreadTimestamp
from streaming.times import RoundClock

ROUNDS: Final = "rounds"
"""Method of bounds that come from the high watermarks of rounds."""

APPEND_TIME: Final = "append_time"
"""Method of bounds that come from timestamps which brokers gave (LogAppendTime)."""

TIMESTAMPS: Final = "timestamps"
"""Method of bounds that come from timestamps which producers gave (CreateTime), or nobody knows who."""

NOTHING_UNREAD: Final = "nothing_unread"
ONE_OFFSET: Final = "one_offset"
LAG_UNKNOWN: Final = "lag_unknown"
BEFORE_ROUNDS: Final = "before_rounds"
UNCERTAIN_TIME: Final = "uncertain_time"

# The mark of a partition that no earlier round has seen: its log began at 0, nobody knows when.
_UNSEEN: Final = (0, -1, -1)

# The mark of a partition whose earlier rounds, and its row, are of another topic: beyond any high watermark, so that
# the next round cuts it back.
_ANOTHER_TOPIC: Final = (MOST, -1, -1)

# Marks appended before the next thinning: it takes some 10 us at a hundred marks, so it is not done in every round.
_FRESH: Final = 16

# Marks closer together than this share of their age may be joined. More than a tenth would break what the docs promise,
# and a twentieth would keep twice as many marks.
_SHARE_PERCENT: Final = 10

# Marks of one partition, at the most. A tenth of the age needs 115 for a backlog of a day in rounds of 10 s, and 165
# for one of a month; beyond this number a larger share is allowed.
_MOST_MARKS: Final = 192
_ANY_PERCENT: Final = 10_000

_WIDTH: Final = 3

# The closing time of a first mark that brokers have told, and the method that it stands for.
_TOLD: Final = {-2: APPEND_TIME, -3: TIMESTAMPS}

AGAIN: Final = -MOST
"""`PartitionState.row_at` that makes the round write a row again, whatever it shows."""


class Unread(NamedTuple):
    """The oldest unread record of a partition, as columns of `lag`.

    Attributes:
        time_min: It was not readable before, ms; None if unknown.
        time_max: It was readable by then, ms; None if unknown.
        method: Where the bounds come from; None if there are none.
        reason: Why a bound is None; None if both are known.
    """

    time_min: int | None
    time_max: int | None
    method: str | None
    reason: str | None


NOTHING: Final = Unread(None, None, None, NOTHING_UNREAD)
PERHAPS_A_MARKER: Final = Unread(None, None, None, ONE_OFFSET)
UNKNOWN: Final = Unread(None, None, None, LAG_UNKNOWN)


def times_of(observation: GroupObservation, clock: RoundClock) -> RoundTimes:
    """The times of a round by the group's clock, which has taken it in; unknown if they cannot be trusted."""
    if clock.other is not None or observation.closed < 0:
        return RoundTimes(-1, -1)
    # The closing record may have been appended by another broker, whose clock is behind.
    return RoundTimes(clock.now, clock.now + max(0, observation.closed - observation.time))


def rested_until(observation: GroupObservation, now: RoundTimes, before: RoundTimes) -> int:
    """Opening time of the last round that skipped an idle group because nothing had changed, ms; -1 if there is none.

    Until then the high watermarks were those of the group's round before, if that was one of the rounds that looked
    alike.

    Args:
        observation: A round of the group.
        now: Its times.
        before: Times of the newest round before it that were certain.
    """
    since, until = observation.rested_since, observation.rested_until
    # Without a rest both are -1, as is the time of a round that is not certain.
    if since <= before.opened <= until <= now.opened:
        return until
    return -1


def see(
    state: PartitionState,
    high_watermark: int,
    first_unread: int,
    now: RoundTimes,
    before: RoundTimes,
    rested: int,
    told: UnreadTimestamp | None = None,
    *,
    append_time: bool = False,
) -> Unread:
    """Add a round to the marks of a partition that is behind, drop those no longer needed, and give the bounds.

    The mark of this round itself is not kept yet: the next round finds it in the row and the group's times.

    Args:
        state: The partition, with the row of the round before.
        high_watermark: High watermark at this round.
        first_unread: Offset of the oldest unread record, below the high watermark.
        now: Times of the round.
        before: Times of the group's newest round before it that were certain.
        rested: As `rested_until` gives it.
        told: What the round tells of the oldest unread record's timestamp, if anything.
        append_time: Timestamps are the brokers', as far as the topic's settings are known.
    """
    marks = marks_before(state, before, rested)
    if marks[2] in _TOLD and (marks[0] != first_unread or high_watermark < marks[-3]):
        marks = marks[2 * _WIDTH :] or [*_UNSEEN]
    if high_watermark < marks[-3]:
        marks = _cut_back(marks, high_watermark, now.closed)
    elif high_watermark == marks[-3] and now.opened >= 0:
        marks[-2] = now.opened
        if marks[-1] < 0:
            marks[-1] = now.closed
    while len(marks) > _WIDTH and marks[_WIDTH] <= first_unread:
        del marks[:_WIDTH]
    if state.fresh >= _FRESH and now.opened >= 0:
        marks, state.fresh = thinned(marks, now.opened), 0
    elif len(marks) > 2 * _MOST_MARKS * _WIDTH:
        # No round's time has been certain for long, so nobody knows how old the marks are.
        marks = _newest(marks)
    unread = _bounds(marks, first_unread, now.closed)
    if told is not None and unread.reason == BEFORE_ROUNDS:
        found = _with_told(marks, first_unread, unread, told, append_time=append_time)
        if found is not None:
            marks, state.row_at = found, AGAIN
            unread = _bounds(marks, first_unread, now.closed)
    state.marks = marks
    return unread


def marks_before(state: PartitionState, before: RoundTimes, rested: int) -> list[int]:
    """The marks of a partition with that of the round before; what is returned may be changed.

    Args:
        state: The partition, with the row of the round before.
        before: Times of the group's newest round before this one that were certain.
        rested: As `rested_until` gives it.
    """
    marks = state.marks
    seen = state.row[1] if state.row is not None else None
    if seen is None:
        return marks or [*_UNSEEN]
    if not marks or seen > marks[-3]:
        marks += (seen, max(before.opened, rested), before.closed)
        state.fresh += 1
    elif rested > marks[-2] >= 0:
        marks[-2] = rested
    return marks


def _bounds(marks: list[int], first_unread: int, closed: int) -> Unread:
    """Bounds of the time at which a record became readable.

    Args:
        marks: Marks of rounds before the newest one, which saw a high watermark above the record.
        first_unread: Its offset.
        closed: Closing time of the newest round, ms; -1 if that is not certain.
    """
    at_or_below = marks[0] <= first_unread
    earliest, above = (marks[1], _WIDTH + 2) if at_or_below else (-1, 2)
    latest = marks[above] if above < len(marks) else -1
    if latest < 0:
        latest = next((known for known in marks[above::_WIDTH] if known >= 0), closed)
    return unread_between(earliest, latest, _TOLD.get(marks[2], ROUNDS))


def unread_between(earliest: int, latest: int, method: str = ROUNDS) -> Unread:
    """The columns for bounds in ms, -1 where unknown."""
    if latest < 0:
        return Unread(None if earliest < 0 else earliest, None, None if earliest < 0 else method, UNCERTAIN_TIME)
    if earliest < 0:
        return Unread(None, latest, method, BEFORE_ROUNDS)
    # A clock that was set back by less than a minute is believed, `RoundClock`.
    return Unread(min(earliest, latest), latest, method, None)


def _with_told(
    marks: list[int], first_unread: int, known: Unread, told: UnreadTimestamp, *, append_time: bool
) -> list[int] | None:
    """The marks with what brokers told of the oldest unread record; None if that says nothing new.

    A timestamp after the time by which a round saw the record is not believed.
    """
    latest = known.time_max
    is_known = marks[2] in _TOLD
    if latest is None or told.offset != first_unread or told.reached > latest or (is_known and not told.own):
        return None
    earliest = told.reached if told.own or append_time else -1
    if told.own:
        latest = told.reached
    elif 0 <= told.below <= latest:
        latest = told.below - 1
    elif not append_time:
        return None
    if is_known:
        marks = marks[2 * _WIDTH :]
    elif marks[0] <= first_unread:
        marks = marks[_WIDTH:]
    return [first_unread, earliest, -2 if append_time else -3, first_unread + 1, -1, latest, *marks]


def thinned(marks: list[int], now: int) -> list[int]:
    """The marks without those that are hardly needed. The first two stay, because they give the present bounds.

    Args:
        marks: The marks.
        now: Opening time of the newest round, ms.
    """
    percent = _SHARE_PERCENT
    kept = _thinned(marks, now, percent)
    while len(kept) > _MOST_MARKS * _WIDTH and percent <= _ANY_PERCENT:
        percent *= 2
        kept = _thinned(kept, now, percent)
    # Only a clock that runs backwards leaves more; any mark may go, which makes bounds wider and never wrong.
    if len(kept) <= _MOST_MARKS * _WIDTH:
        return kept
    return _newest(kept)


def _newest(marks: list[int]) -> list[int]:
    return marks[: 2 * _WIDTH] + marks[-(_MOST_MARKS - 2) * _WIDTH :]


def _thinned(marks: list[int], now: int, percent: int) -> list[int]:
    kept = marks[: 2 * _WIDTH]
    for at in range(2 * _WIDTH, len(marks) - _WIDTH, _WIDTH):
        opened, closed = kept[-2], marks[at + _WIDTH + 2]
        if closed < 0 or 100 * (closed - opened) > percent * (now - closed):
            kept += marks[at : at + _WIDTH]
    return kept + marks[max(2 * _WIDTH, len(marks) - _WIDTH) :]


def _cut_back(marks: list[int], high_watermark: int, closed: int) -> list[int]:
    """The marks of a log that was cut back: other records may have the offsets of those that are gone.

    So they were readable by now, and nobody knows since when, except that it was not before a mark below them.
    """
    kept: list[int] = []
    for at in range(0, len(marks), _WIDTH):
        if marks[at] < high_watermark:
            kept += (marks[at], marks[at + 1], closed)
    return kept or [*_UNSEEN]


def shift(state: PartitionState, by: int) -> None:
    """Correct the marks' times by the error of a clock that is no longer trusted, ms."""
    marks = state.marks
    if marks[2] in _TOLD:
        # Another clock gave these. New ones come within a heartbeat.
        marks = marks[2 * _WIDTH :] or [*_UNSEEN]
    state.marks = [moved(n, by) if at % _WIDTH else n for at, n in enumerate(marks)]


def moved(time: int, by: int) -> int:
    """A time of a round, corrected; -1 stays unknown."""
    if time < 0:
        return time
    return max(0, time + by)


def forget(state: PartitionState) -> None:
    """Drop the marks: earlier rounds showed another topic of this name."""
    state.marks = [*_ANOTHER_TOPIC]
