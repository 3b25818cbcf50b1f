"""All rules on one group, and what keeps one from contradicting another."""

from __future__ import annotations

from typing import Final

from streaming.advice.period import Advice, Period
from streaming.advice.restarts import session_timeout, static_membership
from streaming.advice.shape import abandoned, declare_clients, hot_partition, offsets_expire, too_many_members
from streaming.advice.strategies import COOPERATIVE, cooperative, kip848, strategy

KINDS: Final = (
    "static_membership", "session_timeout", "cooperative", "strategy", "too_many_members", "hot_partition", "kip848",
    "offsets_expire", "declare_clients", "abandoned",
)  # fmt: skip
"""Every kind of advice, in the order in which a group's are listed."""


def advise(period: Period) -> list[Advice]:
    """Everything that holds for a group at the end of a day, at most one of each kind.

    Where two would contradict each other, one is left out: a group that nobody is in gets no other advice; `strategy`
    names what `cooperative` names; and `kip848`, under which clients have no strategy, is not advised beside a change
    of the strategy.
    """
    if (gone := abandoned(period)) is not None:
        return [gone]
    stops = cooperative(period)
    other = strategy(period, only=None if stops is None else COOPERATIVE)
    broker = kip848(period) if stops is None and other is None else None
    found = (
        static_membership(period),
        session_timeout(period),
        stops,
        other,
        too_many_members(period),
        hot_partition(period),
        broker,
        offsets_expire(period),
        declare_clients(period),
    )
    return [one for one in found if one is not None]
