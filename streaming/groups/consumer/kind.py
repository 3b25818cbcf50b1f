"""Groups that the broker assigns: consumer (KIP-848), share and streams; with the findings about their members.

The coordinator assigns every partition that it knows of. What happens to a topic reaches it with the brokers' metadata
at once, and it acts at the next heartbeat of a member (`GroupMetadataManager.onNewMetadataImage` only asks for a
refresh): 5 s by default, at most 15 s unless brokers allow more. Since Kafka 4.3 it makes a target at most every
`group.consumer.assignment.interval.ms` (1 s, at most 15 s). So two rounds in a row see a target that lacks partitions
only where that takes longer than usual. What the coordinator knows is seen in its target, and up to Kafka 4.0 in its
own record of the topics; since 4.1 that is a hash.

A regular expression is resolved again when a topic was created, not when one was deleted, and since 4.1 every ten
minutes. So topics that it matched and that are gone are missed only if the target still has them.

A round asks for topics after it has read its log position. So what only one round shows may be a change that its log
does not have yet, and nothing is said of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import Final

from streaming.groups.consumer.recompute import balance_of_target, least_moves_of_target, moves_of_target
from streaming.groups.consumer.verdicts import expected_by, judge, modern_what_if_rows
from streaming.groups.context import Context, GroupConfig
from streaming.groups.health.activity import idle_members
from streaming.groups.kind import FindingAtRound, Ownership, Owning, finding_of, found_before, some
from streaming.groups.modern.group import ModernGroup, behind, counts_in, newest_targets, owned_now, subscriptions_of
from streaming.groups.modern.members import named_target, ownership_version, topic_names
from streaming.groups.modern.rules import TypeRules
from streaming.groups.state import GroupState
from streaming.records import CONSUMER, GroupObservation
from streaming.terminal import counted

_FOLLOWED: Final = 100
"""Topics of a group that are followed at a time: a member may subscribe to any number that do not exist."""


def _findings(state: GroupState, observation: GroupObservation, context: Context) -> list[FindingAtRound]:
    judged = _left_out(state, observation, context.config)
    late = _reconciling(state)
    if not late and not judged:
        judged = _idle(state, observation)
    if observation.held_since is not None:
        judged = found_before(judged, state.findings)
    return [*judged, *late]


def _left_out(state: GroupState, observation: GroupObservation, config: GroupConfig) -> list[FindingAtRound]:
    """The findings `topic_not_visible`, `stale_metadata` and `unassigned` of a consumer group with members.

    Args:
        state: The group's state, including this round.
        observation: The round.
        config: Settings.
    """
    group = state.modern.group
    if group is None or not group.members:
        return []
    # Where compaction may have removed the end of a member, a target must show first who is still there.
    if not group.exact:
        return []
    # While the offsets log is blocked, nobody can tell whether there is a new target: what was found before stays as it
    # was (the caller leaves out what is new).
    may_worsen = observation.held_since is None or "unassigned" in state.findings
    now, grace = state.clock.now, config.metadata_grace_ms
    made = group.decided.record if group.decided is not None else -1
    is_current = group.decided is not None and group.decided.epoch == group.epoch
    assigned = _assigned(group)
    shown = {topic.topic: topic for topic in observation.topics}
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
        if (owned := assigned[topic_id]) >= count:
            continue
        kept_as = f"{topic} left out by {made}"
        since = state.findings.get(kept_as, now)
        counts = counts if counts is not None else _known(group)
        known = min(count, counts.get(topic_id, 0))
        late = may_worsen and now - since >= grace
        if owned < known and group.decided is not None:
            made_ago = state.clock.passed - group.decided.record_time
            settled = may_worsen and is_current and made_ago > _rebalance_timeout(group)
            if settled or late:
                since_then = group.decided.record_time if is_current else since
                orphaned.append((since_then, f"{topic[:200]} ({counted(known - owned, 'partition')})"))
        if known < count and late:
            orphaned.append((since, f"{topic[:200]} ({known} to {count} partitions)"))
        elif known < count and is_current and kept_as in state.findings:
            stale.append((since, f"{topic[:200]} ({known} to {count} partitions)"))
        found.append(FindingAtRound("unassigned", since, topic, kept_as, shown=False))
    found += finding_of("topic_not_visible", "subscribed, but not visible", unseen)
    found += finding_of("stale_metadata", "new partitions that the coordinator's target does not have", stale)
    return found + finding_of("unassigned", "partitions without an owner", orphaned)


def _idle(state: GroupState, observation: GroupObservation) -> list[FindingAtRound]:
    """Members of a consumer group that has reached its target and own nothing.

    Args:
        state: The group's state, including this round.
        observation: The round.
    """
    group = state.modern.group
    if group is None or group.decided is None or not group.members:
        return []
    if group.epoch > group.decided.epoch:
        return []  # the next target is being made
    targets = newest_targets(group)
    topics_of = {}
    for member_id, topics in subscriptions_of(group).items():
        if topics is None or member_id not in targets:
            return []
        topics_of[member_id] = topics
    owning = {member_id for member_id, target in targets.items() if any(numbers for _, numbers in target)}
    idle = [member_id for member_id, topics in topics_of.items() if topics and member_id not in owning]
    sizes = {topic.topic: topic.partitions for topic in observation.topics}
    return idle_members(idle, topics_of, sizes, None, group.decided.record_time)


def _reconciling(state: GroupState) -> list[FindingAtRound]:
    """The finding `reconciling` if members of a consumer group have not reached its newest target."""
    group = state.modern.group
    if group is None or group.decided is None:
        return []
    late = behind(group)
    if not late:
        return []
    detail = f"{len(late)} of {len(group.members)} members have not reached epoch {group.decided.epoch}: {some(late)}"
    return [FindingAtRound("reconciling", group.decided.record_time, detail)]


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


def _assigned(group: ModernGroup) -> Counter[str]:
    """How many partitions of each topic id the members' targets have; none has two members (drift says if one does)."""
    counts: Counter[str] = Counter()
    for member_id in group.members:
        target = group.targets.get(member_id)
        for topic_id, numbers in target.partitions if target is not None else ():
            counts[topic_id] += len(numbers)
    return counts


def _may_be_assigned(state: GroupState, topic: str, unseen_ids: Set[str]) -> bool:
    """Whether the target has partitions of a topic that the round does not show."""
    known = state.topics.get(topic)
    if known is not None and known.topic_id is not None:
        return known.topic_id in unseen_ids
    return not unseen_ids <= {of.topic_id for of in state.topics.values()}


def _known(group: ModernGroup) -> dict[str, int]:
    """How many partitions of each topic id the coordinator certainly knew when it made the target."""
    shown = counts_in(newest_targets(group).values())
    recorded = {
        topic_id: count or 0 for topic_id, _, count in (group.topics.topics if group.topics is not None else ())
    }
    return {topic_id: max(recorded.get(topic_id, 0), shown.get(topic_id, 0)) for topic_id in recorded | shown}


def _rebalance_timeout(group: ModernGroup) -> int:
    return max(member.rebalance_timeout for member in group.members.values())


def _owners(state: GroupState) -> Ownership:
    """Who owns what now; a partition being revoked still has its owner."""
    group = state.modern.group
    assert group is not None  # noqa: S101  # it has members
    names, topics = topic_names(state), subscriptions_of(group)
    members = []
    for member_id, member in group.members.items():
        partitions = tuple(
            [(names[topic_id], numbers) for topic_id, numbers in owned_now(group, member_id) if topic_id in names]
        )
        members.append(Owning(member, partitions, topics[member_id]))
    return Ownership(members, ownership_version(group))


CONSUMER_GROUPS: Final = TypeRules(
    group_type=CONSUMER,
    judge=judge,
    findings=_findings,
    owners=_owners,
    named_target=named_target,
    moves=moves_of_target,
    least_moves=least_moves_of_target,
    balance=balance_of_target,
    expected_by=expected_by,
    what_if=modern_what_if_rows,
)
"""Consumer groups as the core judges them."""
