"""Which groups are idle, and in which rounds they have events all the same.

A group is idle when nothing of it has changed since the round before: neither its committed offsets, nor its topics,
nor their offsets, nor what holds back its log partition. One with members must also have read all there is, and have
been the same group for `STEADY_ROUNDS`: verdicts, findings and storms that look at the clock have come to their end by
then, and lag that nobody works off is judged in every round. Among a hundred thousand groups most
are idle, and an event of each in every round would only repeat itself. So an idle group has events

- in the first round that sees it so: its reader knows then that a missing event means that nothing has moved,
- some `SETTLED_ROUNDS` later, when its lag can be judged,
- from then on once in a period (the job's heartbeat),

each group at a moment of its own, so that no round has to report them all. Any change is reported in the very round
that sees it.

Pure, as `observe.py`. None of this outlives the process: a new probe reports all groups until it has seen them rest.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

SETTLED_ROUNDS = 12
"""Longer than the judgement of lag looks back (ten rounds, `groups/lag/state.py`), so that lag is settled by then."""

STEADY_ROUNDS = 60
"""Ten minutes with rounds every 10 s: as long as storms are counted, and as leaders may work with old metadata."""

SPREAD_ROUNDS = 6
"""Groups that came to rest in one round, as all do for a new probe, settle in so many."""


class Reporting(enum.Enum):
    """How a round reports a group."""

    FULLY = enum.auto()
    AS_IDLE = enum.auto()
    NOT_AT_ALL = enum.auto()


@dataclass(frozen=True, slots=True)
class Rest:
    """How long the groups have rested.

    Attributes:
        time: Time of the newest round, ms; -1 before the first.
        marks: A hash of what each group without members looked like; equal as long as the group looks the same.
        rounds: How many rounds in a row it had looked so before.
        since: Time of the first of these rounds, ms.
    """

    time: int = -1
    marks: Mapping[str, int] = field(default_factory=dict)
    rounds: Mapping[str, int] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)


def rest_after(before: Rest, marks: Mapping[str, int], time: int) -> Rest:
    """The rest of the groups after one more round.

    Args:
        before: Marks of the closed round before.
        marks: Marks of the groups without members in this round.
        time: The round's time, ms.
    """
    rounds, since = dict.fromkeys(marks, 0), dict.fromkeys(marks, time)
    for group in [group for group, mark in marks.items() if before.marks.get(group) == mark]:
        rounds[group], since[group] = before.rounds[group] + 1, before.since[group]
    return Rest(time, marks, rounds, since)


def rested(group: str, before: Rest) -> tuple[int, int] | None:
    """Times of the first and the last round in which a group looked the same, if the last one did not report it.

    The job has seen it only at the first rounds of this stretch: with the last one it knows how long all stayed so.
    Also None if the clock was ahead at the first of them: its time cannot be compared with the last one's.
    """
    if not rests(group, before) or before.since[group] > before.time:
        return None
    return before.since[group], before.time


def rests(group: str, before: Rest) -> bool:
    """Whether a group has looked the same for so long that the last round need not have reported it."""
    return before.rounds.get(group, 0) > 1


def is_settled(group: str, before: Rest) -> bool:
    """Whether a group has looked the same for so long that only heartbeats report it."""
    return before.rounds.get(group, 0) >= SETTLED_ROUNDS + SPREAD_ROUNDS


def reporting(group: str, before: Rest, now: Rest, period_ms: int) -> Reporting:
    """How this round reports a group.

    Args:
        group: Group id.
        before: Marks of the closed round before.
        now: Marks of this round.
        period_ms: An idle group is reported once within it.
    """
    rested = now.rounds.get(group, 0)
    if not rested:
        return Reporting.FULLY
    settles = SETTLED_ROUNDS + _hash(group) % SPREAD_ROUNDS
    is_due = rested in {1, settles} or is_its_turn(group, before, now, period_ms)
    if is_due:
        return Reporting.AS_IDLE
    return Reporting.NOT_AT_ALL


def is_its_turn(group: str, before: Rest, now: Rest, period_ms: int) -> bool:
    """Whether the group's moment within the period has come since the round before."""
    moment = _hash(group) % period_ms
    return (now.time - moment) // period_ms > (before.time - moment) // period_ms


def _hash(group: str) -> int:
    return zlib.crc32(group.encode("utf-8", "surrogateescape"))
