"""Share groups: a partition may have several members, and no member may be left without one.

The coordinator assigns only partitions whose state it has initialized, and notices that at the next heartbeat of a
member: 5 s by default, at most 15 s unless brokers allow more (`group.share.max.heartbeat.interval.ms`). Then the epoch
rises, and each member has its new target after its own next heartbeat.

A verdict says whether the target is what the broker's assignor gives (KIP-932).

The log has all of the coordinator's inputs: members, subscriptions, the previous target, and the partitions that the
assignor may assign, which are those whose state the group has initialized (type 15). It lacks the order of keys that
share a bucket of the coordinator's maps, as for consumer groups, and the broker's release.

`identical` is certain. A target that nothing fits is `unverified`, because brokers may have another assignor
(`group.share.assignors`), or be of 4.1, whose preview dealt otherwise. Several members of a partition are normal.
`drifted` is a partition whose member does not subscribe to its topic while others do: no release gives that. Where
subscriptions differ, and nobody subscribes to a topic any more or it was deleted, Kafka 4.2 and later leave its
partitions where they were.

Where the log is not read, coordinators tell which partitions are initialized by the time of a look, not at the target.
The assignor assigns each of those that its members subscribe to, so the target shows which it had, if all of them are
told as initialized.

Source of the rules: `GroupMetadataManager.maybeUpdateTargetAssignment` and `SimpleAssignor` (Kafka 4.2 to 4.4).
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Final

from assignors import imbalance
from assignors.brokers import ServerGroup, ServerTopic, known_share_strategies
from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, Ownership, idle_finding
from streaming.groups.modern.group import ModernDecision, ModernGroup, initialized, newest_targets
from streaming.groups.modern.left_out import left_out
from streaming.groups.modern.rules import (
    Names,
    TypeRules,
    before_target,
    group_asked,
    ownership_version,
    recompute_target,
    topic_names,
    unknown_inputs,
)
from streaming.groups.rows import DriftedPartition
from streaming.groups.state import GroupState
from streaming.groups.verdicts import Verdict
from streaming.records import SHARE, GroupObservation, each_of, holders

ERAS: Final = ("4.2.0",)
"""A release of each era of the assignor. Records of 4.0, early access, cannot be decoded."""


def recompute(state: GroupState, decision: ModernDecision, _context: Context) -> Verdict | str:
    """Recompute the target of a share group at the round after the decision; text if that is not possible."""
    early = "brokers before 4.2 (preview)"
    return recompute_target(decision, _asked_of(state, decision), known_share_strategies(), ERAS, early)


def _asked_of(state: GroupState, decision: ModernDecision) -> ServerGroup | str:
    """The assignor's input, or the reason why it is unknown."""
    unknown = unknown_inputs(decision)
    if unknown is not None:
        return unknown
    assignable = initialized(decision.topics)
    is_seen = decision.log_partition < 0
    if assignable is None or (is_seen and decision.topics is None):
        return "which partitions the group had initialized is not known"
    if is_seen:
        shown: dict[str, set[int]] = {}
        for topic_id, number in holders(decision.targets):
            shown.setdefault(topic_id, set()).add(number)
        others = [topic_id for topic_id, numbers in shown.items() if not numbers <= assignable.get(topic_id, set())]
        if others:
            return f"no round has shown all partitions of its target as initialized: topic {others[0]} has others"
        assignable = {topic_id: frozenset(numbers) for topic_id, numbers in shown.items()}
    topics: dict[str, ServerTopic] = {}
    for topic_id, name, _ in decision.topics.topics if decision.topics is not None else ():
        numbers = assignable.get(topic_id)
        if not numbers:
            continue
        if name in topics and topics[name].topic_id != topic_id:
            known = state.topics.get(name)
            if known is None or known.topic_id not in {topic_id, topics[name].topic_id}:
                return f"topic {name[:100]!r} was created again, and no round has shown its id"
            if known.topic_id != topic_id:
                continue
        topics[name] = ServerTopic(topic_id, max(numbers) + 1, tuple(sorted(numbers)))
    return group_asked(decision, topics)


def broken(state: GroupState, decision: ModernDecision) -> tuple[DriftedPartition, ...]:
    """Partitions of members that do not subscribe to their topic, while other members do.

    The newest round must show the topic: the coordinator takes nothing away of one that is deleted.
    """
    if not decision.exact or decision.group_epoch != decision.epoch:
        return ()
    now = state.clock.now
    names = {i: name for i, name in topic_names(state).items() if state.topics[name].counts[-1].last == now}
    subscriptions = {name: frozenset(decision.topics_of(name) or ()) for name in decision.subscriptions}
    wanted = frozenset[str]().union(*subscriptions.values())
    found = []
    for (topic_id, number), members in holders(decision.targets).items():
        topic = names.get(topic_id, "")
        wrong = tuple([name for name in members if topic in wanted and topic not in subscriptions.get(name, wanted)])
        if wrong:
            found.append(DriftedPartition(topic, number, "not_subscribed", None, wrong))
    return tuple(sorted(found, key=lambda one: (one.topic, one.partition)))


def moves_of_shares(decision: ModernDecision) -> int | None:
    """How many shares of partitions moved from one member to another; None if the target before is unknown.

    A share is a partition as one of its members has it. A partition that three members had and of which one is replaced
    counts once; one that only gets more members, or fewer, does not.
    """
    before = before_target(decision)
    if before is None:
        return None
    lost: Counter[tuple[str, int]] = Counter()
    gained: Counter[tuple[str, int]] = Counter()
    for member_id in before.keys() | decision.targets.keys():
        had = {(topic, number) for topic, numbers in before.get(member_id, {}).items() for number in numbers}
        has = set(each_of(decision.targets.get(member_id)))
        lost.update(had - has)
        gained.update(has - had)
    return (lost & gained).total()


def balance_of_shares(decision: ModernDecision, _names: Names) -> tuple[float | None, float | None]:
    """Imbalance of a target by the members' numbers of partitions, and the lowest possible with as many shares.

    Returns:
        (None, None) if nothing is assigned or members are missing. The second is also None if subscriptions differ:
        then each topic is balanced by itself.
    """
    if not decision.exact or decision.undescribed:
        return None, None
    counts = [len(set(each_of(target))) for target in decision.targets.values()]
    uneven = imbalance(counts)
    if uneven is None or len(set(decision.different_subscriptions())) > 1:
        return uneven, None
    mean = sum(counts) / len(counts)
    return uneven, ceil(mean) / mean - 1


_SETTLES_MS: Final = 45_000
"""Time in which a group notices what it has initialized: three of the longest heartbeat intervals."""


def _findings(
    state: GroupState, group: ModernGroup, observation: GroupObservation, context: Context
) -> list[FindingAtRound]:
    # Brokers before 4.1 do not tell what members subscribe to, nor does any without the right to describe the group.
    return left_out(state, group, observation, context.config, _initialized, _SETTLES_MS, asks_for_all=False)


def _idle(state: GroupState, group: ModernGroup, *_: object) -> list[FindingAtRound]:
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
    what = "own nothing, though several may share a partition"
    return idle_finding(idle, len(group.members), what, decided.record_time)


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
