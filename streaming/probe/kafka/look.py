"""What a round saw of a Kafka cluster's groups, and the fields that all its events share. Pure, as `observe.py`.

Where the log is not read, a round also reports membership and committed offsets. It repeats neither unless it differs
from what was sent last, or a heartbeat has passed, so that a reader who lost its past gets it again. What is too large
for a record, or for a round, stays out; then the round says that it has not looked, and the next one begins with other
groups. A new probe reports everything once; readers compare with what they know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from streaming.probe.kafka.holds import BlockedPartition
from streaming.records import (
    ADMIN,
    Configured,
    Seen,
    SeenClassic,
    SeenCommits,
    SeenConnectors,
    SeenModern,
    SeenShares,
    TopicObservation,
    UnreadTimestamp,
)

MOST_TOLD: Final = 4 * 1024 * 1024
"""Bytes of one group's membership in one round. Larger ones are only counted (`more`): 2,000 members with 2 KB each
still fit."""

MOST_A_ROUND: Final = 48 * 1024 * 1024
"""Bytes of membership in one round. Ordinary groups change now and then and have some kilobytes; this bounds the first
round of a probe on a cluster of large groups, and a client that changes many subscriptions at once."""

MOST_OFFSETS: Final = 100_000
"""Offsets of one group in one round: some 2.5 MB."""

SeenOffsets = Mapping[tuple[str, int], int]
"""Committed offsets by topic and partition."""


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """Members of a group as their coordinator told them.

    Attributes:
        mark: Hash of the answer: equal as long as nothing has changed.
        read: Returns them as a round tells them; their bytes are decoded only where they are news.
    """

    mark: int
    read: Callable[[], SeenClassic | SeenModern]


@dataclass(frozen=True, slots=True)
class SeenGroup:
    """What a round saw of one group.

    Attributes:
        looked: Its membership was seen.
        membership: The members; None where there are none to tell: the group is empty or rebalances, or was not
            looked at.
        offsets: Its committed offsets; None where they were not seen.
    """

    looked: bool
    membership: GroupMembers | None = None
    offsets: SeenOffsets | None = None


@dataclass(frozen=True, slots=True)
class LastReport:
    """What was last reported of a group.

    Attributes:
        membership: Hash of its members; None when none was reported.
        offsets: Its committed offsets; None when none were reported.
    """

    membership: int | None = None
    offsets: SeenOffsets | None = None


@dataclass(frozen=True, slots=True)
class SeenRound:
    """What a round reports, by group, and what has been reported with it."""

    telling: Mapping[str, Seen] = field(default_factory=dict)
    told: Mapping[str, LastReport] = field(default_factory=dict)


def report(
    number: int,
    seen: Mapping[str, SeenGroup],
    told: Mapping[str, LastReport],
    whole: Iterable[str],
    silent: Iterable[str],
) -> SeenRound:
    """What a round reports of the groups.

    Args:
        number: The round's number; where to begin, if not all can be reported.
        seen: What it saw, by group.
        told: What was reported before, by group.
        whole: Groups to report whole, changed or not.
        silent: Groups of which this round reports nothing.
    """
    due, unheard = frozenset(whole), frozenset(silent)
    names = sorted(seen)
    first = number % len(names) if names else 0
    telling: dict[str, Seen] = {}
    now: dict[str, LastReport] = {}
    left = MOST_A_ROUND
    for name in (*names[first:], *names[:first]):
        before = told.get(name, LastReport())
        if name in unheard:
            now[name] = before
            continue
        group = seen[name]
        looked, mark = group.looked, before.membership
        members: SeenClassic | SeenModern | None = None
        if group.membership is None:
            mark = None if looked else mark
        elif group.membership.mark != mark or name in due:
            members, size = _fitted(group.membership.read())
            if size > left:
                looked, members = False, None
            else:
                left -= size
                mark = group.membership.mark
        commits, offsets = None, before.offsets
        if group.offsets is not None:
            commits, offsets = _commits(group.offsets, before.offsets, whole=name in due)
        telling[name] = Seen(
            ADMIN,
            looked,
            classic=members if isinstance(members, SeenClassic) else None,
            modern=members if isinstance(members, SeenModern) else None,
            commits=commits,
        )
        now[name] = LastReport(mark, offsets)
    return SeenRound(telling, now)


def _fitted(members: SeenClassic | SeenModern) -> tuple[SeenClassic | SeenModern, int]:
    size = len(msgspec.json.encode(members))
    if size <= MOST_TOLD:
        return members, size
    return msgspec.structs.replace(members, members=(), more=len(members.members)), 0


def _commits(
    offsets: SeenOffsets, before: SeenOffsets | None, *, whole: bool
) -> tuple[SeenCommits | None, SeenOffsets | None]:
    """The committed offsets to report, and what has been reported with them."""
    if before is None or whole:
        news = dict(offsets)
        all_of_them = len(news) <= MOST_OFFSETS
    else:
        news = {tp: offset for tp, offset in offsets.items() if before.get(tp) != offset}
        news |= dict.fromkeys(before.keys() - offsets.keys(), -1)
        all_of_them = False
        if not news:
            return None, before
    if len(news) > MOST_OFFSETS:
        told = before or {}
        # Those that were never reported, or have changed, come first: the others are as they were.
        order = sorted(news, key=lambda tp: (told.get(tp) == news[tp], tp))
        news = {tp: news[tp] for tp in order[:MOST_OFFSETS]}
        after = {tp: offset for tp, offset in {**told, **news}.items() if offset >= 0}
    else:
        after = dict(offsets)
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for (topic, partition), offset in sorted(news.items()):
        by_topic.setdefault(topic, []).append((partition, offset))
    return SeenCommits(all_of_them, {topic: tuple(of_topic) for topic, of_topic in by_topic.items()}), after


EMPTY: Final = "Empty"
"""State of a group without members, in Kafka's words."""

STABLE: Final = "Stable"
"""State of a group whose members have their assignment."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as its coordinator lists it.

    Attributes:
        group: Group id.
        node: Broker that listed it: its coordinator.
        state: In Kafka's words; None from brokers before 2.6, which do not list it.
        protocol_type: "consumer", "connect", ...; "" for a group that never had members; None when unknown.
        group_type: "classic", "consumer", "share", "streams"; None from brokers before 3.8 (KIP-848's ListGroups).
    """

    group: str
    node: int
    state: str | None
    protocol_type: str | None
    group_type: str | None


@dataclass(frozen=True, slots=True)
class Description:
    """A coordinator's description of a group's members.

    Attributes:
        state: In Kafka's words; None as in `ListedGroup`, where it failed.
        protocol_type: As in `ListedGroup`.
        subscribed: Topics its members ask for.
        complete: False when that may not be all: coordinators report subscriptions in Stable only, and bytes that are
            not a subscription count for nothing.
        membership: The members to tell in a round that does not read the log; None in every other, and where the group
            has none, or rebalances.
        failed: The coordinator failed to describe it: this is only what it listed.
    """

    state: str | None
    protocol_type: str | None
    subscribed: frozenset[str]
    complete: bool
    membership: GroupMembers | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class RoundHead:
    """The fields that all events of a round share.

    Attributes:
        cluster: Configured name.
        cluster_id: Kafka's own id.
        number: Offset of the opening record.
        time: Its append time.
        log: Position in each partition of the offsets log; empty in a round that does not read it.
        holds: Per partition of the offsets log.
        configured: What the settings say of a group.
    """

    cluster: str
    cluster_id: str | None
    number: int
    time: int
    log: tuple[int, ...]
    holds: tuple[BlockedPartition | None, ...]
    configured: Callable[[str], Configured | None] = dict[str, Configured]().get


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """Everything that a round saw of the watched groups.

    Attributes:
        groups: Watched groups by id.
        topics_of_groups: Topics to report per group, sorted.
        descriptions: Per group that was described.
        topics: Per topic, without the timestamps of any group; a topic that we may not see is missing.
        committed: Hash of each group's committed offsets, or deliveries; a group whose offsets we may not see is
            missing.
        unread: Timestamps of the oldest unread records by group, topic and partition, as far as they are known.
        seen: Membership and committed offsets, in a round that does not read the log; empty in every other.
        calm: Groups with members, all known, that have read all there is, and of whose members the log has told nothing
            since the round before.
        changed: Groups of whose members the log has told something since the round before.
        shares: Deliveries of share groups, as far as they are known in this round.
        share_log: How far each partition of `__share_group_state` was read; empty where it is not read.
        connectors: What is configured for Connect groups, as far as it is known in this round.
    """

    groups: Mapping[str, ListedGroup]
    topics_of_groups: Mapping[str, tuple[str, ...]]
    descriptions: Mapping[str, Description]
    topics: Mapping[str, TopicObservation]
    committed: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, Mapping[str, dict[int, UnreadTimestamp]]] = field(default_factory=dict)
    seen: Mapping[str, SeenGroup] = field(default_factory=dict)
    calm: Collection[str] = ()
    changed: Collection[str] = ()
    shares: Mapping[str, SeenShares] = field(default_factory=dict)
    share_log: tuple[int, ...] = ()
    connectors: Mapping[str, SeenConnectors] = field(default_factory=dict)
