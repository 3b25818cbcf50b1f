"""What differs between the types of groups that the broker assigns, as a value of each type's room.

`modern/` has what they share: their records, decisions, members and churn. `consumer/`, `share/` and `streams/` say how
the decisions of one type are judged and measured, who owns what, and what may be wrong with its members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, Ownership
from streaming.groups.modern.group import STABLE, ModernDecision, ModernGroup, state_of, subscribing
from streaming.groups.modern.measures import balance_of_target, least_moves_of_target, moves_of_target
from streaming.groups.rows import DriftedPartition, TopicAssignment, WhatIfRow
from streaming.groups.state import GroupState
from streaming.groups.verdicts import Expected, Judged, Verdict
from streaming.records import GroupObservation, IdPartitions

Names = Mapping[str, str]
"""Topic names by topic id, as far as they are known."""


def by_topic_name(
    _state: GroupState, _decision: ModernDecision, target: IdPartitions, names: Names
) -> Sequence[TopicAssignment] | str:
    """A target by topic name, or which topic has none."""
    unnamed = sorted({topic_id for topic_id, _ in target if topic_id not in names})
    if unnamed:
        return f"no round has named the topic with id {unnamed[0]}"
    return [TopicAssignment(names[topic_id], numbers) for topic_id, numbers in target]


@dataclass(frozen=True, slots=True)
class TypeRules:
    """The rules of one type of group.

    Attributes:
        group_type: As in the records.
        broken: Partitions, or tasks, that no assignor gives in this way, in a group whose records could all be decoded.
        recompute: The verdict on a decision in which nothing is broken, or why what its assignor was given is unknown.
        findings: Findings about what the members of a group were given, at a round.
        idle: The finding `idle_members` of a group that has settled.
        owners: Who owns what now, in a group with members.
        named_target: A member's target as its row shows it, or why it cannot be shown.
        moves: How many partitions, or tasks, a decision moves between members; None if unknown.
        least_moves: The fewest moves after which the group could have been balanced; None if unknown.
        balance: Imbalance of a decision's target, and the lowest possible; each None if unknown.
        expected_by: What another strategy of the broker would have decided, or why nobody can tell.
        what_if: What each strategy that brokers have for this type would have given.
        stable: The number by which its records say that a member owns its target.
        state: The state of a group with members in Kafka's words.
        subscribing: The decision, with what the members of the group subscribe to now, and their tasks if they have
            some.
        rebalance_protocol: As in `rebalance_churn`, where each partition has one owner and the records show when it
            goes to the next; None otherwise.
        empty_counts: As in `LagRules`.
    """

    group_type: str
    broken: Callable[[GroupState, ModernDecision], Iterable[DriftedPartition]]
    recompute: Callable[[GroupState, ModernDecision, Context], Verdict | str]
    findings: Callable[[GroupState, ModernGroup, GroupObservation, Context], list[FindingAtRound]]
    idle: Callable[[GroupState, ModernGroup, GroupObservation], list[FindingAtRound]]
    owners: Callable[[GroupState, ModernGroup], Ownership]
    named_target: Callable[[GroupState, ModernDecision, IdPartitions, Names], Sequence[TopicAssignment] | str] = (
        by_topic_name
    )
    moves: Callable[[ModernDecision], int | None] = moves_of_target
    least_moves: Callable[[ModernDecision, Names], int | None] = least_moves_of_target
    balance: Callable[[ModernDecision, Names], tuple[float | None, float | None]] = balance_of_target
    expected_by: Callable[[GroupState, str, ModernDecision, Context], Expected | str] = (
        lambda _state, strategy, _decision, _context: f"strategy {strategy[:100]!r} is none of the broker's"
    )
    what_if: Callable[
        [GroupState, ModernDecision, Judged, Verdict, GroupObservation, Context, bool], list[WhatIfRow]
    ] = lambda *_: []
    stable: int = STABLE
    state: Callable[[ModernGroup], str] = state_of
    subscribing: Callable[[ModernDecision, ModernGroup], ModernDecision] = subscribing
    rebalance_protocol: str | None = None
    empty_counts: bool = False


RulesByType = Mapping[str, TypeRules]
