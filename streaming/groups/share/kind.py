"""Share groups: a partition may have several members, and no member may be left without one.

The coordinator assigns only partitions whose state it has initialized, and notices that at the next heartbeat of a
member: 5 s by default, at most 15 s unless brokers allow more (`group.share.max.heartbeat.interval.ms`). Then the epoch
rises, and each member has its new target after its own next heartbeat.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, Ownership, some
from streaming.groups.modern.group import ModernGroup, holders, initialized, newest_targets
from streaming.groups.modern.left_out import left_out
from streaming.groups.modern.members import ownership_version
from streaming.groups.modern.rules import TypeRules
from streaming.groups.share.verdicts import balance_of_shares, broken, moves_of_shares, recompute
from streaming.groups.state import GroupState
from streaming.records import SHARE, GroupObservation

_SETTLES_MS: Final = 45_000
"""Time in which a group notices what it has initialized: three of the longest heartbeat intervals."""


def _findings(
    state: GroupState, group: ModernGroup, observation: GroupObservation, context: Context
) -> list[FindingAtRound]:
    config, assigned = context.config, _assigned(group)
    # Brokers before 4.1 do not tell what members subscribe to, nor does any without the right to describe the group.
    return left_out(state, group, observation, config, assigned, _initialized, _SETTLES_MS, asks_for_all=False)


def _idle(state: GroupState, group: ModernGroup, _observation: GroupObservation) -> list[FindingAtRound]:
    """Members without a partition, though partitions of their topics are initialized: each should have one."""
    decided, topics = group.decided, group.topics
    if decided is None or topics is None or group.epoch > decided.epoch:
        return []
    if state.clock.passed - max(decided.record_time, topics.record_time) <= _SETTLES_MS:
        return []
    counts = _initialized(group)
    ready = {name for topic_id, name, _ in topics.topics if topic_id in counts}
    owning = {name for name, target in newest_targets(group).items() if any(numbers for _, numbers in target)}
    idle = [
        name for name, member in group.members.items() if name not in owning and not ready.isdisjoint(member.topics)
    ]
    if not idle:
        return []
    detail = (
        f"{len(idle)} of {len(group.members)} members own nothing, though several may share a partition: {some(idle)}"
    )
    return [FindingAtRound("idle_members", decided.record_time, detail)]


def _assigned(group: ModernGroup) -> Counter[str]:
    """How many partitions of each topic id have a member."""
    targets = {name: target.partitions for name, target in group.targets.items() if name in group.members}
    return Counter(topic_id for topic_id, _ in holders(targets))


def _initialized(group: ModernGroup) -> dict[str, int]:
    """How many partitions of each topic id the group has initialized."""
    return {topic_id: len(numbers) for topic_id, numbers in (initialized(group.topics) or {}).items()}


SHARE_GROUPS: Final = TypeRules(
    group_type=SHARE,
    broken=broken,
    recompute=recompute,
    findings=_findings,
    idle=_idle,
    # Nobody: a partition may have several members.
    owners=lambda _state, group: Ownership((), ownership_version(group)),
    moves=moves_of_shares,
    least_moves=lambda _decision, _names: None,
    balance=balance_of_shares,
    state=lambda _group: "Stable",
)
"""Share groups as the core judges them."""
