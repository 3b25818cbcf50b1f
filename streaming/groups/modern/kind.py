"""Groups that the broker assigns as one kind: each type of them brings its rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, Kind, LagRules, Ownership, found_before, some, unexplained
from streaming.groups.modern.decisions import follow, pass_over
from streaming.groups.modern.group import ModernGroup, behind
from streaming.groups.modern.members import close_modern_members, standing_modern_members, write_modern_members
from streaming.groups.modern.rules import RulesByType, TypeRules
from streaming.groups.modern.verdicts import (
    judge_modern_again,
    modern_membership,
    was_met_empty,
    write_modern_verdicts,
)
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, ModernInput, UnreadableModern


def modern_kind(*types: TypeRules) -> Kind:
    """Groups whose members' targets the broker computes, of these types."""
    rules: RulesByType = {one.group_type: one for one in types}

    def with_rules(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: function(*given, rules)

    def owners(state: GroupState) -> Ownership:
        group = state.modern.group
        if group is None or not group.members:
            return Ownership()
        return rules[group.group_type].owners(state, group)

    def findings(state: GroupState, observation: GroupObservation, context: Context) -> list[FindingAtRound]:
        group, found = state.modern.group, list[FindingAtRound]()
        # Where compaction may have removed the end of a member, a target must show first who is still there.
        if group is not None and group.members and group.exact:
            found = _of_members(state, group, observation, context, rules[group.group_type])
        return [*found, *unexplained(state.modern.verdict, state.clock.now)]

    def lag_rules(observation: GroupObservation) -> LagRules:
        of_type = rules.get(observation.group_type or "")
        return LagRules(empty_counts=of_type is not None and of_type.empty_counts)

    return Kind(
        records={**dict.fromkeys(get_args(ModernInput), with_rules(follow)), UnreadableModern: pass_over},
        lives=lambda state: state.modern.lives,
        write_verdicts=with_rules(_write_verdicts),
        judge_again=with_rules(judge_modern_again),
        owners=owners,
        standing_members=with_rules(standing_modern_members),
        membership=with_rules(modern_membership),
        findings=findings,
        end=with_rules(_end),
        lag_rules=lag_rules,
    )


def _of_members(
    state: GroupState, group: ModernGroup, observation: GroupObservation, context: Context, of_type: TypeRules
) -> list[FindingAtRound]:
    found, late = of_type.findings(state, group, observation, context), behind(group, of_type.stable)
    if not late and not found:
        found = of_type.idle(state, group, observation)
    if observation.held_since is not None:
        found = found_before(found, state.findings)
    if group.decided is not None and late:
        epoch = group.decided.epoch
        detail = f"{len(late)} of {len(group.members)} members have not reached epoch {epoch}: {some(late)}"
        found.append(FindingAtRound("reconciling", group.decided.record_time, detail))
    return found


def _write_verdicts(state: GroupState, observation: GroupObservation, context: Context, rules: RulesByType) -> None:
    write_modern_members(state, context, rules)
    if was_met_empty(state):
        close_modern_members(state, observation.log_position, observation.time, context)
    write_modern_verdicts(state, observation, context, rules)


def _end(state: GroupState, observation: GroupObservation, context: Context, rules: RulesByType) -> None:
    write_modern_members(state, context, rules)
    write_modern_verdicts(state, observation, context, rules)
    close_modern_members(state, observation.log_position, observation.time, context)
