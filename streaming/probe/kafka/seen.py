"""What a round reports of groups whose log is not read: membership and committed offsets, when they have changed.

A round repeats neither unless it differs from what was sent last, or a heartbeat has passed, so that a reader who lost
its past gets it again. What is too large for a record, or for a round, stays out; then the round says that it has not
looked, and the next one begins with other groups.

Pure, as `observe.py`. A new probe reports everything once; readers compare with what they know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from streaming.events import (
    EVENTS_VERSION,
    MOST_TOLD,
    ClassicMemberSeen,
    ClassicSeen,
    CommitsSeen,
    ConsumerMemberSeen,
    ConsumerSeen,
    SeenPartitions,
    encode_event,
)
from streaming.offsets_log import printed

MOST_A_ROUND: Final = 48 * 1024 * 1024
"""Bytes of membership in one round. Ordinary groups change now and then and have some kilobytes; this bounds the first
round of a probe on a cluster of large groups, and a client that changes many subscriptions at once."""

MOST_OFFSETS: Final = 100_000
"""Offsets of one group in one round: some 2.5 MB."""

SeenOffsets = Mapping[tuple[str, int], int]
"""Committed offsets by topic and partition."""

SeenMembership = ClassicSeen | ConsumerSeen


@dataclass(frozen=True, slots=True)
class SeenGroup:
    """What a round saw of one group.

    Attributes:
        looked: Its membership was seen.
        membership: The members, without cluster and round; None where there are none to tell: the group is empty or
            rebalances, or was not looked at.
        offsets: Its committed offsets; None where they were not seen.
    """

    looked: bool
    membership: SeenMembership | None = None
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
class Telling:
    """What a round reports of one group.

    Attributes:
        looked: As in `SeenGroupEvent`.
        events: Its events of `events/seen.py`.
    """

    looked: bool = False
    events: tuple[ClassicSeen | ConsumerSeen | CommitsSeen, ...] = ()


@dataclass(frozen=True, slots=True)
class SeenRound:
    """What a round reports, by group, and what has been reported with it."""

    telling: Mapping[str, Telling] = field(default_factory=dict)
    told: Mapping[str, LastReport] = field(default_factory=dict)


def tell(
    cluster: str,
    number: int,
    seen: Mapping[str, SeenGroup],
    told: Mapping[str, LastReport],
    whole: Iterable[str],
    silent: Iterable[str],
) -> SeenRound:
    """What a round reports of the groups.

    Args:
        cluster: Configured name of the cluster.
        number: The round's number; where to begin, if not all can be reported.
        seen: What it saw, by group.
        told: What was reported before, by group.
        whole: Groups to report whole, changed or not.
        silent: Groups of which this round reports nothing.
    """
    due, unheard = frozenset(whole), frozenset(silent)
    names = sorted(seen)
    first = number % len(names) if names else 0
    telling: dict[str, Telling] = {}
    now: dict[str, LastReport] = {}
    left = MOST_A_ROUND
    for name in (*names[first:], *names[:first]):
        before = told.get(name, LastReport())
        if name in unheard:
            now[name] = before
            continue
        group = seen[name]
        looked, mark = group.looked, before.membership
        events: list[ClassicSeen | ConsumerSeen | CommitsSeen] = []
        if group.membership is not None:
            changed = hash(group.membership)
            if changed != mark or name in due:
                event, size = _fitted(msgspec.structs.replace(group.membership, cluster=cluster, round=number))
                if size > left:
                    looked = False
                else:
                    left -= size
                    events.append(event)
                    mark = changed
        elif looked:
            mark = None
        offsets = before.offsets
        if group.offsets is not None:
            commits, offsets = _commits(cluster, number, name, group.offsets, before.offsets, whole=name in due)
            if commits is not None:
                events.append(commits)
        telling[name] = Telling(looked, tuple(events))
        now[name] = LastReport(mark, offsets)
    return SeenRound(telling, now)


def _fitted(event: SeenMembership) -> tuple[SeenMembership, int]:
    size = len(encode_event(event))
    if size <= MOST_TOLD:
        return event, size
    return msgspec.structs.replace(event, members=(), more=len(event.members)), 0


def _commits(
    cluster: str, number: int, group: str, offsets: SeenOffsets, before: SeenOffsets | None, *, whole: bool
) -> tuple[CommitsSeen | None, SeenOffsets | None]:
    """The event with committed offsets, and what has been reported with it."""
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
    told_now = {topic: tuple(of_topic) for topic, of_topic in by_topic.items()}
    return CommitsSeen(EVENTS_VERSION, cluster, number, group, all_of_them, told_now), after


def classic_membership(answer: Any) -> ClassicSeen:
    """Members of a group in the state Stable, from an answer to DescribeGroups; without cluster and round."""
    members = [
        ClassicMemberSeen(
            id=member.member_id,
            subscription=bytes(member.member_metadata or b""),
            assignment=bytes(member.member_assignment or b""),
            client=member.client_id or "",
            host=member.client_host or "",
            instance=member.group_instance_id,
        )
        for member in answer.members
    ]
    return ClassicSeen(
        EVENTS_VERSION, "", 0, answer.group_id, answer.protocol_type, answer.protocol_data or "", tuple(members)
    )


_MEMBER_TYPES: Final = {0: True, 1: False}
"""`MemberType` of ConsumerGroupDescribe: 0 for the classic protocol, 1 for the consumer protocol, -1 unknown."""


def consumer_membership(answer: Any) -> ConsumerSeen:
    """Members of a group, from an answer to ConsumerGroupDescribe; without cluster and round."""
    members = [
        ConsumerMemberSeen(
            id=member.member_id,
            epoch=member.member_epoch,
            client=member.client_id,
            host=member.client_host,
            instance=member.instance_id,
            rack=member.rack_id,
            topics=tuple(member.subscribed_topic_names),
            regex=member.subscribed_topic_regex or None,
            owned=_partitions(member.assignment),
            target=_partitions(member.target_assignment),
            classic=_MEMBER_TYPES.get(member.member_type),
        )
        for member in answer.members
    ]
    return ConsumerSeen(
        EVENTS_VERSION,
        "",
        0,
        answer.group_id,
        answer.group_epoch,
        answer.assignment_epoch,
        answer.assignor_name,
        tuple(members),
    )


def _partitions(assignment: Any) -> SeenPartitions:
    # (A coordinator promises no order; the same assignment should look the same.)
    return tuple(
        sorted(
            (printed(of_topic.topic_id.bytes) or "", of_topic.topic_name, tuple(sorted(of_topic.partitions)))
            for of_topic in assignment.topic_partitions
        )
    )
