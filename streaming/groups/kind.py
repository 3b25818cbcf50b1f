"""A kind of group as a value: what differs between groups, and the shared steps of `advance` ask for.

A kind is a room. Its records, verdicts, members, findings and end are functions of a group's state; `advance.py` lists
all kinds (`ROUNDS`). Functions get the state, the round where there is one, and the context to which they add rows.
Records and rounds are `Any` here: each kind declares the types that it takes.

A new kind is a room with a value of `Kind`, and its place in that list. What its room keeps of a group is one field of
`GroupState`; if it has records, that is among `GroupState.kinds`, with the methods of `ClassicState` and `ModernState`,
by which the shared steps close rows of `rebalance_churn` and forget what compaction removed. They do the rest, too:

- `Ownership` gives lag its owners and subscribed topics, and load its members.
- Judged decisions go through `verdicts.write_verdicts`, with a value of `Judging` that says how to judge one.
- Rows of members are written by `Rows.change_members`, which closes the rows of those who have gone.
- Findings are lists of `FindingAtRound`; since when each holds is kept by `health/group_health.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from streaming.groups.context import Context
from streaming.groups.rows import MemberRow
from streaming.groups.state import GroupState
from streaming.groups.verdicts import UNEXPLAINED, StandingVerdict
from streaming.records import GroupObservation, Member, ModernMember, TopicPartitions
from streaming.terminal import counted

# A finding must fit on one line of the page and of an alert.
_NAMED = 3

# Topic names have up to 249 characters, and a few words may follow the name. Member ids have no limit.
_LONGEST = 300

UNKNOWN_TIMEOUT_MS: Final = 900_000
"""Rebalance timeout of members that were only seen: three times the default of `max.poll.interval.ms`, which clients
send as theirs. Few exceed it."""


class FindingAtRound(NamedTuple):
    """A finding at one round.

    Attributes:
        name: As in `group_health.findings`.
        since: Round or record time since which it holds, ms, as far as this round can tell.
        detail: One line of text for people.
        kept_as: Name under which its start is kept from round to round, where it is not the finding's own; None
            otherwise.
        shown: False while it is too young to be reported: only its start is kept.
    """

    name: str
    since: int
    detail: str
    kept_as: str | None = None
    shown: bool = True


def some(texts: Sequence[str]) -> str:
    """Join the first few and count the rest: "a, b, c and 2 more"."""
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(text[:_LONGEST] for text in texts[:_NAMED]) + more


def finding_of(name: str, what: str, where: list[tuple[int, str]]) -> list[FindingAtRound]:
    """One finding about several places, each with the time since which it holds there; none without a place."""
    if not where:
        return []
    return [FindingAtRound(name, min(since for since, _ in where), f"{what}: {some([text for _, text in where])}")]


def with_count(topic: str, count: int) -> str:
    """A topic with a number of its partitions, as text."""
    return f"{topic[:200]} ({counted(count, 'partition')})"


def idle_finding(idle: Sequence[str], members: int, what: str, since: int) -> list[FindingAtRound]:
    """The finding `idle_members`; none where nobody is idle.

    Args:
        idle: The members that have nothing.
        members: How many members there are.
        what: What they lack, and why.
        since: When the group decided, ms.
    """
    if idle:
        return [FindingAtRound("idle_members", since, f"{len(idle)} of {members} members {what}: {some(idle)}")]
    return []


def unexplained(verdict: StandingVerdict | None, now: int) -> list[FindingAtRound]:
    """The finding `unexplained_assignment` for the verdict on the newest judged decision."""
    if verdict is None or verdict.reason != UNEXPLAINED:
        return []
    return [FindingAtRound("unexplained_assignment", now, UNEXPLAINED)]


def found_before(found: list[FindingAtRound], before: Collection[str]) -> list[FindingAtRound]:
    """The findings that the round before had, too: while the offsets log is blocked there may be newer records."""
    return [one for one in found if (one.kept_as or one.name) in before]


class Membership(NamedTuple):
    """A group's membership at a round.

    Attributes:
        state: State according to the log, used if the broker reported none at the round.
        verdict: Verdict on the newest decision.
        protocol_type: Protocol type; None when unknown.
        strategy: Strategy, or server assignor; None if there is none, or it is unknown.
        incarnation: The group's incarnation; None if no decision was read.
        generation: Generation, or epoch; None if no decision was read.
        decided: Record time of the newest decision, ms; None if no decision was read.
        members: Number of members.
        assigned: Number of assigned partitions.
        balance: Imbalance, and the lowest that any assignment could have; each None if unknown.
    """

    state: str
    verdict: StandingVerdict
    protocol_type: str | None = None
    strategy: str | None = None
    incarnation: int | None = None
    generation: int | None = None
    decided: int | None = None
    members: int = 0
    assigned: int = 0
    balance: tuple[float | None, float | None] = (None, None)


OwningMember = Member | ModernMember
"""A member that owns partitions."""

OwningMembers = Mapping[str, Mapping[int, OwningMember]]
"""Members by topic and partition. Wherever partitions are kept, a topic is the name of a unit (`rows.py`)."""


class Owning(NamedTuple):
    """A member that may own partitions.

    Attributes:
        member: The member.
        partitions: What it owns; None if its record cannot be decoded.
        topics: Topics whose partitions it may have; None if unknown.
    """

    member: OwningMember
    partitions: TopicPartitions | None
    topics: Collection[str] | None


@dataclass(slots=True)
class Ownership:
    """Who owns what in a group at a round.

    Attributes:
        members: The members that may own partitions, in the order of their record or in which they joined.
        version: Numbers that change whenever the assignment does; None without one.
        subtopologies: By topic, the subtopology of a streams group that reads it; empty for other groups.
        are_known: Whether there are members, and what each of them owns is known.
        topics: Topics with a subscriber; None without members, or if a subscription is unknown.
        by_partition: The owner of each partition; the first of several in the order of `members`.
    """

    members: Sequence[Owning] = ()
    version: tuple[int, int] | None = None
    subtopologies: Mapping[str, str] = field(default_factory=dict)
    are_known: bool = field(init=False)
    topics: AbstractSet[str] | None = field(init=False)
    by_partition: OwningMembers = field(init=False)

    def __post_init__(self) -> None:
        """Compute at once what each round asks for."""
        self.are_known = topics_known = bool(self.members)
        topics: set[str] = set()
        owners: dict[str, dict[int, OwningMember]] = {}
        for member, partitions, subscription in self.members:
            if partitions is None:
                self.are_known = False
            for topic, numbers in partitions or ():
                of_topic = owners.setdefault(topic, {})
                for number in numbers:
                    of_topic.setdefault(number, member)
            if subscription is None:
                topics_known = False
            else:
                topics.update(subscription)
        self.topics = topics if topics_known else None
        self.by_partition = owners


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


USUAL: Final = LagRules()


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
        owners: Who owns what, as the newest records have it; nobody where partitions have several owners.
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
    owners: Callable[[GroupState], Ownership]
    standing_members: Callable[[GroupState, Context], list[MemberRow]]
    membership: Callable[[GroupState, GroupObservation], Membership]
    findings: Callable[[GroupState, Any, Context, Ownership], list[FindingAtRound]]
    end: Callable[[GroupState, Any, Context], None]
    records: Mapping[type, Callable[[GroupState, Any, Context], None]] = field(default_factory=dict)
    read: Callable[[GroupState, Any, Context], GroupObservation] = lambda _state, item, _context: item
    note_round: Callable[[GroupState, Any, Context], None] = lambda _state, _round, _context: None
    lag_rules: Callable[[Any], LagRules] = lambda _round: USUAL
    follows_topics: bool = True
