"""Findings about any group: members that own nothing, a group that never commits, one that rebalances too often.

The state keeps the times of the rebalances of the last ten minutes, and of those before them a count in which a
rebalance loses half of its weight in a day. So the group's own past decides what is much: a group that scales with its
load may rebalance every few minutes for ever. What happens during a storm does not count as the past, or a storm of
hours would become what is usual, and end as a finding while it goes on.

Everything follows from the times of the decisions in log order, and not from when a round looked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import log
from typing import Final

from streaming.groups.kind import FindingAtRound, Ownership, idle_finding
from streaming.groups.lag.partitions import offsets_of
from streaming.groups.lag.state import MARKER
from streaming.groups.rows import MOST
from streaming.groups.state import GroupState, Rebalances, Uncommitted
from streaming.records import GroupObservation
from streaming.terminal import counted
from streaming.times import DAY_MS, Shift

_COMMIT_BY_MS: Final = 600_000
"""Members that have committed nothing for this long are reported: twice the default of `max.poll.interval.ms`, within
which a consumer must come back for more, and by default it then commits."""


def note_commits(state: GroupState, observation: GroupObservation, owners: Ownership) -> None:
    """Note in the state whether the group owns partitions in which records arrive, and has no committed offset.

    Call this before the round's lag is judged: it looks at the high watermarks of the round before.
    """
    if any(
        known.committed >= 0 or known.unreadable
        for of_topic in state.partitions.values()
        for known in of_topic.values()
    ):
        state.uncommitted = None
        return
    if not owners.by_partition:
        state.uncommitted = None
        return
    if observation.held_since is not None:
        return  # there may be commits that nobody can read yet
    elapsed = observation.elapsed_time
    noted = state.uncommitted = state.uncommitted or Uncommitted(state.clock.now, elapsed)
    for topic in observation.topics:
        partitions = state.partitions.get(topic.topic, {})
        ends = offsets_of(topic.high_watermarks, topic.partitions or 0)
        for number in owners.by_partition.get(topic.topic, ()):
            row = partitions[number].row if number in partitions else None
            before = row[1] if row is not None else None
            if before is not None and number < len(ends):
                noted.arrived = min(MOST, noted.arrived + max(0, ends[number] - before))
    if noted.arrived <= MARKER:
        # Nothing to commit yet. (A single offset may be a transaction marker.)
        noted.since, noted.elapsed = state.clock.now, elapsed


def never_committed(state: GroupState, observation: GroupObservation) -> Iterator[FindingAtRound]:
    """Members that own partitions in which records arrive, and have not committed an offset."""
    noted = state.uncommitted
    if noted is None or (observation.held_since is not None and "never_committed" not in state.findings):
        return  # a commit may be there by now that nobody can read
    if observation.elapsed_time - noted.elapsed >= _COMMIT_BY_MS:
        detail = "records arrive in the group's partitions, and the group has never committed"
        yield FindingAtRound("never_committed", noted.since, detail)


def idle_members(
    owners: Ownership, observation: GroupObservation, strategy: str | None, since: int
) -> list[FindingAtRound]:
    """The finding `idle_members`, and whether there are too few partitions or the strategy is why.

    Args:
        owners: Who owns what in a group that has settled.
        observation: The round.
        strategy: The strategy; None where the broker assigns.
        since: When the group decided, ms.
    """
    # A pattern that matches nothing asks for nothing.
    idle = [of for of in owners.members if of.topics and not any(numbers for _, numbers in of.partitions or ())]
    if not idle or owners.topics is None:
        return []
    sizes = {topic.topic: topic.partitions for topic in observation.topics}
    reach = frozenset[str]().union(*(of.topics or () for of in idle))
    if any(sizes.get(topic) is None for topic in reach):
        return []  # the finding `topic_not_visible` says so
    partitions = sum(sizes[topic] or 0 for topic in reach)
    sharing = sum(not reach.isdisjoint(of.topics or ()) for of in owners.members)
    few = partitions < sharing
    of = f"{counted(partitions, 'partition')} for {counted(sharing, 'member')}"
    verb = "is" if partitions == 1 else "are"
    why = f"there {verb} {of}" if few else f"{strategy or 'the broker'} assigns {of} so"
    names = [one.member.member_id for one in idle]
    return idle_finding(names, len(owners.members), f"own nothing, {why}", since)


WINDOW_MS: Final = 600_000
"""Span in which rebalances are counted, ms."""

LEAST: Final = 6
"""Fewer rebalances within the span are no storm: a deployment of a few members one after the other makes as many."""

_TIMES_USUAL: Final = 5
"""A storm has more than this many times the usual number."""

# A group that is younger has no past to compare with.
_YOUNGEST_MS: Final = 3_600_000

# Times kept: a group can rebalance several times a second, and a finding need not tell 64 from more.
_MOST_KEPT: Final = 64


def note(known: Rebalances, time: int) -> None:
    """Count a rebalance.

    Args:
        known: The group's rebalances.
        time: Time of its record, ms. One that is a little earlier than the newest counts as made at that time: a new
            coordinator's clock may be behind. With one that is far earlier a clock was wrong, so counting begins again.
    """
    if time < 0:
        return  # no client and no broker writes such a time
    newest = known.recent[-1] if known.recent else -1
    if known.first < 0 or time < newest - WINDOW_MS:
        known.first = known.counted_at = time
        known.recent, known.past, known.storm_since = [], 0.0, -1
    time = max(time, newest) if known.recent else time
    known.recent.append(time)
    while known.recent[0] <= time - WINDOW_MS or len(known.recent) > _MOST_KEPT:
        oldest = known.recent.pop(0)
        if known.storm_since < 0:
            known.past, known.counted_at = _halved(known, oldest) + 1, oldest
    if _is_many(known, len(known.recent), time):
        known.storm_since = known.recent[0] if known.storm_since < 0 else known.storm_since
    else:
        known.storm_since = -1


def count_rebalance(state: GroupState, time: int) -> None:
    """Count a decision of a group, which was made at a time in ms; see `note`."""
    state.rebalances = state.rebalances or Rebalances()
    note(state.rebalances, time)


def storm(known: Rebalances | None, now: int) -> FindingAtRound | None:
    """The finding `rebalance_storm` at a round; None if there is no storm.

    Args:
        known: The group's rebalances; None before the first.
        now: The round's time, ms.
    """
    if known is None or known.storm_since < 0:
        return None
    # A record far ahead of the round has a wrong time.
    number = sum(now - WINDOW_MS < time <= now + WINDOW_MS for time in known.recent)
    if number < LEAST:
        return None
    minutes = WINDOW_MS // 60_000
    many = f"{number} or more" if number >= _MOST_KEPT else f"{number}"
    a_day = _usual(known, known.recent[-1]) * DAY_MS / WINDOW_MS
    detail = f"{many} rebalances in the last {minutes} minutes; usually about {a_day:.1f} a day"
    return FindingAtRound("rebalance_storm", known.storm_since, detail)


def _halved(known: Rebalances, time: int) -> float:
    return known.past * float(2.0 ** ((known.counted_at - time) / DAY_MS))


def _is_many(known: Rebalances, number: int, time: int) -> bool:
    old_enough = known.recent[0] - known.first >= _YOUNGEST_MS
    return number >= LEAST and old_enough and number > _TIMES_USUAL * _usual(known, time)


def _usual(known: Rebalances, time: int) -> float:
    """Rebalances within `WINDOW_MS`, as the group's past has them."""
    begun = known.recent[0] if known.storm_since < 0 else known.storm_since
    age = max(begun - known.first, _YOUNGEST_MS)
    # The sum of all weights that a rebalance a millisecond would have by now, since the first.
    weight = DAY_MS / log(2) * (1 - float(2.0 ** (-age / DAY_MS)))
    at = min(time, begun)
    return _halved(known, max(at, known.counted_at)) / weight * WINDOW_MS


# Findings that begin at the round that found them first. Names under which another start is kept (`kept_as`) have a
# space, which no finding's own name has.
_SINCE_A_ROUND: Final = frozenset({"topic_not_visible", "rewound", "data_lost"})

# How long rounds have watched a rebalance is kept in elapsed time, which no clock changes (`stuck_rebalance`).
# Names with a topic in them end in other words.
_IN_ELAPSED_TIME: Final = re.compile(r"\w+ watched since -?\d+")


def move_starts(state: GroupState, shift: Shift, present: int) -> None:
    """Correct the times since which something holds, after a clock jump.

    Args:
        state: The group's state.
        shift: The jump.
        present: Time of the newest round by the clock that is believed now, ms.
    """
    # Backwards, the clock was ahead, though perhaps not all the time. A start that is still to come is certainly its;
    # one that has passed may be right, and moving it would make a finding older than it is, perhaps a false alarm.
    least = max(shift.since, 0) if shift.by > 0 else present + 1

    def moved(time: int) -> int:
        if time >= least:
            return max(0, time + shift.by)
        return time

    state.findings = {name: moved(since) if _moves(name, shift) else since for name, since in state.findings.items()}
    if state.uncommitted is not None:
        state.uncommitted.since = moved(state.uncommitted.since)


def _moves(name: str, shift: Shift) -> bool:
    if _IN_ELAPSED_TIME.fullmatch(name):
        return False
    # Where the next round gives a start again, the earlier one counts. So it may become later here, but not earlier:
    # the time of a record stays.
    return shift.by > 0 or name in _SINCE_A_ROUND or " " in name
