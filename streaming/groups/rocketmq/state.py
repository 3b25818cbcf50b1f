"""The state of a RocketMQ group beside its membership, which is kept as that of any group (`classic.current`)."""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.groups.verdicts import StandingVerdict
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
        expressions: Filters by member and topic, where they are not "*".
        started: Start time by member, ms by its own clock.
        silent: Members that had not answered for a while, sorted.
    """

    routes: Routes = {}
    poorer: tuple[str, ...] = ()
    lists: dict[str, tuple[str, ...]] = {}
    strategies: dict[str, str] = {}
    subscriptions: dict[str, tuple[str, ...]] = {}
    expressions: dict[str, dict[str, str]] = {}
    started: dict[str, int] = {}
    silent: tuple[str, ...] = ()


class Settling(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Owners or members that differ from the newest decision's, and have not been seen twice yet.

    Attributes:
        members: The members with what they hold.
        round: Number of the first round that showed exactly this.
        time: Its time, ms.
        began: Elapsed time at the first round that showed anything else than the newest decision, ms.
        silent: Members that had not answered for a while then, sorted.
        after: Time of the last round before the first one, ms; -1 if there was none.
        until: Time at which the first one was closed, ms.
    """

    members: tuple[Member, ...]
    round: int
    time: int
    began: int
    silent: tuple[str, ...] = ()
    after: int = -1
    until: int = -1


AGAIN: Final = "again"
"""Kind of a decision that is judged once more, because the settings say something else of the group now."""


class Unjudged(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The newest decision, while it waits for its verdict.

    Attributes:
        before: What each member held before, by unit; None if unknown.
        partitions_moved_optimal: As in its churn row.
        kind: Kind of its churn row, or `AGAIN`.
    """

    before: dict[str, dict[str, tuple[int, ...]]] | None
    partitions_moved_optimal: int | None
    kind: str


class Watched(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Something that a finding is about, as long as each round shows it. Changed in place.

    Attributes:
        since: Elapsed time at the first of the rounds, ms.
        rounds: How many rounds have shown it.
    """

    since: int
    rounds: int = 1


class ListRow(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """The last row of `broker_members` of one broker address.

    Attributes:
        broker: Broker name.
        broker_id: Its id.
        says: A number that changes whenever the row would say something else.
        row_at: Elapsed time at that row, ms.
    """

    broker: str
    broker_id: int
    says: int
    row_at: int


class RocketMQState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What a RocketMQ group's state has beside that of any group. Changed in place.

    Attributes:
        incarnation: Number of the group's first decision; -1 before it.
        facts: What clients decided by at the newest decision; None before the first.
        brokers: Broker names that routes of the group have had, the newest last: one that comes back is not new.
        settling: A change that has not been seen twice yet; None if there is none.
        unjudged: The newest decision, while it waits for its verdict; None once it is judged.
        views: A number that changes whenever something does that clients decide by.
        views_since: Elapsed time at the first round with these views and owners, ms; -1 before the first.
        calm: A number that changes whenever a list or a route does.
        calm_since: Elapsed time at the first round with these lists and routes, ms; -1 before the first.
        standing: The verdict that `group_health` shows; None before the first decision.
        watched: What findings are about, by a name of its own.
        wrong: The newest rounds in which a queue had two owners or none, a bit each, the newest lowest.
        lists: Last rows of `broker_members`, by address.
        seen_at: Time of the newest round, ms; -1 before the first.
        judged: Topics whose newest verdict says anything but `not_applicable`, sorted.
        unnamed: Brokers with a list in `facts` that no server names any more: elapsed time at the first round of those
            in a row that did not name it, ms, by broker name.
        unnamed_units: The same of units with committed offsets, by unit.
    """

    incarnation: int = -1
    facts: DecisionInputs | None = None
    brokers: tuple[str, ...] = ()
    settling: Settling | None = None
    unjudged: Unjudged | None = None
    views: int = 0
    views_since: int = -1
    calm: int = 0
    calm_since: int = -1
    standing: StandingVerdict | None = None
    watched: dict[str, Watched] = {}
    wrong: int = 0
    lists: dict[str, ListRow] = {}
    seen_at: int = -1
    judged: tuple[str, ...] = ()
    unnamed: dict[str, int] = {}
    unnamed_units: dict[str, int] = {}
