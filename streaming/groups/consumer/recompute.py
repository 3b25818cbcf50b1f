"""Recomputes a broker's target assignment (KIP-848) with every assignor, release and member order that is possible.

The assignor's input comes from the log and the rounds (`asked_of`). Source of the rules: `GroupMetadataManager` and
`TargetAssignmentBuilder` (Kafka 4.x).

Balance and moves of a broker's target, and the best that any assignment could have reached.

A target has topic ids, a subscription has topic names. If all members subscribe to the same topics, the names are not
needed; otherwise rounds must have named every topic of the target. Unknown values are None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
    same,
)
from assignors.brokers import (
    ServerGroup,
    ServerMember,
    ServerTopic,
    assign_on_server,
    member_orders,
    names_in_hash_order,
)
from streaming.groups.context import GroupConfig, of_decision
from streaming.groups.modern.group import ModernDecision, counts_in
from streaming.groups.modern.members import names_at
from streaming.groups.state import GroupState, counts_from
from streaming.groups.verdict_inputs import ServerInputs
from streaming.groups.verdicts import IDENTICAL, UNVERIFIED, Verdict

ERAS: Final = ("3.8.1", "3.9.0", "4.0.0", "4.0.1")
"""First release of each era of the broker's assignors, oldest first (`assignors/brokers/registry.py`)."""

PREFIX: Final = "server-"
"""Prefix of the names of the broker's assignors in `assignors.brokers`."""


def asked_of(state: GroupState, decision: ModernDecision, config: GroupConfig) -> ServerGroup | str:
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
            if not config.watches_topic(name):
                return f"topic {name[:100]!r} is excluded by the filters: its partition count is not known"
            return f"no round has shown topic {name[:100]!r}: its id is not known"
        shown = counts_shown.get(ids[name], 0)
        seen = counts_from(known, decision.record_time - config.metadata_grace_ms)
        if shown not in seen:
            counts = ", ".join(map(str, sorted(seen)))
            return f"its target shows {shown} partitions of topic {name[:100]!r}, rounds have seen {counts}"
        if shown:
            topics[name] = ServerTopic(ids[name], shown)
    return group_asked(decision, topics)


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
    if unresolved:
        where = "in the log" if decision.log_partition >= 0 else "in its coordinator's answer"
        return f"the regular expression of member {unresolved[0][:100]!r} is not resolved {where}"
    return None


# Four pairs of members that share a hash bucket, in both orders; a dozen members usually have one such pair or none. A
# target that still does not fit is usually another assignor's.
_MOST_ORDERS = 16

# Orders times partitions (or members, if there are more): at 5,000 each order takes milliseconds.
_LARGEST = 5_000


def recompute_target(
    decision: ModernDecision, asked: ServerGroup, known: Sequence[str], releases: Sequence[str] = ERAS
) -> Verdict:
    """Compare a target with the results of all assignors that may have made it.

    Args:
        decision: A decision of a consumer or share group.
        asked: Its assignor's input.
        known: The broker's assignors for this type of group.
        releases: A release of each of their eras, the likeliest first.

    Returns:
        `identical` or `unverified`; never `drifted`, because the operator may run a custom assignor, or because the
        work exceeds the limit for one decision.
    """
    actual = from_topics(decision.targets)
    strategies = [f"{PREFIX}{name}" for name in decision.assignors] or list(known)
    unknown = [name for name in strategies if name not in known]
    if unknown:
        return Verdict(UNVERIFIED, f"assignor {unknown[0].removeprefix(PREFIX)[:100]!r} is not known")
    tried: set[tuple[str, str]] = set()
    cannot: str | None = None
    inputs: ServerInputs | None = None
    with of_decision():
        for group in orders_of(decision, asked):
            for strategy, release in product(strategies, releases):
                given = ServerInputs(strategy, group, release)
                inputs = inputs or given
                try:
                    fits = same(assign_on_server(strategy, group, release), actual)
                except LeaderWouldFail:
                    continue
                except TooMuchWork as error:
                    cannot = cannot or (
                        f"too large to recompute: with {len(asked.members):,} members and "
                        f"{sum(topic.partitions for topic in asked.topics.values()):,} partitions {error.reason}"
                    )
                    continue
                except AssignorError as error:
                    cannot = cannot or str(error)[:200]
                    continue
                if not tried:
                    inputs = given
                tried.add((strategy, release))
                if fits:
                    return Verdict(IDENTICAL, library=f"broker:{release}", candidates=len(tried), inputs=given)
    reason = (
        cannot or f"it fits none of {len(tried)} candidates; custom assignors and some member orders are not recomputed"
    )
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
            (`streaming/probe/kafka/seen.py` sorts them), so the reverse is tried as well.
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
        decision: A decision of a consumer group.
        names: Known topic names by id.

    Returns:
        Members with the ids of their subscribed topics, and the partition counts that the target shows (the broker's
        assignors assign every partition). None if members, subscriptions or names are missing or have changed since
        the target was computed.
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
    """Imbalance of a consumer group's target, and the lowest that any assignment of its partitions could have.

    Returns:
        (None, None) if nothing is assigned or members are missing; (imbalance, None) if `group_of_target` has no group.
    """
    if not decision.exact or decision.undescribed:
        return None, None
    uneven = imbalance([sum(len(numbers) for _, numbers in target) for target in decision.targets.values()])
    group = group_of_target(decision, names) if uneven is not None else None
    return uneven, imbalance_optimal(group) if group is not None else None


def moves_of_target(decision: ModernDecision) -> int | None:
    """Number of partitions that the target moves from one member to another; None if unknown.

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
    if None in subscriptions:
        return None
    if len(set(subscriptions)) <= 1:
        return {member.member_id: tuple(counts) for member in decision.members}
    if not counts.keys() <= names.keys():
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
