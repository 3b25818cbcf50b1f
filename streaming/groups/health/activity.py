"""Findings about what members do not do: end their rebalance, or own a partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streaming.groups.classic.membership import counts_of
from streaming.groups.health.columns import Found, some
from streaming.groups.modern.consumer_group import newest_targets, subscribed
from streaming.groups.state import GroupState
from streaming.records import CONSUMER, GroupObservation, MembershipRecord, TopicObservation

_REBALANCING = {"PreparingRebalance": "join again", "CompletingRebalance": "get their assignments from the leader"}
"""States of a classic group without an assignment in force (`ClassicGroupState`), and what its members must do."""

_LONGEST_TIMEOUT_MS: Final = 1_800_000
"""Assumed for a group whose members are not known: `group.max.session.timeout.ms` of a broker that has the default."""

_PHASES = 3
"""A rebalance has two phases with a timeout each, and a group that is kept from its end by members that come and go
begins again. It may take this many timeouts as a whole."""


def rebalance_timeout(record: MembershipRecord) -> int:
    """Time within which a rebalance of the group completes, ms: the longest rebalance timeout of its members."""
    # Records of version 0 have no rebalance timeout; the coordinator then uses the session timeout.
    return max(
        (m.rebalance_timeout if m.rebalance_timeout >= 0 else m.session_timeout for m in record.members), default=0
    )


def stuck_rebalance(
    state: GroupState, record: MembershipRecord | None, observation: GroupObservation
) -> Iterator[Found]:
    """A rebalance of a classic group that takes longer than its members' timeouts allow.

    Each rebalance that ends leaves a record. So as long as no new one is there, rounds that show the group rebalancing
    show one and the same rebalance, or one that began again without having ended.

    Args:
        state: The group's state, including this round.
        record: Its live membership; None if it has none.
        observation: The round.
    """
    task = _REBALANCING.get(observation.state or "")
    # While the offsets log is blocked, nobody can tell whether there is a new record.
    if task is None or observation.held_since is not None or state.modern.key_type is not None:
        return
    now = state.clock.now
    members = record.members if record is not None else ()
    limit = (rebalance_timeout(record) if record is not None else 0) or _LONGEST_TIMEOUT_MS
    newest = record.record if record is not None else -1
    whole, phase = f"rebalance since {newest}", f"{observation.state} since {newest}"
    began, entered = (min(state.findings.get(name, now), now) for name in (whole, phase))
    is_stuck = now - entered > limit or now - began > _PHASES * limit
    known = (
        f"the {len(members)} members of the last generation have" if members else "members have, by default, at most"
    )
    detail = f"{observation.state}: {known} {limit // 1_000:,} s to {task}, and no generation has followed"
    yield Found("stuck_rebalance", now, detail, kept_as=whole, shown=is_stuck)
    yield Found("stuck_rebalance", now, detail, kept_as=phase, shown=False)


def idle_members(record: MembershipRecord, shown: Mapping[str, TopicObservation]) -> Iterator[Found]:
    """Members of a classic group that own nothing, and whether there are too few partitions or the strategy is why.

    Args:
        record: The group's membership, of which nothing is pending.
        shown: The round's topics.
    """
    counts = counts_of(record)
    if not counts or any(member.topics is None for member in record.members):
        return
    topics_of = {member.member_id: frozenset(member.topics or ()) for member in record.members}
    idle = [member.member_id for member, owned in zip(record.members, counts, strict=True) if not owned]
    sizes = {name: topic.partitions for name, topic in shown.items()}
    if (found := _idle(idle, topics_of, sizes, record.protocol, record.record_time)) is not None:
        yield found


def idle_modern_members(state: GroupState, observation: GroupObservation) -> Iterator[Found]:
    """The same for a consumer group of KIP-848 that has reached its target.

    Args:
        state: The group's state, including this round.
        observation: The round.
    """
    group = state.modern.group
    if group is None or group.decided is None or group.group_type != CONSUMER or not group.members:
        return
    targets = newest_targets(group)
    topics_of = {}
    for member_id, member in group.members.items():
        topics = subscribed(group, member)
        if topics is None or member_id not in targets:
            return
        topics_of[member_id] = topics
    idle = [member_id for member_id in group.members if not any(numbers for _, numbers in targets[member_id])]
    sizes = {topic.topic: topic.partitions for topic in observation.topics}
    if (found := _idle(idle, topics_of, sizes, None, group.decided.record_time)) is not None:
        yield found


def _idle(
    idle: list[str],
    topics_of: Mapping[str, frozenset[str]],
    sizes: Mapping[str, int | None],
    strategy: str | None,
    since: int,
) -> Found | None:
    if not idle:
        return None
    reach = frozenset[str]().union(*(topics_of[member] for member in idle))
    if any(sizes.get(topic) is None for topic in reach):
        return None  # the finding `topic_not_visible` says so
    partitions = sum(sizes[topic] or 0 for topic in reach)
    sharing = sum(not reach.isdisjoint(topics) for topics in topics_of.values())
    few = partitions < sharing
    of = f"{partitions} {'partition' if partitions == 1 else 'partitions'} for {sharing} members"
    verb = "is" if partitions == 1 else "are"
    why = f"there {verb} {of}" if few else f"{strategy or 'the broker'} assigns {of} so"
    return Found("idle_members", since, f"{len(idle)} of {len(topics_of)} members own nothing, {why}: {some(idle)}")
