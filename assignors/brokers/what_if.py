"""What-if: the result of each of the broker's assignors for one group of the consumer protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from assignors.assignment import Assignment
from assignors.brokers.model import ServerGroup, ServerMember
from assignors.brokers.registry import assign_on_server, known_server_strategies
from assignors.exceptions import AssignorError
from assignors.measures import Load, Outcome, bounds_of, outcome
from assignors.model import Group, Subscription
from assignors.strategy import Library


def what_if_on_server(
    group: ServerGroup,
    strategies: Iterable[str] | None = None,
    current: Assignment | None = None,
    *,
    release: Library | str | None = None,
    load: Load | None = None,
) -> dict[str, Outcome | AssignorError]:
    """Compute each assignor's result for this group.

    Args:
        group: Members and topics. If no member has a target, `current` is taken as the targets.
        strategies: Names; None means all known ones.
        current: The current owners, topics by id; None takes the targets.
        release: The broker's release; None means the newest.
        load: Load of the partitions by topic id.

    Returns:
        As `assignors.measures.outcomes.what_if`, with topics by id.
    """
    targets: Assignment = {
        member.member_id: {group.uuids[topic_id].text: tuple(set(parts)) for topic_id, parts in member.target}
        for member in group.members
    }
    now = targets if current is None else {
        member_id: {group.uuids[topic_id].text: parts for topic_id, parts in topics.items()}
        for member_id, topics in current.items()
    }  # fmt: skip
    asked = group if any(targets.values()) else _with_targets(group, now)
    measured = Group(tuple(_as_subscription(group, member) for member in group.members), group.counts)
    bounds = bounds_of(measured, now)
    result: dict[str, Outcome | AssignorError] = {}
    for strategy in known_server_strategies() if strategies is None else strategies:
        try:
            result[strategy] = outcome(measured, now, assign_on_server(strategy, asked, release), bounds, load)
        except AssignorError as error:
            result[strategy] = error
    return result


def _with_targets(group: ServerGroup, current: Assignment) -> ServerGroup:
    return ServerGroup(
        tuple(
            replace(
                member,
                target=tuple((topic, tuple(parts)) for topic, parts in current.get(member.member_id, {}).items()),
            )
            for member in group.members
        ),
        group.topics,
    )


def _as_subscription(group: ServerGroup, member: ServerMember) -> Subscription:
    return Subscription(member.member_id, tuple(uuid.text for uuid in group.subscribed(member)))
