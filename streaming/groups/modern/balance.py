"""How even a broker's target is, and what it moved, beside the best that any assignment could have done.

A target knows topics by id, subscriptions know them by name. Where all members subscribe to the same topics, the
names are not needed; where they do not, rounds must have named every topic of the target. What cannot be told is None.
"""

from __future__ import annotations

from collections.abc import Mapping

from assignors import (
    Assignment,
    AssignorError,
    Group,
    Subscription,
    from_topics,
    imbalance,
    imbalance_optimal,
    moves,
    optimal_moves,
)
from streaming.groups.modern.consumer_group import ModernDecision
from streaming.records import CONSUMER, SHARE

__all__ = ["balance_of_target", "before_target", "group_of_target", "least_moves_of_target", "moves_of_target"]


def group_of_target(decision: ModernDecision, names: Mapping[str, str]) -> Group | None:
    """The group of a decision as the measures take it.

    Args:
        decision: A decision of a consumer group.
        names: Topic names by id, as far as they are known.

    Returns:
        Members with the ids of the topics that they subscribe to, and the partition counts that the target shows (the
        broker's assignors hand out every partition). None where members, subscriptions or names are missing, or
        have changed since the target was computed, and of share and streams groups.
    """
    if decision.group_type != CONSUMER or decision.became_empty or not decision.exact or decision.undescribed:
        return None
    if decision.group_epoch != decision.epoch:
        return None
    counts: dict[str, int] = {}
    for target in decision.targets.values():
        for topic_id, numbers in target:
            counts[topic_id] = max(counts.get(topic_id, 0), max(numbers, default=-1) + 1)
    subscriptions = _by_id(decision, counts, names)
    if subscriptions is None:
        return None
    try:
        return Group(tuple([Subscription(name, topics) for name, topics in subscriptions.items()]), counts)
    except AssignorError:
        return None


def balance_of_target(decision: ModernDecision, names: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Imbalance of a consumer group's target, and the least that any assignment of its partitions could have.

    Returns:
        (None, None) when nothing is assigned or members are missing; the second alone where `group_of_target` has
        no group.
    """
    if decision.group_type != CONSUMER or not decision.exact or decision.undescribed:
        return None, None
    uneven = imbalance([sum(len(numbers) for _, numbers in target) for target in decision.targets.values()])
    group = group_of_target(decision, names) if uneven is not None else None
    return uneven, imbalance_optimal(group) if group is not None else None


def moves_of_target(decision: ModernDecision) -> int | None:
    """Partitions that go from one member to another, by the target against the one before; None where not known.

    A static member under its new id is no other.
    """
    before = before_target(decision)
    return None if before is None or decision.group_type == SHARE else moves(before, from_topics(decision.targets))


def least_moves_of_target(decision: ModernDecision, names: Mapping[str, str]) -> int | None:
    """The least moves after which the group could have been balanced; what was moved beyond is the cost in stickiness.

    Returns:
        None where `group_of_target` has no group, or the target before is not known.
    """
    before = before_target(decision)
    group = group_of_target(decision, names) if before is not None else None
    return None if before is None or group is None else optimal_moves(before, group)


def before_target(decision: ModernDecision) -> Assignment | None:
    """The target before, a static member under its new id; None where it is not known."""
    if decision.before is None:
        return None
    renamed = dict(decision.replaced)
    return from_topics({renamed.get(name, name): target for name, target in decision.before.items()})


def _by_id(
    decision: ModernDecision, counts: Mapping[str, int], names: Mapping[str, str]
) -> dict[str, tuple[str, ...]] | None:
    """Ids of the topics that each member subscribes to, of those that the target shows."""
    subscriptions = [decision.subscriptions[member.member_id] for member in decision.members]
    if None in subscriptions:
        return None
    if len(set(subscriptions)) <= 1:
        return {member.member_id: tuple(counts) for member in decision.members}
    if not counts.keys() <= names.keys():
        return None
    ids = {names[topic_id]: topic_id for topic_id in counts}
    if len(ids) < len(counts):
        return None  # a topic that was made anew: which of the two is meant is not known
    alike: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = {}
    for member, topics in zip(decision.members, subscriptions, strict=True):
        listed = topics or ()
        found = alike.get(listed)
        if found is None:
            found = alike[listed] = tuple([ids[name] for name in listed if name in ids])
        result[member.member_id] = found
    return result
