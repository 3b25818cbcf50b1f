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

A verdict says whether the target is what the broker's assignor gives.

The log has most of the coordinator's inputs: members, subscriptions, the previous target. It lacks the broker's
release, the assignor if no member requests one, and, since Kafka 4.1, partition counts. So every possible assignor and
era is tried, with the counts that the target shows, if a round saw them; the assignors assign every partition.

`identical` is certain. A target that nothing fits proves nothing, because the operator may run a custom assignor, or a
release with a preview of the protocol (before 4.0), so it is `unverified`. The order of keys that share a bucket of the
coordinator's hash maps is not recorded; as many orders are tried as is cheap. A target is `drifted` only if it violates
an invariant: a partition with two members, or with a member that does not subscribe to its topic. The target of an
upgraded classic group was made by no assignor: the coordinator copies subscriptions and assignments, which a static
member's return may have made inconsistent.

Then the rows of `what_if`: what each of the broker's assignors would have given.

docs/verdicts.md explains the verdicts and their limits. Source of the rules: `GroupMetadataManager` (Kafka 4.x).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from assignors import Assignment, AssignorError, CannotTell, Group, Load, from_topics
from assignors.brokers import ServerGroup, ServerTopic, assign_on_server, known_server_strategies
from streaming.groups.context import Context, GroupConfig, of_decision
from streaming.groups.health.activity import idle_members
from streaming.groups.kind import FindingAtRound, Ownership, Owning
from streaming.groups.load.rates import known_load
from streaming.groups.modern.group import (
    ModernDecision,
    ModernGroup,
    newest_targets,
    owned_now,
    subscriptions_of,
)
from streaming.groups.modern.left_out import left_out
from streaming.groups.modern.rules import (
    PREFIX,
    TypeRules,
    before_target,
    group_asked,
    group_of_target,
    named,
    names_at,
    ownership_version,
    recompute_target,
    topic_names,
    unknown_inputs,
)
from streaming.groups.rows import DriftedPartition, WhatIfRow
from streaming.groups.state import GroupState, counts_from
from streaming.groups.verdict_inputs import ServerInputs
from streaming.groups.verdicts import (
    IDENTICAL,
    Expected,
    Judged,
    Verdict,
    drifted_between,
    why_not_shown,
)
from streaming.groups.what_if import Compared, what_if_rows
from streaming.records import CONSUMER, GroupObservation, count_of, counts_in, holders

ERAS: Final = ("4.0.0", "4.0.1")
"""First release of each era of the broker's assignors, oldest first (`assignors/brokers/registry.py`)."""

_EARLY = "brokers before 4.0 (preview)"


def recompute(state: GroupState, decision: ModernDecision, context: Context) -> Verdict | str:
    """Recompute the target of a consumer group at the round after the decision; text if that is not possible."""
    asked = _asked_of(state, decision, context.config)
    return recompute_target(decision, asked, known_server_strategies(), ERAS, _EARLY)


def _asked_of(state: GroupState, decision: ModernDecision, config: GroupConfig) -> ServerGroup | str:
    """The assignor's input for the target of a decision, or the reason why it is unknown.

    Args:
        state: The group's state, including the topics of the round after the decision.
        decision: A decision of a consumer group with members.
        config: Settings.
    """
    unknown = unknown_inputs(decision)
    if unknown is not None:
        return unknown
    ids = {name: topic_id for topic_id, name in names_at(state, decision).items()}
    counts_shown = counts_in(decision.targets.values())
    topics: dict[str, ServerTopic] = {}
    for name in sorted({name for listed in decision.different_subscriptions() for name in listed or ()}):
        known = state.topics.get(name)
        if name not in ids or known is None:
            return why_not_shown(name, config, "id")
        shown = counts_shown.get(ids[name], 0)
        seen = counts_from(known, decision.record_time - config.metadata_grace_ms)
        if shown not in seen:
            counts = ", ".join(map(str, sorted(seen)))
            return f"its target shows {shown} partitions of topic {name[:100]!r}, rounds have seen {counts}"
        if shown:
            topics[name] = ServerTopic(ids[name], shown)
    return group_asked(decision, topics)


def expected_by(state: GroupState, strategy: str, decision: ModernDecision, context: Context) -> Expected | str:
    """What another of the broker's assignors would have decided, or why nobody can tell."""
    name = f"{PREFIX}{strategy}"
    if name not in known_server_strategies():
        return f"strategy {strategy[:100]!r} is none of the broker's"
    asked = _asked_of(state, decision, context.config)
    names = names_at(state, decision)
    targets = named(decision.targets, names)
    if isinstance(asked, str) or targets is None:
        if isinstance(asked, str):
            return asked
        return "the topics of its target are not known"
    inputs = ServerInputs(name, asked, ERAS[-1])
    try:
        with of_decision():
            expected = assign_on_server(name, asked, ERAS[-1])
    except AssignorError as error:
        return str(error)[:200]
    by_name = {member: {names[i]: of for i, of in topics.items()} for member, topics in expected.items()}
    return Expected(drifted_between(by_name, from_topics(targets)), inputs)


def broken(state: GroupState, decision: ModernDecision) -> Iterator[DriftedPartition]:
    """Partitions with two members, or with one that does not subscribe to their topic."""
    if not decision.exact:
        return
    names = names_at(state, decision)
    current = decision.group_epoch == decision.epoch and not decision.carried_over
    sets = {listed: frozenset(listed) for listed in decision.different_subscriptions() if listed is not None}
    subscriptions: dict[str, frozenset[str] | None] = {}
    for member_id in decision.subscriptions:
        listed = decision.topics_of(member_id)
        subscriptions[member_id] = None if listed is None else sets[listed]
    for (topic_id, number), members in sorted(holders(decision.targets).items()):
        topic = names.get(topic_id, topic_id)
        if len(members) > 1:
            yield DriftedPartition(topic, number, "doubly_assigned", None, tuple(members))
        elif current and topic_id in names:
            subscription = subscriptions.get(members[0])
            if subscription is not None and topic not in subscription:
                yield DriftedPartition(topic, number, "not_subscribed", None, tuple(members))


_NAMES = tuple([name.removeprefix(PREFIX) for name in known_server_strategies()])


def modern_what_if_rows(
    state: GroupState,
    observation: GroupObservation,
    config: GroupConfig,
    decision: ModernDecision,
    judged: Judged,
    verdict: Verdict,
    crowded: bool,
) -> list[WhatIfRow]:
    """Write the rows of one decision: one for each built-in assignor, and for any other that members request.

    The arguments are those of `classic_what_if_rows`. Share groups, streams groups and empty groups get no rows.
    """
    strategies = {name: _asks(name, decision) for name in (*_NAMES, *decision.assignors)}
    size = sum(map(count_of, decision.targets.values())), len(decision.members)
    compared = partial(_compared, state, decision, verdict, config)
    return what_if_rows(judged, observation, config, strategies, size, compared, crowded=crowded)


def _asks(name: str, decision: ModernDecision) -> bool | None:
    """Whether members request this assignor; None if they request none, or several."""
    if len(decision.assignors) == 1:
        return name in decision.assignors
    return None


def _compared(state: GroupState, decision: ModernDecision, verdict: Verdict, config: GroupConfig) -> Compared | str:
    asked = _asked_of(state, decision, config)
    if isinstance(asked, str):
        return asked
    names = names_at(state, decision)
    group = group_of_target(decision, names)
    had = before_target(decision)
    if group is None or had is None:
        return "the topics of its target are not known, or have no such partitions"
    # Keys that share a bucket of the coordinator's maps have the order in which the verdict has found the target.
    ordered = verdict.inputs.group if isinstance(verdict.inputs, ServerInputs) else asked

    def gives(name: str) -> tuple[str | None, Assignment]:
        if _asks(name, decision) and verdict.on_running == IDENTICAL:
            return verdict.library, from_topics(decision.targets)
        if name not in _NAMES:
            reason = f"assignor {name[:100]!r} is not known"
            raise CannotTell(reason)
        return f"broker:{ERAS[-1]}", assign_on_server(f"{PREFIX}{name}", ordered, ERAS[-1])

    return Compared(group, had, _load(state, group, names), gives)


def _load(state: GroupState, group: Group, names: Mapping[str, str]) -> Load | None:
    """As `known_load`, by topic id."""
    counts = group.partitions_per_topic
    if not counts.keys() <= names.keys():
        return None
    load = known_load(state.load, {names[topic_id]: count for topic_id, count in counts.items()})
    if load is None:
        return None
    return {topic_id: load[names[topic_id]] for topic_id in counts}


def _findings(
    state: GroupState, group: ModernGroup, observation: GroupObservation, context: Context
) -> list[FindingAtRound]:
    timeout = max(member.rebalance_timeout for member in group.members.values())
    return left_out(state, group, observation, context.config, _known, timeout, asks_for_all=True)


def _idle(
    _state: GroupState, group: ModernGroup, observation: GroupObservation, owners: Ownership
) -> list[FindingAtRound]:
    """Members that own nothing."""
    if group.decided is None or group.epoch > group.decided.epoch:
        return []  # the next target is being made
    return idle_members(owners, observation, None, group.decided.record_time)


def _known(group: ModernGroup) -> dict[str, int]:
    """How many partitions of each topic id the coordinator certainly knew when it made the target."""
    shown = counts_in(newest_targets(group).values())
    recorded = {
        topic_id: count or 0 for topic_id, _, count in (group.topics.topics if group.topics is not None else ())
    }
    return {topic_id: max(recorded.get(topic_id, 0), shown.get(topic_id, 0)) for topic_id in recorded | shown}


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
