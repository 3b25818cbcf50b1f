"""Groups that the broker assigns as one kind: the steps that all types of them share, by the rules that each brings.

A verdict is about the target, not about what members own now, which trails behind it. Each type judges its decisions by
its own rules (`rules.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, get_args

import msgspec

from streaming.groups.context import Context, GroupConfig, of_record
from streaming.groups.kind import (
    USUAL,
    FindingAtRound,
    Kind,
    LagRules,
    Membership,
    Ownership,
    found_before,
    some,
    unexplained,
)
from streaming.groups.modern.decisions import follow, pass_over
from streaming.groups.modern.group import ModernDecision, asked_assignors, assignor_of, behind
from streaming.groups.modern.members import (
    as_it_is,
    close_modern_members,
    columns_of,
    standing_modern_members,
    write_modern_members,
)
from streaming.groups.modern.rules import names_at
from streaming.groups.modern.types import TYPES
from streaming.groups.rows import WhatIfRow
from streaming.groups.state import GroupState
from streaming.groups.verdicts import (
    DRIFTED,
    INVARIANT,
    NOT_APPLICABLE,
    PENDING,
    UNVERIFIED,
    Expected,
    Judged,
    Judging,
    StandingVerdict,
    Verdict,
    against_configured,
    drift_row,
    standing,
    write_verdicts,
)
from streaming.records import CONSUMER, GroupObservation, ModernInput, UnreadableModern, each_of


def write_modern_verdicts(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Judge the decisions since the last round; the state must include this round's topics."""
    modern = state.modern
    if not modern.waiting:
        return  # as at almost every round
    judging = Judging(
        partial(_judge, state, context),
        _judged_of,
        partial(_expected_by, state, context),
        partial(_what_if, state, observation, context.config),
    )
    verdicts = write_verdicts(modern.waiting, judging, observation, context)
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
        modern.balance = TYPES[newest.group_type].balance(newest, names_at(state, newest))


def judge_modern_again(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Judge the newest decision, if it is judged, once more: the settings say something else of the group now.

    Its verdict on the strategy that runs stays as it was. The target before it is no longer known.
    """
    modern = state.modern
    now = as_it_is(state, modern.shown) if modern.shown is not None else None
    if modern.verdict is None or modern.waiting or now is None:
        return
    was = modern.verdict
    own = Verdict(was.verdict, was.reason, was.basis) if was.own is None else Verdict(was.own)
    judged = _judged_of(now, context)
    expected_by = partial(_expected_by, state, context, now, own)
    verdict = against_configured(own, observation.configured_strategy, judged.strategy, expected_by)
    context.rows.drift.append(drift_row(judged, verdict, observation))
    modern.verdict = standing([verdict])


def _judge(state: GroupState, context: Context, decision: ModernDecision, _later_is_judged: bool) -> Verdict:
    if decision.became_empty:
        return Verdict(NOT_APPLICABLE, "the group is empty")
    if state.modern.unreadable:
        return Verdict(UNVERIFIED, unreadable_since(state.modern.unreadable))
    of_type = TYPES[decision.group_type]
    broken = tuple(of_type.broken(state, decision))
    if broken:
        return Verdict(DRIFTED, "it violates the invariants of every assignor", basis=INVARIANT, drifted=broken)
    found = of_type.recompute(state, decision, context)
    if isinstance(found, str):
        return Verdict(UNVERIFIED, found)
    return found


def _judged_of(decision: ModernDecision, context: Context) -> Judged:
    return Judged(columns_of(decision, decision.incarnation, context), assignor_of(decision.assignors))


def _expected_by(
    state: GroupState, context: Context, decision: ModernDecision, _own: Verdict, strategy: str
) -> Expected | str:
    return TYPES[decision.group_type].expected_by(state, strategy, decision, context)


def _what_if(
    state: GroupState,
    observation: GroupObservation,
    config: GroupConfig,
    decision: ModernDecision,
    judged: Judged,
    verdict: Verdict,
    crowded: bool,
) -> list[WhatIfRow]:
    return TYPES[decision.group_type].what_if(state, observation, config, decision, judged, verdict, crowded)


def unreadable_since(unreadable: Mapping[str, int]) -> str:
    """Why nothing is said of a group with records that cannot be decoded."""
    first = min(unreadable.values())
    return (
        f"the record at offset {first} cannot be read (see quarantine): the group's members and targets are not known"
    )


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
    owned = {place for current in group.currents.values() for place in each_of(current.partitions)}
    empty = was_met_empty(state)  # an empty group has no target
    decided = group.decided
    assignors = asked_assignors(group)
    last = decided.record_time if decided is not None else None
    if modern.shown is not None and modern.shown.became_empty:
        last = modern.shown.record_time  # no target follows
    if decided is not None and decided.seen_assignor:
        assignors = (decided.seen_assignor,) if group.members else ()
    return Membership(
        TYPES[group.group_type].state(group) if group.members else "Empty",
        verdict,
        protocol_type=observation.protocol_type,
        strategy=assignor_of(assignors),
        incarnation=modern.incarnation,
        generation=group.epoch if empty else modern.epoch,
        decided=last,
        members=len(group.members),
        assigned=len(owned),
        balance=(None, None) if empty or modern.balance is None or not state.members_known else modern.balance,
    )


def modern_verdict(state: GroupState, observation: GroupObservation) -> StandingVerdict:
    """The verdict on the newest decision, or why there is none."""
    modern = state.modern
    untold = observation.seen is not None and not observation.seen.looked
    if modern.group is None and observation.group_type != CONSUMER and untold:
        why = (
            f"no round could see who has what: for {observation.group_type} groups that takes brokers since 4.1 "
            "that do not fail at it, and the right Describe on the group and on its topics"
        )
        return StandingVerdict(NOT_APPLICABLE, why, 0)
    if modern.unreadable:
        return StandingVerdict(UNVERIFIED, unreadable_since(modern.unreadable), 0)
    if was_met_empty(state):
        return StandingVerdict(NOT_APPLICABLE, "the group is empty", 0)
    return modern.verdict or StandingVerdict(PENDING, "no target assignment of the group has been read yet", 0)


def _owners(state: GroupState) -> Ownership:
    group = state.modern.group
    if group is None or not group.members:
        return Ownership()
    return TYPES[group.group_type].owners(state, group)


def _findings(
    state: GroupState, observation: GroupObservation, context: Context, owners: Ownership
) -> list[FindingAtRound]:
    group, found = state.modern.group, list[FindingAtRound]()
    # Where compaction may have removed the end of a member, a target must show first who is still there.
    if group is not None and group.members and group.exact:
        of_type = TYPES[group.group_type]
        found, late = of_type.findings(state, group, observation, context), behind(group, of_type.stable)
        if not late and not found:
            found = of_type.idle(state, group, observation, owners)
        if observation.held_since is not None:
            found = found_before(found, state.findings)
        if group.decided is not None and late:
            epoch = group.decided.epoch
            detail = f"{len(late)} of {len(group.members)} members have not reached epoch {epoch}: {some(late)}"
            found.append(FindingAtRound("reconciling", group.decided.record_time, detail))
    return [*found, *unexplained(state.modern.verdict, state.clock.now)]


def _lag_rules(observation: GroupObservation) -> LagRules:
    of_type = TYPES.get(observation.group_type or "")
    if of_type is None:
        return USUAL
    return LagRules(empty_counts=of_type.empty_counts)


def _write_verdicts(state: GroupState, observation: GroupObservation, context: Context) -> None:
    write_modern_members(state, context)
    if was_met_empty(state):
        close_modern_members(state, observation.log_position, observation.time, context)
    write_modern_verdicts(state, observation, context)


def _end(state: GroupState, observation: GroupObservation, context: Context) -> None:
    write_modern_members(state, context)
    write_modern_verdicts(state, observation, context)
    close_modern_members(state, observation.log_position, observation.time, context)


MODERN_GROUPS: Final = Kind(
    records={**dict.fromkeys(get_args(ModernInput), follow), UnreadableModern: pass_over},
    lives=lambda state: state.modern.lives,
    write_verdicts=_write_verdicts,
    judge_again=judge_modern_again,
    owners=_owners,
    standing_members=standing_modern_members,
    membership=modern_membership,
    findings=_findings,
    end=_end,
    lag_rules=_lag_rules,
)
"""Groups whose members' targets the broker computes."""
