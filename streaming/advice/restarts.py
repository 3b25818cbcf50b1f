"""Members that leave and come back: `static_membership`.

A dynamic member that restarts is a new member to the group, which rebalances when it leaves and when it is back. With a
`group.instance.id` and the same session timeout neither would happen, if it is back in time (KIP-345). A member whose
session expired comes back in the same way, but a static one would be gone for it, too. They differ in the
cause of the first rebalance: `member_left` is proven to be a request, `member_silent` and `member_gone` may be either,
and do not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from streaming.advice.period import Advice, MemberChange, Period, Rebalance

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
