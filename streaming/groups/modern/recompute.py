"""Recomputes a broker's target assignment with every assignor, release and member order that is possible.

Each type's room says what the assignor was given, as far as the log and the rounds tell. Source of the rules:
`GroupMetadataManager` and `TargetAssignmentBuilder` (Kafka 4.x).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from assignors import AssignorError, LeaderWouldFail, TooMuchWork, from_topics
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, member_orders, names_in_hash_order
from streaming.groups.context import of_decision
from streaming.groups.modern.group import ModernDecision
from streaming.groups.verdict_inputs import ServerInputs, StreamsInputs
from streaming.groups.verdicts import IDENTICAL, UNVERIFIED, Verdict

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
        where = "in the log" if decision.log_partition >= 0 else "in its coordinator's answer"
        return f"the regular expression of member {unresolved[0][:100]!r} is not resolved {where}"
    return None


# Four pairs of members that share a hash bucket, in both orders; a dozen members usually have one such pair or none. A
# target that still does not fit is usually another assignor's.
_MOST_ORDERS = 16

# Orders times partitions (or members, if there are more): at 5,000 each order takes milliseconds.
_LARGEST = 5_000


def recompute_target(
    decision: ModernDecision, asked: ServerGroup | str, known: Sequence[str], releases: Sequence[str]
) -> Verdict | str:
    """Compare a target with the results of all assignors that may have made it.

    Args:
        decision: A decision of a consumer or share group.
        asked: Its assignor's input, or why that is not known.
        known: The broker's assignors for this type of group.
        releases: A release of each of their eras, the likeliest first.

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
    doubt = "custom assignors and some member orders are not recomputed"
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
    reason = cannot or f"it fits none of {len(tried)} candidates; {doubt}"
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
