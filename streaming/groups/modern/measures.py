"""Balance and moves of a broker's target, and the best that any assignment could have reached.

A target has topic ids, a subscription has topic names. If all members subscribe to the same topics, the names are not
needed; otherwise rounds must have named every topic of the target. Unknown values are None.
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
from streaming.groups.modern.group import ModernDecision, counts_in


def group_of_target(decision: ModernDecision, names: Mapping[str, str]) -> Group | None:
    """The group at a decision, as input for the measures.

    Args:
        decision: The decision.
        names: Known topic names by id.

    Returns:
        Members with the ids of their subscribed topics, and the partition counts that the target shows (the broker's
        assignors assign every partition). Any member can have any task. None if members, subscriptions or names are
        missing or have changed since the target was computed.
    """
    if decision.became_empty or not decision.exact or decision.undescribed:
        return None
    if decision.group_epoch != decision.epoch:
        return None
    counts = counts_in(decision.targets.values())
    subscriptions = _by_id(decision, counts, names)
    if subscriptions is None:
        return None
    try:
        return Group(tuple([Subscription(name, topics) for name, topics in subscriptions.items()]), counts)
    except AssignorError:
        return None


def balance_of_target(decision: ModernDecision, names: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Imbalance of a target, and the lowest that any assignment of its partitions, or active tasks, could have.

    Returns:
        (None, None) if nothing is assigned or members are missing; (imbalance, None) if `group_of_target` has no group.
    """
    if not decision.exact or decision.undescribed:
        return None, None
    uneven = imbalance([sum(len(numbers) for _, numbers in target) for target in decision.targets.values()])
    group = group_of_target(decision, names) if uneven is not None else None
    return uneven, imbalance_optimal(group) if group is not None else None


def moves_of_target(decision: ModernDecision) -> int | None:
    """Number of partitions, or active tasks, that the target moves from one member to another; None if unknown.

    A static member under a new id counts as the same member.
    """
    before = before_target(decision)
    if before is None:
        return None
    return moves(before, from_topics(decision.targets))


def least_moves_of_target(decision: ModernDecision, names: Mapping[str, str]) -> int | None:
    """The fewest moves after which the group could have been balanced; moves beyond that are lost stickiness.

    Returns:
        None if `group_of_target` has no group, or the previous target is unknown.
    """
    before = before_target(decision)
    group = group_of_target(decision, names) if before is not None else None
    if before is None or group is None:
        return None
    return optimal_moves(before, group)


def before_target(decision: ModernDecision) -> Assignment | None:
    """The previous target, with the new ids of static members; None if unknown."""
    if decision.before is None:
        return None
    renamed = dict(decision.replaced)
    return from_topics({renamed.get(name, name): target for name, target in decision.before.items()})


def _by_id(
    decision: ModernDecision, counts: Mapping[str, int], names: Mapping[str, str]
) -> dict[str, tuple[str, ...]] | None:
    """Ids of the target's topics that each member subscribes to; None if a subscription or a name is unknown."""
    subscriptions = [decision.topics_of(member.member_id) for member in decision.members]
    if decision.tasks is not None or (len(set(subscriptions)) <= 1 and None not in subscriptions):
        return {member.member_id: tuple(counts) for member in decision.members}
    if None in subscriptions or not counts.keys() <= names.keys():
        return None
    ids = {names[topic_id]: topic_id for topic_id in counts}
    if len(ids) < len(counts):
        return None  # two ids with one name: the topic was deleted and created again
    alike: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = {}
    for member, topics in zip(decision.members, subscriptions, strict=True):
        listed = topics or ()
        found = alike.get(listed)
        if found is None:
            found = alike[listed] = tuple([ids[name] for name in listed if name in ids])
        result[member.member_id] = found
    return result
