"""Findings about what the broker gave to whom that consumer and share groups have in common."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final

from streaming.groups.context import GroupConfig
from streaming.groups.kind import FindingAtRound, finding_of, with_count
from streaming.groups.modern.group import ModernGroup
from streaming.groups.state import GroupState
from streaming.records import GroupObservation

_FOLLOWED: Final = 100
"""Topics of a group that are followed at a time: a member may subscribe to any number that do not exist."""


def left_out(
    state: GroupState,
    group: ModernGroup,
    observation: GroupObservation,
    config: GroupConfig,
    known_of: Callable[[ModernGroup], dict[str, int]],
    settles_ms: int,
    *,
    asks_for_all: bool,
) -> list[FindingAtRound]:
    """The findings `topic_not_visible`, `stale_metadata` and `unassigned` of a group with members.

    Args:
        state: The group's state, including this round.
        group: The group.
        observation: The round.
        config: Settings.
        known_of: How many partitions of each topic id the coordinator certainly knew when it made the target.
        settles_ms: Time after a target within which the coordinator may still make the next one without a fault.
        asks_for_all: A round asks for every topic that members subscribe to, so one that it lacks is not visible.
    """
    # While the offsets log is blocked, nobody can tell whether there is a new target: what was found before stays as it
    # was (`kind.py` leaves out what is new).
    may_worsen = observation.held_since is None or "unassigned" in state.findings
    now, grace = state.clock.now, config.metadata_grace_ms
    made = group.decided.record if group.decided is not None else -1
    is_current = group.decided is not None and group.decided.epoch == group.epoch
    shown = {topic.topic: topic for topic in observation.topics}
    assigned = _assigned(group)
    unseen_ids = assigned.keys() - {topic.topic_id for topic in observation.topics}
    counts: dict[str, int] | None = None
    found: list[FindingAtRound] = []
    unseen: list[tuple[int, str]] = []
    stale: list[tuple[int, str]] = []
    orphaned: list[tuple[int, str]] = []
    for topic, by_name in _subscribed(group).items():
        if len(found) == _FOLLOWED:
            break
        if not config.watches_topic(topic):
            continue
        seen = shown.get(topic)
        count = seen.partitions if seen is not None else None
        if seen is None and not asks_for_all:
            continue
        if seen is None or count is None:
            if not by_name and not _may_be_assigned(state, topic, unseen_ids):
                continue  # deleted, and not yet resolved again
            kept_as = f"{topic} not visible"
            since = state.findings.get(kept_as, now)
            if kept_as in state.findings and (by_name or now - since >= grace):
                unseen.append((since, topic))
            found.append(FindingAtRound("topic_not_visible", since, topic, kept_as, shown=False))
            continue
        topic_id = seen.topic_id
        if topic_id is None:
            continue  # assignments name topics by id
        if (owned := len(assigned.get(topic_id, ()))) >= count:
            continue
        kept_as = f"{topic} left out by {made}"
        since = state.findings.get(kept_as, now)
        counts = counts if counts is not None else known_of(group)
        known = min(count, counts.get(topic_id, 0))
        late = may_worsen and now - since >= grace
        if owned < known and group.decided is not None:
            made_ago = state.clock.passed - group.decided.record_time
            settled = may_worsen and is_current and made_ago > settles_ms
            if settled or late:
                since_then = group.decided.record_time if is_current else since
                orphaned.append((since_then, with_count(topic, known - owned)))
        if known < count and late:
            orphaned.append((since, f"{topic[:200]} ({known} to {count} partitions)"))
        elif known < count and is_current and kept_as in state.findings:
            stale.append((since, f"{topic[:200]} ({known} to {count} partitions)"))
        found.append(FindingAtRound("unassigned", since, topic, kept_as, shown=False))
    found += finding_of("topic_not_visible", "subscribed, but not visible", unseen)
    found += finding_of("stale_metadata", "new partitions that the coordinator's target does not have", stale)
    return found + finding_of("unassigned", "partitions without an owner", orphaned)


def _assigned(group: ModernGroup) -> dict[str, set[int]]:
    """Partitions of each topic id that are in a target of a member; members of a share group may have one together."""
    found: dict[str, set[int]] = {}
    for member_id in group.members.keys() & group.targets.keys():
        for topic_id, numbers in group.targets[member_id].partitions:
            found.setdefault(topic_id, set()).update(numbers)
    return found


def _subscribed(group: ModernGroup) -> dict[str, bool]:
    """Topics that members subscribe to, sorted, each with whether one does so by its name.

    Without the topics of regular expressions that are not resolved yet.
    """
    topics: dict[str, bool] = {}
    # Members of a group mostly share one regular expression, which may match thousands of topics.
    for regex in {member.regex for member in group.members.values() if member.regex is not None}:
        resolved = group.regexes.get(regex)
        topics.update(dict.fromkeys(resolved.topics if resolved is not None else (), False))
    for member in group.members.values():
        topics.update(dict.fromkeys(member.topics, True))
    return dict(sorted(topics.items()))


def _may_be_assigned(state: GroupState, topic: str, unseen_ids: Set[str]) -> bool:
    """Whether the target has partitions of a topic that the round does not show."""
    known = state.topics.get(topic)
    if known is not None and known.topic_id is not None:
        return known.topic_id in unseen_ids
    return not unseen_ids <= {of.topic_id for of in state.topics.values()}
