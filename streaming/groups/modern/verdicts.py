"""Verdicts on groups assigned by the broker (KIP-848): is the target what its assignor gives?

The verdict is about the target, not about what members own now, which trails behind it. The log has most of the
coordinator's inputs: members, subscriptions, the previous target. It lacks the broker's release, the assignor if no
member requests one, and, since Kafka 4.1, partition counts. So every possible assignor and era is tried, with the
counts that the target shows, if a round saw them; the assignors assign every partition.

`identical` is certain. A target that nothing fits proves nothing, because the operator may run a custom assignor, so it
is `unverified`. The order of keys that share a bucket of the coordinator's hash maps is not recorded; as many orders
are tried as is cheap. A target is `drifted` only if it violates an invariant: a partition with two members, or with a
member that does not subscribe to its topic. The target of an upgraded classic group was made by no assignor: the
coordinator copies subscriptions and assignments, which a static member's return may have made inconsistent.

Then the rows of `what_if`: what each of the broker's assignors would have given.

docs/verdicts.md explains the verdicts and their limits. Source of the rules: `GroupMetadataManager` (Kafka 4.x).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from assignors import Assignment, AssignorError, CannotTell, Group, Load, from_topics
from assignors.brokers import ServerGroup, assign_on_server, known_server_strategies
from assignors.measures import bounds_of
from streaming.groups.context import Context, GroupConfig, of_decision, of_record
from streaming.groups.kind import Membership
from streaming.groups.load.rates import known_load
from streaming.groups.modern.group import ModernDecision, asked_assignors, state_of
from streaming.groups.modern.members import as_it_is, columns_of, named, names_at
from streaming.groups.modern.recompute import (
    ERAS,
    PREFIX,
    asked_of,
    balance_of_target,
    before_target,
    group_of_target,
    recompute_target,
)
from streaming.groups.rows import DriftedPartition, WhatIfRow
from streaming.groups.state import GroupState
from streaming.groups.verdict_inputs import ServerInputs
from streaming.groups.verdicts import (
    DRIFTED,
    IDENTICAL,
    INVARIANT,
    NOT_APPLICABLE,
    PENDING,
    UNVERIFIED,
    Expected,
    Judged,
    StandingVerdict,
    Verdict,
    against_configured,
    drift_row,
    drifted_between,
    standing,
    write_verdicts,
)
from streaming.groups.what_if import CROWDED, Compared, RowOf, too_large, what_if_rows
from streaming.records import CONSUMER, SHARE, STREAMS, GroupObservation


def write_modern_verdicts(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Judge the decisions since the last round; the state must include this round's topics."""
    modern = state.modern
    if not modern.waiting:
        return  # as at almost every round
    verdicts = write_verdicts(modern.waiting, _Modern(state, observation, context), observation, context)
    newest = modern.waiting[-1]
    modern.waiting = []
    if newest.incarnation != modern.incarnation:
        return  # that group has ended, and the present one has not decided yet
    modern.verdict = standing(verdicts) or modern.verdict
    now = None if newest.exact else as_it_is(state, newest)
    if now is not None and now.group_epoch == now.epoch:
        # No newer target is being written, so the current targets are the newest one and complete.
        newest = msgspec.structs.replace(now, exact=True)
    with of_record(0):
        modern.balance = balance_of_target(newest, names_at(state, newest))


def judge_modern_again(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Judge the newest decision, if it is judged, once more: the settings say something else of the group now.

    Its verdict on the strategy that runs stays as it was. The target before it is no longer known.
    """
    modern = state.modern
    now = as_it_is(state, modern.shown) if modern.shown is not None else None
    if modern.verdict is None or modern.waiting or now is None:
        return
    was, kind = modern.verdict, _Modern(state, observation, context)
    own = Verdict(was.verdict, was.reason, was.basis) if was.own is None else Verdict(was.own)
    verdict = against_configured(kind, now, own, observation.configured)
    context.rows.drift.append(drift_row(kind.judged_of(now), verdict, observation))
    modern.verdict = standing([verdict])


@dataclass(frozen=True, slots=True)
class _Modern:
    state: GroupState
    observation: GroupObservation
    context: Context

    def judge(self, decision: ModernDecision, *, later_is_judged: bool) -> Verdict:  # noqa: ARG002  # none waits
        return _judge(self.state, decision, self.context.config)

    def judged_of(self, decision: ModernDecision) -> Judged:
        return Judged(columns_of(decision, decision.incarnation, self.context), assignor_of(decision.assignors))

    def expected_by(self, strategy: str, decision: ModernDecision, verdict: Verdict) -> Expected | str:  # noqa: ARG002
        name = f"{PREFIX}{strategy}"
        if name not in known_server_strategies():
            return f"strategy {strategy[:100]!r} is none of the broker's"
        asked = asked_of(self.state, decision, self.context.config)
        names = names_at(self.state, decision)
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

    def what_if(self, decision: ModernDecision, judged: Judged, verdict: Verdict, *, crowded: bool) -> list[WhatIfRow]:
        config = self.context.config
        return modern_what_if_rows(self.state, decision, judged, verdict, self.observation, config, crowded=crowded)


def assignor_of(assignors: tuple[str, ...]) -> str | None:
    """The server assignor that members request; None if it is the broker's default, or if it is ambiguous."""
    if len(assignors) == 1:
        return assignors[0]
    return None


def no_verdict_on(group_type: str) -> str:
    """Why share and streams groups get no verdict."""
    return f"assignments of {group_type} groups are shown, not recomputed"


def _judge(state: GroupState, decision: ModernDecision, config: GroupConfig) -> Verdict:
    """Judge one decision at the round after it."""
    if decision.became_empty:
        return Verdict(NOT_APPLICABLE, "the group is empty")
    if decision.group_type != CONSUMER:
        return Verdict(NOT_APPLICABLE, no_verdict_on(decision.group_type))
    if state.modern.unreadable:
        return Verdict(UNVERIFIED, unreadable_since(state.modern.unreadable))
    names = names_at(state, decision)
    broken = _broken(decision, names)
    if broken:
        return Verdict(DRIFTED, "it violates the invariants of every assignor", basis=INVARIANT, drifted=broken)
    asked = asked_of(state, decision, config)
    if isinstance(asked, str):
        return Verdict(UNVERIFIED, asked)
    return recompute_target(decision, asked)


def unreadable_since(unreadable: Mapping[str, int]) -> str:
    """Why nothing is said of a group with records that cannot be decoded."""
    first = min(unreadable.values())
    return (
        f"the record at offset {first} cannot be read (see quarantine): the group's members and targets are not known"
    )


def _broken(decision: ModernDecision, names: dict[str, str]) -> tuple[DriftedPartition, ...]:
    """Partitions with two members, or with one that does not subscribe to their topic."""
    if not decision.exact:
        return ()
    owners: dict[tuple[str, int], list[str]] = {}
    for member_id, target in decision.targets.items():
        for topic_id, numbers in target:
            for number in numbers:
                owners.setdefault((topic_id, number), []).append(member_id)
    found = []
    current = decision.group_epoch == decision.epoch and not decision.carried_over
    sets = {listed: frozenset(listed) for listed in decision.different_subscriptions() if listed is not None}
    subscriptions: dict[str, frozenset[str] | None] = {}
    for member_id in decision.subscriptions:
        listed = decision.topics_of(member_id)
        subscriptions[member_id] = None if listed is None else sets[listed]
    for (topic_id, number), members in sorted(owners.items()):
        topic = names.get(topic_id, topic_id)
        if len(members) > 1:
            found.append(DriftedPartition(topic, number, "doubly_assigned", None, tuple(members)))
        elif current and topic_id in names:
            subscription = subscriptions.get(members[0])
            if subscription is not None and topic not in subscription:
                found.append(DriftedPartition(topic, number, "not_subscribed", None, tuple(members)))
    return tuple(found)


def was_met_empty(state: GroupState) -> bool:
    """Whether a modern group was already empty when its first records were read."""
    group = state.modern.group
    return group is not None and not group.members and group.epoch > (state.modern.epoch or -1)


def modern_membership(state: GroupState, observation: GroupObservation) -> Membership:
    """The membership of a consumer, share or streams group; only its verdict if no record of it was read."""
    modern, verdict = state.modern, modern_verdict(state, observation)
    group = modern.group
    if group is None:
        return Membership("Unknown", verdict, protocol_type=observation.protocol_type)
    owned = {(t, p) for current in group.currents.values() for t, numbers in current.partitions for p in numbers}
    empty = was_met_empty(state)  # an empty group has no target
    decided = group.decided
    assignors = asked_assignors(group)
    if decided is not None and decided.seen_assignor is not None:
        assignors = (decided.seen_assignor,) if group.members else ()
    return Membership(
        state_of(group),
        verdict,
        protocol_type=observation.protocol_type,
        strategy=assignor_of(assignors),
        incarnation=modern.incarnation,
        generation=group.epoch if empty else modern.epoch,
        decided=group.decided.record_time if group.decided is not None else None,
        members=len(group.members),
        assigned=len(owned),
        balance=(None, None) if empty or modern.balance is None or not state.members_known else modern.balance,
    )


def modern_verdict(state: GroupState, observation: GroupObservation) -> StandingVerdict:
    """The verdict on the newest decision, or why there is none."""
    modern = state.modern
    kind = modern.group.group_type if modern.group is not None else observation.group_type
    if kind in {SHARE, STREAMS}:
        return StandingVerdict(NOT_APPLICABLE, no_verdict_on(kind), 0)
    if modern.unreadable:
        return StandingVerdict(UNVERIFIED, unreadable_since(modern.unreadable), 0)
    if was_met_empty(state):
        return StandingVerdict(NOT_APPLICABLE, "the group is empty", 0)
    return modern.verdict or StandingVerdict(PENDING, "no target assignment of the group has been read yet", 0)


_NAMES = tuple([name.removeprefix(PREFIX) for name in known_server_strategies()])


def modern_what_if_rows(
    state: GroupState,
    decision: ModernDecision,
    judged: Judged,
    verdict: Verdict,
    observation: GroupObservation,
    config: GroupConfig,
    *,
    crowded: bool,
) -> list[WhatIfRow]:
    """Write the rows of one decision: one for each built-in assignor, and for any other that members request.

    The arguments are those of `classic_what_if_rows`. Share groups, streams groups and empty groups get no rows.
    """
    if not config.what_if_max_size or verdict.verdict == NOT_APPLICABLE:
        return []
    partitions = sum(len(numbers) for target in decision.targets.values() for _, numbers in target)

    def tried(row_of: RowOf) -> list[WhatIfRow] | str:
        why_not = CROWDED if crowded else too_large(partitions, len(decision.members), config)
        asked = asked_of(state, decision, config) if why_not is None else why_not
        if isinstance(asked, str):
            return asked
        return _rows(state, decision, verdict, asked, row_of)

    return what_if_rows(judged, observation, {name: _asks(name, decision) for name in _names(decision)}, tried)


def _names(decision: ModernDecision) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_NAMES, *decision.assignors)))


def _asks(name: str, decision: ModernDecision) -> bool | None:
    """Whether members request this assignor; None if they request none, or several."""
    if len(decision.assignors) == 1:
        return name in decision.assignors
    return None


def _rows(
    state: GroupState,
    decision: ModernDecision,
    verdict: Verdict,
    asked: ServerGroup,
    row_of: RowOf,
) -> list[WhatIfRow] | str:
    """The rows, or why there are none."""
    names = names_at(state, decision)
    group = group_of_target(decision, names)
    had = before_target(decision)
    if group is None or had is None:
        return "the topics of its target are not known, or have no such partitions"
    target = from_topics(decision.targets)
    # Keys that share a bucket of the coordinator's maps have the order in which the verdict has found the target.
    ordered = verdict.inputs.group if isinstance(verdict.inputs, ServerInputs) else asked
    compared = Compared(group, had, True, bounds_of(group, had), _load(state, group, names))
    rows = []
    for name in _names(decision):
        runs = _asks(name, decision)
        library = verdict.library
        answer: Assignment | AssignorError = target
        if not (runs and verdict.on_running == IDENTICAL):
            library = f"broker:{ERAS[-1]}" if name in _NAMES else None
            answer = _answer(name, ordered)
        rows.append(compared.filled(row_of(name, runs=runs, library=library), answer))
    return rows


def _load(state: GroupState, group: Group, names: Mapping[str, str]) -> Load | None:
    """As `known_load`, by topic id."""
    counts = group.partitions_per_topic
    if not counts.keys() <= names.keys():
        return None
    load = known_load(state.load, {names[topic_id]: count for topic_id, count in counts.items()})
    if load is None:
        return None
    return {topic_id: load[names[topic_id]] for topic_id in counts}


def _answer(name: str, asked: ServerGroup) -> Assignment | AssignorError:
    if name not in _NAMES:
        return CannotTell(f"assignor {name[:100]!r} is not known")
    try:
        return assign_on_server(f"{PREFIX}{name}", asked, ERAS[-1])
    except AssignorError as error:
        return error
