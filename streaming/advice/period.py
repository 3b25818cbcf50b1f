"""What the rules look at: a group in the last days, as the tables have it. Plain values, without logic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date


@dataclass(frozen=True, slots=True)
class MemberChange:
    """A member that joined or left in the period.

    Attributes:
        is_static: It has a group.instance.id.
        client_id: Client id.
        client_host: Host as the broker recorded it.
        session_timeout_ms: Session timeout, ms; None where it is not known, and where the broker sets it (KIP-848).
    """

    is_static: bool
    client_id: str
    client_host: str
    session_timeout_ms: int | None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A decision of kind rebalance, by its newest revision.

    Attributes:
        decision: Its number.
        time_ms: record_time, ms.
        strategy: Selected protocol; None where there is none.
        protocol: eager, cooperative or consumer; None where it is not known.
        causes: Names of its causes; empty where they are not known.
        follows: The decision that it completes; None otherwise.
        joined: Ids of members that joined.
        left: Ids of members that are gone.
        replaced: Static members that came back.
        moved: Partitions moved; None where it is not known.
        stopped_unmoved: Partitions stopped although unmoved; None where it is not known.
        unassigned_seconds: Lower bound of the partition-seconds without an owner; None where there is none.
    """

    decision: int
    time_ms: int
    strategy: str | None = None
    protocol: str | None = None
    causes: frozenset[str] = frozenset()
    follows: int | None = None
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    replaced: int = 0
    moved: int | None = None
    stopped_unmoved: int | None = None
    unassigned_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """What one strategy would have done at one decision: a row of `what_if` whose figures are known.

    Attributes:
        decision: The decision.
        strategy: Name of the strategy.
        runs: Whether the group runs it.
        client: Library that it was computed as, without its release.
        moved: Partitions that it would have moved.
        imbalance: max / mean - 1 of partitions per member.
    """

    decision: int
    strategy: str
    runs: bool
    client: str
    moved: int
    imbalance: float


@dataclass(frozen=True, slots=True)
class GroupDay:
    """A day of the group's history; times in seconds, None where a figure is not known.

    Attributes:
        day: The day.
        observed: Time in which the group was observed.
        commits: Offset commits; None where they are not known.
        members_max: Most members.
        members_mean: Mean number of members, weighted by time.
        members_known: Time in which their number was known.
        beyond: Time with more members than partitions.
        beyond_max: Most members beyond the partitions.
        lag_total_max: Highest lag, records.
    """

    day: date
    observed: float
    commits: int | None = 0
    members_max: int | None = None
    members_mean: float | None = None
    members_known: float = 0.0
    beyond: float | None = None
    beyond_max: int | None = None
    lag_total_max: int | None = None


@dataclass(frozen=True, slots=True)
class Produced:
    """What was produced to the partitions that a group reads.

    Attributes:
        total: Records of all partitions.
        topic: Topic of the partition that got most.
        broker: RocketMQ broker of that queue; None in Kafka.
        partition: Its number.
        most: Its records.
        hours: Hours in which it got records.
    """

    total: int
    topic: str
    broker: str | None
    partition: int
    most: int
    hours: int


@dataclass(frozen=True, slots=True)
class Period:
    """A group in the days up to one day.

    Attributes:
        group_id: The group.
        day: The last day.
        days: Its history, oldest first, by days on which it was there; the last one is `day`.
        group_type: classic, consumer, share, streams; None when the broker does not say.
        protocol_type: consumer, connect, ...; None when not known.
        strategy: Strategy at the end of the day; None without members.
        partitions: Subscribed partitions at the end of the day; None when not known.
        judged: Decisions of the period with a verdict.
        unexplained: Those of them that no known client gives.
        nearest: The library that came nearest to the last of these; None where there is none.
        rebalances: In the order of decisions.
        members: Those that joined or left, by member id.
        tried: Rows of `what_if`.
        produced: None where nothing was produced.
        empty_since_ms: When the last member was gone, ms; None while there are members, and where the period has no
            decision.
        offsets_retention_minutes: How long brokers keep the offsets of a group without members; None if not known.
    """

    group_id: str
    day: date
    days: tuple[GroupDay, ...]
    group_type: str | None = None
    protocol_type: str | None = None
    strategy: str | None = None
    partitions: int | None = None
    judged: int = 0
    unexplained: int = 0
    nearest: str | None = None
    rebalances: tuple[Rebalance, ...] = ()
    members: Mapping[str, MemberChange] = field(default_factory=dict)
    tried: tuple[Tried, ...] = ()
    produced: Produced | None = None
    empty_since_ms: int | None = None
    offsets_retention_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """One piece of advice.

    Attributes:
        kind: Its kind.
        events: How many events it rests on.
        advice: What to do.
        evidence: Why, with the arithmetic.
        cost: What it costs, and what to check before.
        saved: What it would have saved in the period; None where nobody can tell.
        unit: Unit of `saved`.
        details: The figures by name.
    """

    kind: str
    events: int
    advice: str
    evidence: str
    cost: str
    saved: float | None = None
    unit: str | None = None
    details: tuple[tuple[str, str], ...] = ()
