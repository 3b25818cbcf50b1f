"""What differs between the types of groups that the broker assigns, as a value of each type's room.

`modern/` has what they share: their records, decisions, members and churn. `consumer/`, `share/` and `streams/` say how
the decisions of one type are judged and measured, who owns what, and what may be wrong with its members.

Most types measure balance and moves of a target alike, with the best that any assignment could have reached. A target
has topic ids, a subscription has topic names. If all members subscribe to the same topics, the names are not needed;
otherwise rounds must have named every topic of the target. Unknown values are None.

A target is recomputed with every assignor, release and member order that is possible: each type says what the assignor
was given, as far as the log and the rounds tell. Source of the rules: `GroupMetadataManager` and
`TargetAssignmentBuilder` (Kafka 4.x).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from assignors import (
    Assignment,
    AssignorError,
    Group,
    LeaderWouldFail,
    Subscription,
    TooMuchWork,
    from_topics,
    imbalance,
    imbalance_optimal,
    moves,
    optimal_moves,
)
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, member_orders, names_in_hash_order
from streaming.groups.context import Context, GroupConfig, of_decision
from streaming.groups.kind import FindingAtRound, Ownership
from streaming.groups.modern.group import STABLE, ModernDecision, ModernGroup, state_of, subscribing
from streaming.groups.rows import DriftedPartition, TopicAssignment, WhatIfRow
from streaming.groups.state import GroupState
from streaming.groups.verdict_inputs import ServerInputs, StreamsInputs
from streaming.groups.verdicts import IDENTICAL, UNVERIFIED, Expected, Judged, Verdict
from streaming.records import GroupObservation, IdPartitions, TopicPartitions, count_of, counts_in

PREFIX: Final = "server-"
"""Prefix of the names of the broker's assignors in `assignors.brokers`."""


def group_asked(decision: ModernDecision, topics: Mapping[str, ServerTopic]) -> ServerGroup | str:
    """The members of a decision with these topics as the assignor saw them, or what is wrong with them."""
    old = {new: before for before, new in decision.replaced}
    before = decision.before or {}
    try:
        subscriptions = [listed or () for listed in decision.different_subscriptions()]
        in_order = {listed: tuple(names_in_hash_order(listed)) for listed in subscriptions}
        members = tuple(
            [
                ServerMember(
                    member.member_id,
                    in_order[decision.topics_of(member.member_id) or ()],
                    target=before.get(old.get(member.member_id, member.member_id), ()),
                    group_instance_id=member.instance_id,
                    rack=member.rack,
                )
                for member in decision.members
            ]
        )
        return ServerGroup(members, topics)
    except AssignorError as error:
        return str(error)[:200]


def unknown_inputs(decision: ModernDecision) -> str | None:
    """Why the target cannot be recomputed: which of the coordinator's inputs is unknown; None if all are known."""
    if decision.carried_over:
        return "the group was upgraded from the classic protocol: this is the assignment it had"
    if decision.before is None or not decision.exact:
        return "the previous target is not known: earlier records of the group may be missing"
    if decision.unseen:
        return f"{decision.unseen} epochs passed between two looks: the previous target is not known"
    if decision.undescribed:
        return f"the log lacks records of member {decision.undescribed[0][:100]!r}"
    if decision.group_epoch != decision.epoch:
        return "members or subscriptions have changed since the epoch of the target"
    unresolved = [name for name in decision.subscriptions if decision.topics_of(name) is None]
    if unresolved and decision.tasks is None:
        return f"what the regular expression of member {unresolved[0][:100]!r} matches is not known"
    return None


# Four pairs of members that share a hash bucket, in both orders; a dozen members usually have one such pair or none. A
# target that still does not fit is usually another assignor's.
_MOST_ORDERS = 16

# Orders times partitions (or members, if there are more): at 5,000 each order takes milliseconds.
_LARGEST = 5_000


def recompute_target(
    decision: ModernDecision, asked: ServerGroup | str, known: Sequence[str], releases: Sequence[str], early: str
) -> Verdict | str:
    """Compare a target with the results of all assignors that may have made it.

    Args:
        decision: A decision of a consumer or share group.
        asked: Its assignor's input, or why that is not known.
        known: The broker's assignors for this type of group.
        releases: A release of each of their eras, the likeliest first.
        early: Brokers that had such groups before, by rules of their own, and may have made it as well.

    Returns:
        As `first_that_gives`, or that reason.
    """
    if isinstance(asked, str):
        return asked
    strategies = [f"{PREFIX}{name}" for name in decision.assignors] or list(known)
    unknown = [name for name in strategies if name not in known]
    if unknown:
        return Verdict(UNVERIFIED, f"assignor {unknown[0].removeprefix(PREFIX)[:100]!r} is not known")
    candidates = (
        ServerInputs(strategy, group, release)
        for group in orders_of(decision, asked)
        for strategy, release in product(strategies, releases)
    )
    partitions = sum(topic.partitions for topic in asked.topics.values())
    doubt = f"custom assignors, some member orders and {early} are not recomputed"
    return first_that_gives(decision, candidates, f"{partitions:,} partitions", doubt)


def first_that_gives(
    decision: ModernDecision, candidates: Iterable[ServerInputs | StreamsInputs], size: str, doubt: str
) -> Verdict:
    """Compare a target with what each candidate gives, until one fits.

    Args:
        decision: The decision.
        candidates: What the coordinator may have computed, the likeliest first.
        size: What the members share, with its number.
        doubt: Why it proves nothing if none fits.

    Returns:
        `identical` or `unverified`; never `drifted`, because the operator may run a custom assignor, or because the
        work exceeds the limit for one decision.
    """
    active = from_topics(decision.targets)
    standby = from_topics(decision.tasks.standby if decision.tasks is not None else {})
    tried: set[tuple[str, str]] = set()
    cannot: str | None = None
    inputs: ServerInputs | StreamsInputs | None = None
    with of_decision():
        for given in candidates:
            inputs = inputs or given
            try:
                fits = given.gives(active, standby)
            except LeaderWouldFail:
                continue
            except TooMuchWork as error:
                members = f"{len(decision.members):,} members"
                cannot = cannot or f"too large to recompute: with {members} and {size} {error.reason}"
                continue
            except AssignorError as error:
                cannot = cannot or str(error)[:200]
                continue
            if not tried:
                inputs = given
            tried.add((given.strategy, given.release))
            if fits:
                library = f"broker:{given.release}"
                return Verdict(IDENTICAL, library=library, candidates=len(tried), inputs=given)
    reason = cannot or f"no candidate gives it; {doubt}"
    return Verdict(UNVERIFIED, reason, candidates=len(tried), inputs=inputs)


def orders_of(decision: ModernDecision, asked: ServerGroup) -> Iterator[ServerGroup]:
    """The input of a decision in every order that is possible (`in_every_order`)."""
    return in_every_order(asked, targets_listed=decision.log_partition >= 0)


def in_every_order(asked: ServerGroup, *, targets_listed: bool = True) -> Iterator[ServerGroup]:
    """The group with the keys that share a bucket of the coordinator's hash maps in every order, as far as is cheap.

    The first has the order of the log; usually it is the only one.

    Args:
        asked: The assignor's input.
        targets_listed: The previous targets list their topics as their records do. The probe's answers do not
            (`streaming/probe/kafka/look.py` sorts them), so the reverse is tried as well.
    """
    yield asked
    partitions = sum(topic.partitions for topic in asked.topics.values())
    most = min(_MOST_ORDERS, _LARGEST // max(1, partitions, len(asked.members)))
    if not most:
        return
    by_id = {member.member_id: member for member in asked.members}
    try:
        orders = member_orders(by_id, most)
    except AssignorError:
        return  # a bucket so full that Java turns it into a tree, with another order
    tried = {asked.members}
    for order in orders:
        members = tuple([by_id[member_id] for member_id in order])
        # Topic ids may share a bucket too, in a set filled in the order of the first member's topic names.
        ways = [members, tuple([replace(member, topics=member.topics[::-1]) for member in members])]
        if not targets_listed:
            ways += [tuple([replace(member, target=member.target[::-1]) for member in way]) for way in ways]
        for turned in ways:
            if turned not in tried:
                tried.add(turned)
                yield ServerGroup(turned, asked.topics)


def group_of_target(decision: ModernDecision, names: Mapping[str, str]) -> Group | None:
    """The group at a decision, as input for the measures.

    Args:
        decision: The decision.
        names: Known topic names by id.

    Returns:
        Members with the ids of their subscribed topics, and the partition counts that the target shows (the broker's
        assignors assign every partition). Any member can have any task. None if members, subscriptions or names are
        missing or have changed since the target was computed.
    """
    if decision.became_empty or not decision.exact or decision.undescribed:
        return None
    if decision.group_epoch != decision.epoch:
        return None
    counts = counts_in(decision.targets.values())
    subscriptions = _by_id(decision, counts, names)
    if subscriptions is None:
        return None
    try:
        return Group(tuple([Subscription(name, topics) for name, topics in subscriptions.items()]), counts)
    except AssignorError:
        return None


def balance_of_target(decision: ModernDecision, names: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Imbalance of a target, and the lowest that any assignment of its partitions, or active tasks, could have.

    Returns:
        (None, None) if nothing is assigned or members are missing; (imbalance, None) if `group_of_target` has no group.
    """
    if not decision.exact or decision.undescribed:
        return None, None
    uneven = imbalance([count_of(target) for target in decision.targets.values()])
    group = group_of_target(decision, names) if uneven is not None else None
    return uneven, imbalance_optimal(group) if group is not None else None


def moves_of_target(decision: ModernDecision) -> int | None:
    """Number of partitions, or active tasks, that the target moves from one member to another; None if unknown.

    A static member under a new id counts as the same member.
    """
    before = before_target(decision)
    if before is None:
        return None
    return moves(before, from_topics(decision.targets))


def least_moves_of_target(decision: ModernDecision, names: Mapping[str, str]) -> int | None:
    """The fewest moves after which the group could have been balanced; moves beyond that are lost stickiness.

    Returns:
        None if `group_of_target` has no group, or the previous target is unknown.
    """
    before = before_target(decision)
    group = group_of_target(decision, names) if before is not None else None
    if before is None or group is None:
        return None
    return optimal_moves(before, group)


def before_target(decision: ModernDecision) -> Assignment | None:
    """The previous target, with the new ids of static members; None if unknown."""
    if decision.before is None:
        return None
    renamed = dict(decision.replaced)
    return from_topics({renamed.get(name, name): target for name, target in decision.before.items()})


def _by_id(
    decision: ModernDecision, counts: Mapping[str, int], names: Mapping[str, str]
) -> dict[str, tuple[str, ...]] | None:
    """Ids of the target's topics that each member subscribes to; None if a subscription or a name is unknown."""
    subscriptions = [decision.topics_of(member.member_id) for member in decision.members]
    if decision.tasks is not None or (len(set(subscriptions)) <= 1 and None not in subscriptions):
        return {member.member_id: tuple(counts) for member in decision.members}
    if None in subscriptions or not counts.keys() <= names.keys():
        return None
    ids = {names[topic_id]: topic_id for topic_id in counts}
    if len(ids) < len(counts):
        return None  # two ids with one name: the topic was deleted and created again
    alike: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = {}
    for member, topics in zip(decision.members, subscriptions, strict=True):
        listed = topics or ()
        found = alike.get(listed)
        if found is None:
            found = alike[listed] = tuple([ids[name] for name in listed if name in ids])
        result[member.member_id] = found
    return result


def topic_names(state: GroupState) -> dict[str, str]:
    """Topic names by id, as rounds have shown them."""
    return {known.topic_id: topic for topic, known in state.topics.items() if known.topic_id is not None}


def names_at(state: GroupState, decision: ModernDecision) -> dict[str, str]:
    """Topic names by id for one decision, from rounds and, of share groups or up to Kafka 4.0, from its own records."""
    return topic_names(state) | {i: name for i, name, _ in (decision.topics.topics if decision.topics else ())}


def named(targets: Mapping[str, IdPartitions], names: Mapping[str, str]) -> dict[str, TopicPartitions] | None:
    """Targets by topic name; None if a topic's name is unknown."""
    if any(topic_id not in names for target in targets.values() for topic_id, _ in target):
        return None
    return {
        member: tuple([(names[topic_id], numbers) for topic_id, numbers in target])
        for member, target in targets.items()
    }


def ownership_version(group: ModernGroup) -> tuple[int, int]:
    """Numbers that change whenever a record changes who owns what."""
    newest = max((current.record for current in group.currents.values()), default=-1)
    return max(newest, *(member.record for member in group.members.values())), len(group.members)


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
    idle: Callable[[GroupState, ModernGroup, GroupObservation, Ownership], list[FindingAtRound]]
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
        [GroupState, GroupObservation, GroupConfig, ModernDecision, Judged, Verdict, bool], list[WhatIfRow]
    ] = lambda *_: []
    stable: int = STABLE
    state: Callable[[ModernGroup], str] = state_of
    subscribing: Callable[[ModernDecision, ModernGroup], ModernDecision] = subscribing
    rebalance_protocol: str | None = None
    empty_counts: bool = False
