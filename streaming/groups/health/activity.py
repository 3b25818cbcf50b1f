"""Findings about what members do not do: end their rebalance, reach their target, own a partition, commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streaming.groups.classic.membership import owning_members
from streaming.groups.health.columns import FindingAtRound, some
from streaming.groups.health.state import Uncommitted
from streaming.groups.lag.partitions import offsets_of
from streaming.groups.lag.state import MARKER
from streaming.groups.modern.group import behind, newest_targets, subscriptions_of
from streaming.groups.modern.owners import modern_owners
from streaming.groups.state import GroupState
from streaming.plurals import counted
from streaming.records import CONSUMER, GroupObservation, MembershipRecord, TopicObservation

_REBALANCING = {"PreparingRebalance": "join again", "CompletingRebalance": "get their assignments from the leader"}
"""States of a classic group without an assignment in force (`ClassicGroupState`), and what its members must do."""

_PHASES = 3
"""A rebalance has two phases with a timeout each, and a group that is kept from its end by members that come and go
begins again. It may take this many timeouts as a whole."""


_COMMIT_BY_MS: Final = 600_000
"""Members that have committed nothing for this long are reported: twice the default of `max.poll.interval.ms`, within
which a consumer must come back for more, and by default it then commits."""


_UNKNOWN_TIMEOUT_MS: Final = 900_000
"""Three times the default of `max.poll.interval.ms`, which clients send as their rebalance timeout."""


# The state holds int64.
_MOST: Final = 2**63 - 1


def rebalance_timeout(record: MembershipRecord) -> int:
    """Time within which a rebalance of the group completes, ms: the longest rebalance timeout of its members.

    Where members are only seen, nobody knows their timeouts: then a time that few exceed.
    """
    if record.seen:
        return _UNKNOWN_TIMEOUT_MS
    # Records of version 0 have no rebalance timeout; the coordinator then uses the session timeout.
    return max(
        (m.rebalance_timeout if m.rebalance_timeout >= 0 else m.session_timeout for m in record.members), default=0
    )


def stuck_rebalance(
    state: GroupState, record: MembershipRecord | None, observation: GroupObservation
) -> Iterator[FindingAtRound]:
    """A rebalance of a classic group that takes longer than its members' timeouts allow.

    Each rebalance that ends leaves a record. So as long as no new one is there, rounds that show the group rebalancing
    show one and the same rebalance, or one that began again without having ended.

    Args:
        state: The group's state, including this round.
        record: Its live membership; None if it has none.
        observation: The round.
    """
    task = _REBALANCING.get(observation.state or "")
    # Without a generation nobody knows the timeouts.
    if task is None or record is None or not record.members:
        return
    limit, elapsed = rebalance_timeout(record), observation.elapsed_time
    # What counts is how long rounds have watched it: after an outage it may be another rebalance. So the beginnings of
    # the whole and of the phase are kept in elapsed time.
    whole, phase = f"rebalance watched since {record.record}", f"{observation.state} watched since {record.record}"
    began, entered = (min(state.findings.get(name, elapsed), elapsed) for name in (whole, phase))
    counted = elapsed
    if observation.held_since is not None:
        # While the offsets log is blocked, nobody can tell whether there is a new record. So nothing new is found, but
        # what was found stays, and so do the beginnings: without a new record it was the same rebalance.
        if whole not in state.findings:
            return
        counted -= max(0, state.clock.now - observation.held_since)
    is_stuck = counted - entered > limit or counted - began > _PHASES * limit
    detail = (
        f"{observation.state}: the members of the last generation ({len(record.members)}) have {limit // 1_000:,} s to "
        f"{task}, and no generation has followed"
    )
    if record.seen:
        detail = (
            f"{observation.state}: rounds have seen no end of it for {limit // 1_000:,} s, and the "
            f"members before it ({len(record.members)}) were to {task}; their timeouts are not known"
        )
    yield FindingAtRound("stuck_rebalance", state.clock.now, detail, f"rebalance since {record.record}", shown=is_stuck)
    for name in (whole, phase):
        yield FindingAtRound("stuck_rebalance", elapsed, detail, name, shown=False)


def idle_members(
    record: MembershipRecord, shown: Mapping[str, TopicObservation], decided: int
) -> Iterator[FindingAtRound]:
    """Members of a classic group that own nothing, and whether there are too few partitions or the strategy is why.

    Args:
        record: The group's membership, which can be decoded as a whole and of which nothing is pending.
        shown: The round's topics.
        decided: When the group decided, ms.
    """
    topics_of = {member.member_id: frozenset(member.topics or ()) for member in record.members}
    # (A pattern that matches nothing asks for nothing.)
    idle = [m.member_id for m in record.members if m.topics and not any(owned for _, owned in m.assigned or ())]
    sizes = {name: topic.partitions for name, topic in shown.items()}
    if (found := _idle(idle, topics_of, sizes, record.protocol, decided)) is not None:
        yield found


def idle_modern_members(state: GroupState, observation: GroupObservation) -> Iterator[FindingAtRound]:
    """The same for a consumer group of KIP-848 that has reached its target.

    Args:
        state: The group's state, including this round.
        observation: The round.
    """
    group = state.modern.group
    if group is None or group.decided is None or group.group_type != CONSUMER or not group.members:
        return
    if group.epoch > group.decided.epoch:
        return  # the next target is being made
    targets = newest_targets(group)
    topics_of = {}
    for member_id, topics in subscriptions_of(group).items():
        if topics is None or member_id not in targets:
            return
        topics_of[member_id] = topics
    owning = {member_id for member_id, target in targets.items() if any(numbers for _, numbers in target)}
    idle = [member_id for member_id, topics in topics_of.items() if topics and member_id not in owning]
    sizes = {topic.topic: topic.partitions for topic in observation.topics}
    if (found := _idle(idle, topics_of, sizes, None, group.decided.record_time)) is not None:
        yield found


def reconciling(state: GroupState) -> FindingAtRound | None:
    """The finding `reconciling` if members of a consumer group have not reached its newest target; None otherwise."""
    group = state.modern.group
    if group is None or group.decided is None or group.group_type != CONSUMER:
        return None
    late = behind(group)
    if not late:
        return None
    detail = f"{len(late)} of {len(group.members)} members have not reached epoch {group.decided.epoch}: {some(late)}"
    return FindingAtRound("reconciling", group.decided.record_time, detail)


def note_commits(state: GroupState, observation: GroupObservation) -> None:
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
    record = state.live_record()
    owners = owning_members(record) if record is not None else modern_owners(state)
    if not owners or not state.members_known:
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
        return  # (the latter: a commit may be there by now that nobody can read)
    if observation.elapsed_time - noted.elapsed >= _COMMIT_BY_MS:
        detail = "records arrive in the group's partitions, and the group has never committed"
        yield FindingAtRound("never_committed", noted.since, detail)


def _idle(
    idle: list[str],
    topics_of: Mapping[str, frozenset[str]],
    sizes: Mapping[str, int | None],
    strategy: str | None,
    since: int,
) -> FindingAtRound | None:
    if not idle:
        return None
    reach = frozenset[str]().union(*(topics_of[member] for member in idle))
    if any(sizes.get(topic) is None for topic in reach):
        return None  # the finding `topic_not_visible` says so
    partitions = sum(sizes[topic] or 0 for topic in reach)
    sharing = sum(not reach.isdisjoint(topics) for topics in topics_of.values())
    few = partitions < sharing
    of = f"{counted(partitions, 'partition')} for {counted(sharing, 'member')}"
    verb = "is" if partitions == 1 else "are"
    why = f"there {verb} {of}" if few else f"{strategy or 'the broker'} assigns {of} so"
    return FindingAtRound(
        "idle_members", since, f"{len(idle)} of {len(topics_of)} members own nothing, {why}: {some(idle)}"
    )
