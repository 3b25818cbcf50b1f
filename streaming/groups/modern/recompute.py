"""Recomputes a broker's target assignment (KIP-848) with every assignor, release and member order that is possible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

from assignors import AssignorError, LeaderWouldFail, TooMuchWork, from_topics, same
from assignors.brokers import ServerGroup, assign_on_server, known_server_strategies, member_orders
from streaming.groups.budget import of_decision
from streaming.groups.modern.consumer_group import ModernDecision
from streaming.groups.modern.server_inputs import ERAS, PREFIX
from streaming.groups.verdict import IDENTICAL, UNVERIFIED, Verdict
from streaming.groups.verdict_inputs import ServerInputs

__all__ = ["in_every_order", "recompute_target"]

# Four pairs of members that share a hash bucket, in both orders; a dozen members usually have one such pair or none. A
# target that still does not fit is usually another assignor's.
_MOST_ORDERS = 16

# Orders times partitions (or members, if there are more): at 5,000 each order takes milliseconds.
_LARGEST = 5_000


def recompute_target(decision: ModernDecision, asked: ServerGroup) -> Verdict:
    """Compare a target with the results of all assignors that may have made it.

    Args:
        decision: A decision of a consumer group.
        asked: Its assignor's input (`asked_of`).

    Returns:
        `identical` or `unverified`; never `drifted`, because the operator may run a custom assignor, or because the
        work exceeds the limit for one decision.
    """
    with of_decision():
        return _recompute_target(decision, asked)


def _recompute_target(decision: ModernDecision, asked: ServerGroup) -> Verdict:
    actual = from_topics(decision.targets)
    strategies = [f"{PREFIX}{name}" for name in decision.assignors] or list(known_server_strategies())
    unknown = [name for name in strategies if name not in known_server_strategies()]
    if unknown:
        return Verdict(UNVERIFIED, f"assignor {unknown[0].removeprefix(PREFIX)[:100]!r} is not known")
    tried: set[tuple[str, str]] = set()
    cannot: str | None = None
    inputs: ServerInputs | None = None
    for group in in_every_order(asked):
        for strategy, release in product(strategies, ERAS):
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


def in_every_order(asked: ServerGroup) -> Iterator[ServerGroup]:
    """The group with the keys that share a bucket of the coordinator's hash maps in every order, as far as is cheap.

    The first has the order of the log; usually it is the only one.
    """
    yield asked
    partitions = sum(topic.partitions for topic in asked.topics.values())
    most = min(_MOST_ORDERS, _LARGEST // max(1, partitions, len(asked.members)))
    if not most:
        return
    by_id = {member.member_id: member for member in asked.members}
    try:
        orders = list(islice(member_orders(by_id), most))
    except AssignorError:
        return  # a bucket so full that Java turns it into a tree, with another order
    for order in orders:
        members = tuple([by_id[member_id] for member_id in order])
        # Topic ids may share a bucket too, in a set filled in the order of the first member's topic names.
        other = tuple([replace(member, topics=member.topics[::-1]) for member in members])
        for turned in (members, other) if other != members else (members,):
            if turned != asked.members:
                yield ServerGroup(turned, asked.topics)
