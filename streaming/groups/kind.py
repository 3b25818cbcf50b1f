"""A kind of group as a value: what differs between groups, and the shared steps of `advance` ask for.

A kind is a room. Its records, verdicts, members, findings and end are functions of a group's state; `advance.py` lists
all kinds. Functions get the state, the round where there is one, and the context to which they add rows. Records and
rounds are `Any` here: each kind declares the types that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streaming.groups.context import Context
from streaming.groups.health.columns import FindingAtRound, Membership
from streaming.groups.rows import MemberRow
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, Member, ModernMember

OwningMember = Member | ModernMember
"""A member that owns partitions."""

OwningMembers = Mapping[str, Mapping[int, OwningMember]]
"""Members by topic and partition. Wherever partitions are kept, a topic is the name of a unit (`rows.py`)."""


class Held(NamedTuple):
    """What a member owns at a round, partitions by topic."""

    member: OwningMember
    partitions: Mapping[str, Sequence[int]]


class LagRules(NamedTuple):
    """How lag is judged where it is not judged as usual.

    Attributes:
        empty_counts: Lag of a partition that holds no record is 0, also without a commit.
        kept_by_members: Why lag without a commit is not known, where members keep offsets to themselves; None where
            they commit.
        untold: Why lag is not known of these topics' partitions, though the round shows them.
    """

    empty_counts: bool = False
    kept_by_members: str | None = None
    untold: Mapping[str, str] = {}


def _nothing(state: GroupState, observation: GroupObservation, context: Context) -> None:
    """Do nothing."""


def _as_it_is(state: GroupState, item: Any, context: Context) -> GroupObservation:  # noqa: ARG001
    assert isinstance(item, GroupObservation)  # noqa: S101  # other kinds of rounds have a `read` of their own
    return item


def _usual(observation: GroupObservation) -> LagRules:  # noqa: ARG001
    return LagRules()


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of group.

    Attributes:
        records: How to process each type of record of its log; empty where there is no log.
        lives: Whether the group is of this kind now.
        read: The round as one of any group, its clocks taken in.
        note_round: Take in a round before anything of it is judged.
        judge_again: Let the newest decision be judged again, because the settings say something else of the group.
        write_verdicts: Judge the decisions that wait, and write what else the round shows of members.
        topics: Topics with a subscriber; None if unknown.
        owners: The owner of each partition, as its newest record has it.
        held: What each member owns, in the order of its record; None without members, if one cannot be decoded, and
            where partitions have several owners.
        consumers: Ids of the members that may own partitions, also of those that cannot be decoded.
        assignment: Numbers that change whenever the assignment does; None without one.
        topics_of: Topics whose partitions a member may have; None if unknown.
        standing_members: Rows of those who are members, as their decision wrote them.
        membership: The membership columns of `group_health`.
        findings: Findings about members, and about what they were given.
        end: Write the closing rows of a group that is gone, or no longer watched.
        lag_rules: How its lag is judged at a round.
        follows_topics: Rounds show its topics with their ids and partition counts, which are kept.
    """

    lives: Callable[[GroupState], bool]
    write_verdicts: Callable[[GroupState, Any, Context], None]
    judge_again: Callable[[GroupState, GroupObservation, Context], None]
    topics: Callable[[GroupState], frozenset[str] | None]
    owners: Callable[[GroupState], OwningMembers]
    held: Callable[[GroupState], list[Held] | None]
    consumers: Callable[[GroupState], frozenset[str]]
    assignment: Callable[[GroupState], tuple[int, int] | None]
    topics_of: Callable[[GroupState, Any], frozenset[str] | None]
    standing_members: Callable[[GroupState, Context], list[MemberRow]]
    membership: Callable[[GroupState, GroupObservation], Membership]
    findings: Callable[[GroupState, Any, Context], list[FindingAtRound]]
    end: Callable[[GroupState, Any, Context], None]
    records: Mapping[type, Callable[[GroupState, Any, Context], None]] = field(default_factory=dict)
    read: Callable[[GroupState, Any, Context], GroupObservation] = _as_it_is
    note_round: Callable[[GroupState, Any, Context], None] = _nothing
    lag_rules: Callable[[Any], LagRules] = _usual
    follows_topics: bool = True
