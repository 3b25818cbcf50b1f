"""The state of a RocketMQ group beside its membership, which is kept as that of any group (`classic.current`)."""

from __future__ import annotations

import msgspec

from streaming.records import Member

Routes = dict[str, dict[str, int]]
"""Readable queues by topic and broker."""


class DecisionInputs(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What clients decide by, as one round saw it: the causes of a decision are what differs between two of these.

    Attributes:
        routes: Readable queues by topic and broker, of all name servers together.
        poorer: Name servers that know fewer queues than others, sorted.
        lists: By broker name, the clients on its list. For a broker that did not answer, its list at the decision
            before, where only it could tell of members; else it is missing.
        strategies: Strategy by member; members that told none are missing.
        subscriptions: Topics by member, retry topics left out; members that told none are missing.
        started: Start time by member, ms by its own clock.
    """

    routes: Routes = {}
    poorer: tuple[str, ...] = ()
    lists: dict[str, tuple[str, ...]] = {}
    strategies: dict[str, str] = {}
    subscriptions: dict[str, tuple[str, ...]] = {}
    started: dict[str, int] = {}


class Settling(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Owners or members that differ from the newest decision's, and have not been seen twice yet.

    Attributes:
        members: The members with what they hold.
        round: Number of the first round that showed exactly this.
        time: Its time, ms.
        began: Elapsed time at the first round that showed anything else than the newest decision, ms.
        after: Time of the last round before the first one, ms; -1 if there was none.
        until: Time at which the first one was closed, ms.
    """

    members: tuple[Member, ...]
    round: int
    time: int
    began: int
    after: int = -1
    until: int = -1


class Watched(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Something that rounds show, as long as each of them does. Changed in place.

    Attributes:
        since: Elapsed time at the first of the rounds, ms.
        rounds: How many rounds have shown it.
    """

    since: int
    rounds: int = 1


class RocketMQState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What a RocketMQ group's state has beside that of any group. Changed in place.

    Attributes:
        facts: What clients decided by at the newest decision; None before the first.
        settling: A change that has not been seen twice yet; None if there is none.
        watched: For how long rounds have shown something, by a name of its own (`Watch`).
        wrong: The newest rounds in which a queue had two owners or none, a bit each, the newest lowest.
        seen_at: Time of the newest round, ms; -1 before the first.
        judged: Topics whose newest verdict says anything but `not_applicable`, sorted.
    """

    facts: DecisionInputs | None = None
    settling: Settling | None = None
    watched: dict[str, Watched] = {}
    wrong: int = 0
    seen_at: int = -1
    judged: tuple[str, ...] = ()
