"""Findings about what members of any group do not do: own a partition, commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streaming.groups.health.columns import FindingAtRound, some
from streaming.groups.health.state import Uncommitted
from streaming.groups.kind import Kind
from streaming.groups.lag.partitions import offsets_of
from streaming.groups.lag.state import MARKER
from streaming.groups.state import GroupState
from streaming.records import GroupObservation
from streaming.terminal import counted

_COMMIT_BY_MS: Final = 600_000
"""Members that have committed nothing for this long are reported: twice the default of `max.poll.interval.ms`, within
which a consumer must come back for more, and by default it then commits."""


# The state holds int64.
_MOST: Final = 2**63 - 1


def note_commits(state: GroupState, observation: GroupObservation, kind: Kind) -> None:
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
    owners = kind.owners(state) if state.members_known else {}
    if not owners:
        state.uncommitted = None
        return
    if observation.held_since is not None:
        return  # there may be commits that nobody can read yet
    elapsed = observation.elapsed_time
    noted = state.uncommitted = state.uncommitted or Uncommitted(state.clock.now, elapsed)
    for topic in observation.topics:
        partitions = state.partitions.get(topic.topic, {})
        ends = offsets_of(topic.high_watermarks, topic.partitions or 0)
        for number in owners.get(topic.topic, ()):
            row = partitions[number].row if number in partitions else None
            before = row[1] if row is not None else None
            if before is not None and number < len(ends):
                noted.arrived = min(_MOST, noted.arrived + max(0, ends[number] - before))
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
    members: list[str],
    topics_of: Mapping[str, frozenset[str]],
    sizes: Mapping[str, int | None],
    strategy: str | None,
    since: int,
) -> list[FindingAtRound]:
    """The finding `idle_members`, and whether there are too few partitions or the strategy is why.

    Args:
        members: Members that own nothing and subscribe to something.
        topics_of: Topics of each member of the group.
        sizes: Partition counts by topic; None for a topic that is not visible.
        strategy: The strategy; None where the broker assigns.
        since: When the group decided, ms.
    """
    if not members:
        return []
    reach = frozenset[str]().union(*(topics_of[member] for member in members))
    if any(sizes.get(topic) is None for topic in reach):
        return []  # the finding `topic_not_visible` says so
    partitions = sum(sizes[topic] or 0 for topic in reach)
    sharing = sum(not reach.isdisjoint(topics) for topics in topics_of.values())
    few = partitions < sharing
    of = f"{counted(partitions, 'partition')} for {counted(sharing, 'member')}"
    verb = "is" if partitions == 1 else "are"
    why = f"there {verb} {of}" if few else f"{strategy or 'the broker'} assigns {of} so"
    detail = f"{len(members)} of {len(topics_of)} members own nothing, {why}: {some(members)}"
    return [FindingAtRound("idle_members", since, detail)]
