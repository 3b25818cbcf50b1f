"""Rebalances that need not be, or need not cost so much: `static_membership`, `cooperative`, `strategy`.

Members that leave and come back: a dynamic member that restarts is a new member to the group, which rebalances when it
leaves and when it is back. With a `group.instance.id` and the same session timeout neither would happen, if it is back
in time (KIP-345). A member whose session expired comes back in the same way, but a static one would be gone for it,
too. They differ in the cause of the first rebalance: `member_left` is proven to be a request, `member_silent` and
`member_gone` may be either, and do not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from streaming.advice.period import Advice, MemberChange, Period, Rebalance, Tried

STATIC_LEAST: Final = 4
"""Rebalances that would not have happened, from which on there is advice: two restarts."""

_CONNECT: Final = "connect"

_LEFT, _JOINED, _HANDOVER = "member_left", "member_joined", "handover"
_UNPROVEN: Final = {"member_silent", "member_gone"}


@dataclass(frozen=True, slots=True)
class Return:
    """A dynamic member that left, and one with the same client id and host that joined within its session timeout.

    Attributes:
        left: The rebalance that shows it gone.
        joined: The rebalance that shows it back; may be the same.
        member: The member that left.
        absent_ms: Time between the two records, ms.
    """

    left: Rebalance
    joined: Rebalance
    member: MemberChange
    absent_ms: int


def returns(period: Period) -> list[Return]:
    """Every return in the period. A member that joins takes the place of the one that has been away the longest."""
    found = []
    away: dict[tuple[str, str], list[tuple[Rebalance, MemberChange]]] = defaultdict(list)
    for rebalance in period.rebalances:
        for member in _dynamic(period, rebalance.left):
            away[member.client_id, member.client_host].append((rebalance, member))
        for member in _dynamic(period, rebalance.joined):
            key = (member.client_id, member.client_host)
            waiting = [(left, gone) for left, gone in away[key] if _in_time(left, gone, rebalance)]
            if waiting:
                left, gone = waiting.pop(0)
                found.append(Return(left, rebalance, gone, max(0, rebalance.time_ms - left.time_ms)))
            away[key] = waiting
    return found


def static_membership(period: Period) -> Advice | None:
    """Rebalances that static members would not have caused; one in which another cause was at work does not count.

    Connect's workers cannot be static members (`GroupRebalanceConfig` gives only consumers an instance id).
    """
    if period.protocol_type == _CONNECT:
        return None
    back = [one for one in returns(period) if _is_proven(one.left)]
    avoided = _avoided(period, back)
    if len(avoided) < STATIC_LEAST:
        return None
    used = [one for one in back if one.left.decision in avoided]
    most, total = len(avoided), len(period.rebalances)
    timeout = min(one.member.session_timeout_ms or 0 for one in used)
    longest = max(one.absent_ms for one in used)
    hosts = len({(one.member.client_id, one.member.client_host) for one in used})
    return Advice(
        "static_membership",
        most,
        "Give each consumer a `group.instance.id` of its own that survives a restart.",
        f"{most} of {total} rebalances would not have happened: {len(used)} times a dynamic member left by itself, "
        f"and one with the same client id and host ({hosts} of them) joined within the session timeout of "
        f"{_s(timeout)}, after at most {_s(longest)}; these {most} had no other cause. A return is counted only "
        "where it is certain that the member left by itself.",
        "One rolling restart with the setting. A member that does not come back is missed only after its session "
        "timeout, during which nobody reads its partitions; two members with one id fence each other.",
        float(most),
        "rebalances",
        (("rebalances", str(total)), ("returns", str(len(used))), ("session_timeout_ms", str(timeout))),
    )


def _dynamic(period: Period, ids: Iterable[str]) -> list[MemberChange]:
    known = (period.members.get(member_id) for member_id in ids)
    return [member for member in known if member is not None and not member.is_static]


def _in_time(left: Rebalance, gone: MemberChange, joined: Rebalance) -> bool:
    timeout = gone.session_timeout_ms
    return timeout is not None and joined.time_ms - left.time_ms <= timeout


def _is_proven(rebalance: Rebalance) -> bool:
    return _LEFT in rebalance.causes and not _UNPROVEN & rebalance.causes


def _avoided(period: Period, back: list[Return]) -> set[int]:
    """Decisions that hold only leaves and returns of members, all of whose other halves are such decisions, too."""
    left, joined = defaultdict(list), defaultdict(list)
    for one in back:
        left[one.left.decision].append(one.joined.decision)
        joined[one.joined.decision].append(one.left.decision)
    found = {
        one.decision
        for one in period.rebalances
        if (one.left or one.joined)
        and one.causes <= {_LEFT, _JOINED}
        and not one.replaced
        and len(left[one.decision]) == len(one.left)
        and len(joined[one.decision]) == len(one.joined)
    }
    while broken := {one for one in found if not found.issuperset([*left[one], *joined[one]])}:
        found -= broken
    # The second half of a cooperative rebalance would not have happened without the first.
    for rebalance in period.rebalances:
        if rebalance.causes == {_HANDOVER} and rebalance.follows in found:
            found.add(rebalance.decision)
    return found


def _s(ms: int) -> str:
    return f"{ms / 1000:g} s"


COOPERATIVE_LEAST: Final = 3
"""Eager rebalances that stopped unmoved partitions, from which on there is advice."""

STRATEGY_LEAST: Final = 5
"""Decisions at which two strategies are compared, from which on there is advice."""

COOPERATIVE: Final = "cooperative-sticky"
EAGER: Final = frozenset({"range", "roundrobin", "sticky"})
"""Strategies of Kafka's clients whose members stop reading for a rebalance."""

# The same sums in another order differ by less.
_NOTHING = 1e-9


def cooperative(period: Period) -> Advice | None:
    """What eager rebalances stopped for nothing."""
    eager = [one for one in period.rebalances if one.protocol == "eager" and one.stopped_unmoved]
    if len(eager) < COOPERATIVE_LEAST or period.strategy not in EAGER or period.protocol_type != "consumer":
        return None
    stopped = sum(one.stopped_unmoved or 0 for one in eager)
    # The lower bound covers all partitions that had an owner before and after, each for the same time: those that moved
    # and those that did not. (A static member that came back would belong to neither.)
    timed = [
        (one.unassigned_seconds, one.stopped_unmoved or 0, one.moved)
        for one in eager
        if one.unassigned_seconds is not None and one.moved is not None and not one.replaced
    ]
    seconds = round(sum(gone * unmoved / (unmoved + moved) for gone, unmoved, moved in timed), 3)
    return Advice(
        "cooperative",
        len(eager),
        f"Change `partition.assignment.strategy` from {period.strategy} to {COOPERATIVE}.",
        f"{len(eager)} eager rebalances stopped {stopped} partitions that kept their owner. They stood still for at "
        f"least {seconds:g} partition-seconds (lower bounds of {len(timed)} of the {len(eager)} rebalances, by the "
        "share of unmoved partitions): cooperative members would have gone on reading them.",
        f"Two rolling restarts: one with {COOPERATIVE} beside {period.strategy}, one without {period.strategy} "
        "(KIP-429). Java has it since 2.4, librdkafka since 1.6. A rebalance that moves partitions then takes two "
        "generations.",
        seconds,
        "partition-seconds",
        (("strategy", COOPERATIVE), ("rebalances", str(len(eager))), ("partitions_stopped_unmoved", str(stopped))),
    )


def strategy(period: Period, only: str | None = None) -> Advice | None:
    """Another strategy of the same library that would have moved less and balanced no worse, or the other way.

    Args:
        period: The group.
        only: The one strategy that may be named; None for any.
    """
    runs = {one.decision: one for one in period.tried if one.runs and one.strategy == period.strategy}
    if len(runs) < STRATEGY_LEAST:
        return None
    others: dict[str, dict[int, Tried]] = defaultdict(dict)
    for one in period.tried:
        ours = runs.get(one.decision)
        if ours is not None and not one.runs and one.client == ours.client != "" and only in (None, one.strategy):
            others[one.strategy][one.decision] = one
    # Cooperative members do not go back to stopping everything.
    may = [
        name for name, of in others.items()
        if of.keys() == runs.keys() and not (period.strategy == COOPERATIVE and name in EAGER)
    ]  # fmt: skip
    better = [(gain, name) for name in may if (gain := _gain(runs, others[name])) is not None]
    if not better:
        return None
    (moves, imbalance), name = max(better, key=lambda found: (*found[0], found[1] == COOPERATIVE, found[1]))
    ours_moved = sum(one.moved for one in runs.values())
    ours_mean = _mean(one.imbalance for one in runs.values())
    theirs_mean = _mean(one.imbalance for one in others[name].values())
    count = len(runs)
    return Advice(
        "strategy",
        count,
        f"Change the strategy from {period.strategy} to {name}.",
        f"At {count} decisions {name} would have moved {ours_moved - moves} partitions where {period.strategy} moved "
        f"{ours_moved}, with a mean imbalance of {theirs_mean:.3f} instead of {ours_mean:.3f}; at none of them would "
        f"it have {'balanced worse' if moves > 0 else 'moved more'}. Each is compared from the owners that the group "
        "really had before.",
        "A rolling restart with both strategies and one without the old one, unless the broker assigns (KIP-848: one "
        "member's request is enough where most ask for it).",
        float(moves) if moves > 0 else round(imbalance, 6),
        "partitions moved" if moves > 0 else "mean imbalance",
        (
            ("strategy", name), ("decisions", str(count)), ("partitions_moved", str(ours_moved)),
            ("partitions_moved_other", str(ours_moved - moves)), ("imbalance", f"{ours_mean:.6f}"),
            ("imbalance_other", f"{theirs_mean:.6f}"),
        ),
    )  # fmt: skip


def _gain(ours: Mapping[int, Tried], theirs: Mapping[int, Tried]) -> tuple[int, float] | None:
    """By how many moves and how much mean imbalance the other is better; None unless it is, and nowhere worse."""
    pairs = [(one, theirs[decision]) for decision, one in ours.items()]
    moves = sum(one.moved - other.moved for one, other in pairs)
    imbalance = _mean(one.imbalance - other.imbalance for one, other in pairs)
    balances = all(other.imbalance <= one.imbalance + _NOTHING for one, other in pairs)
    stays = all(other.moved <= one.moved for one, other in pairs)
    if (moves > 0 and balances) or (imbalance > _NOTHING and stays):
        return moves, imbalance
    return None


def _mean(values: Iterable[float]) -> float:
    given = list(values)
    return sum(given) / len(given)
