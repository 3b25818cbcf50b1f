"""Consumer groups (KIP-848): who owns what, and the findings about their members.

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
from typing import Final

from streaming.groups.consumer.verdicts import broken, expected_by, modern_what_if_rows, recompute
from streaming.groups.context import Context
from streaming.groups.health.activity import idle_members
from streaming.groups.kind import FindingAtRound, Ownership, Owning
from streaming.groups.modern.group import ModernGroup, counts_in, newest_targets, owned_now, subscriptions_of
from streaming.groups.modern.left_out import left_out
from streaming.groups.modern.members import ownership_version, topic_names
from streaming.groups.modern.rules import TypeRules
from streaming.groups.state import GroupState
from streaming.records import CONSUMER, GroupObservation


def _findings(
    state: GroupState, group: ModernGroup, observation: GroupObservation, context: Context
) -> list[FindingAtRound]:
    timeout, assigned = _rebalance_timeout(group), _assigned(group)
    return left_out(state, group, observation, context.config, assigned, _known, timeout, asks_for_all=True)


def _idle(_state: GroupState, group: ModernGroup, observation: GroupObservation) -> list[FindingAtRound]:
    """Members that own nothing."""
    if group.decided is None or group.epoch > group.decided.epoch:
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


def _assigned(group: ModernGroup) -> Counter[str]:
    """How many partitions of each topic id the members' targets have; none has two members (drift says if one does)."""
    counts: Counter[str] = Counter()
    for member_id in group.members:
        target = group.targets.get(member_id)
        for topic_id, numbers in target.partitions if target is not None else ():
            counts[topic_id] += len(numbers)
    return counts


def _known(group: ModernGroup) -> dict[str, int]:
    """How many partitions of each topic id the coordinator certainly knew when it made the target."""
    shown = counts_in(newest_targets(group).values())
    recorded = {
        topic_id: count or 0 for topic_id, _, count in (group.topics.topics if group.topics is not None else ())
    }
    return {topic_id: max(recorded.get(topic_id, 0), shown.get(topic_id, 0)) for topic_id in recorded | shown}


def _rebalance_timeout(group: ModernGroup) -> int:
    return max(member.rebalance_timeout for member in group.members.values())


def _owners(state: GroupState, group: ModernGroup) -> Ownership:
    """Who owns what now; a partition being revoked still has its owner."""
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
    broken=broken,
    recompute=recompute,
    findings=_findings,
    idle=_idle,
    owners=_owners,
    expected_by=expected_by,
    what_if=modern_what_if_rows,
    rebalance_protocol=CONSUMER,
)
"""Consumer groups as the core judges them."""
