"""Groups that the broker assigns as one kind: each type of them brings its rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, Kind, LagRules, Ownership, unexplained
from streaming.groups.modern.decisions import follow, pass_over
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
        return rules[group.group_type].owners(state)

    def findings(state: GroupState, observation: GroupObservation, context: Context) -> list[FindingAtRound]:
        group = state.modern.group
        found = rules[group.group_type].findings(state, observation, context) if group is not None else []
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


def _write_verdicts(state: GroupState, observation: GroupObservation, context: Context, rules: RulesByType) -> None:
    write_modern_members(state, context, rules)
    if was_met_empty(state):
        close_modern_members(state, observation.log_position, observation.time, context)
    write_modern_verdicts(state, observation, context, rules)


def _end(state: GroupState, observation: GroupObservation, context: Context, rules: RulesByType) -> None:
    write_modern_members(state, context, rules)
    write_modern_verdicts(state, observation, context, rules)
    close_modern_members(state, observation.log_position, observation.time, context)
