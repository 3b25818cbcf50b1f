"""What a round reports of groups whose log is not read: membership and committed offsets, when they have changed.

A round repeats neither unless it differs from what was sent last, or a heartbeat has passed, so that a reader who lost
its past gets it again. What is too large for a record, or for a round, stays out; then the round says that it has not
looked, and the next one begins with other groups.

Pure, as `observe.py`. A new probe reports everything once; readers compare with what they know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from streaming.offsets_log import printed, seen_member
from streaming.records import (
    ADMIN,
    IdPartitions,
    Seen,
    SeenClassic,
    SeenCommits,
    SeenMember,
    SeenModern,
    SeenSubtopology,
    SeenTasks,
    SeenTopology,
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


_RawMember = tuple[str, str | None, str, str, bytes, bytes]
"""Member id, instance id, client id, host, bytes of subscription and assignment: what `seen_member` decodes."""


def classic_membership(answer: Any) -> GroupMembers:
    """Members of a group in the state Stable, from an answer to DescribeGroups."""
    members = tuple(
        (
            member.member_id,
            member.group_instance_id,
            member.client_id or "",
            member.client_host or "",
            bytes(member.member_metadata or b""),
            bytes(member.member_assignment or b""),
        )
        for member in answer.members
    )
    kind, protocol = answer.protocol_type, answer.protocol_data or ""
    return GroupMembers(hash((kind, protocol, members)), partial(_read_classic, kind, protocol, members))


def _read_classic(kind: str, protocol: str, members: tuple[_RawMember, ...]) -> SeenClassic:
    if sum(len(subscription) + len(assignment) for *_, subscription, assignment in members) > MOST_TOLD:
        return SeenClassic(kind, protocol, (), more=len(members))
    told = tuple([seen_member(*one, protocol_type=kind, protocol=protocol) for one in members])
    return SeenClassic(kind, protocol, told)


_MEMBER_TYPES: Final = {0: True, 1: False}
"""`MemberType` of ConsumerGroupDescribe: 0 for the classic protocol, 1 for the consumer protocol, -1 unknown."""


def _member(member: Any, **others: Any) -> SeenMember:
    """A member by what the brokers' answers say of each type, and by what its own type has."""
    return SeenMember(
        member_id=member.member_id,
        epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        rack=member.rack_id,
        **others,
    )


def consumer_membership(answer: Any) -> GroupMembers:
    """Members of a group, from an answer to ConsumerGroupDescribe."""
    members = [
        _member(
            member,
            instance_id=member.instance_id,
            topics=tuple(member.subscribed_topic_names),
            regex=member.subscribed_topic_regex or None,
            owned=_partitions(member.assignment),
            target=_partitions(member.target_assignment),
            classic=_MEMBER_TYPES.get(member.member_type),
        )
        for member in answer.members
    ]
    seen = SeenModern(answer.group_epoch, answer.assignment_epoch, answer.assignor_name, tuple(members))
    return GroupMembers(hash(seen), lambda: seen)


def share_membership(answer: Any) -> GroupMembers:
    """Members of a group, from an answer to ShareGroupDescribe, which has no targets and no static members."""
    members = [
        _member(
            member,
            instance_id=None,
            topics=tuple(sorted(member.subscribed_topic_names)),
            regex=None,
            owned=_partitions(member.assignment),
            target=(),
            classic=None,
        )
        for member in answer.members
    ]
    seen = SeenModern(answer.group_epoch, answer.assignment_epoch, answer.assignor_name, tuple(members))
    return GroupMembers(hash(seen), lambda: seen)


def streams_membership(answer: Any, settings: Mapping[str, str] | None) -> GroupMembers:
    """Members of a group with its topology, from an answer to StreamsGroupDescribe, and the group's settings."""
    members = tuple([_streams_member(member) for member in answer.members])
    topology = SeenTopology(
        epoch=answer.topology.epoch if answer.topology is not None else -1,
        ready=answer.group_state != _NOT_READY,
        subtopologies=_subtopologies(answer.topology),
        settings=dict(settings) if settings is not None else None,
    )
    seen = SeenModern(answer.group_epoch, answer.assignment_epoch, "", members, topology=topology)
    return GroupMembers(hash(msgspec.msgpack.encode(seen)), lambda: seen)


_NOT_READY: Final = "NotReady"
"""State of a streams group whose topology lacks topics, or has some with wrong partition counts."""


def _streams_member(member: Any) -> SeenMember:
    tags, endpoint = {tag.key: tag.value for tag in member.client_tags}, member.user_endpoint
    return _member(
        member,
        instance_id=member.instance_id,
        topics=(),
        regex=None,
        owned=_tasks(member.assignment.active_tasks),
        target=_tasks(member.target_assignment.active_tasks),
        classic=member.is_classic,
        tasks=SeenTasks(
            process_id=member.process_id,
            topology_epoch=member.topology_epoch,
            standby=_tasks(member.assignment.standby_tasks),
            warmup=_tasks(member.assignment.warmup_tasks),
            target_standby=_tasks(member.target_assignment.standby_tasks),
            target_warmup=_tasks(member.target_assignment.warmup_tasks),
            client_tags=tags,
            endpoint=(endpoint.host, endpoint.port) if endpoint is not None else None,
        ),
    )


def _subtopologies(topology: Any) -> tuple[SeenSubtopology, ...]:
    # Without a source topic yet, a topology has none.
    parts = topology.subtopologies if topology is not None else None
    return tuple(
        [
            SeenSubtopology(
                part.subtopology_id,
                tuple(part.source_topics),
                tuple([(topic.name, topic.partitions) for topic in part.repartition_source_topics]),
                tuple([(topic.name, topic.partitions) for topic in part.state_changelog_topics]),
                tuple(part.repartition_sink_topics),
            )
            for part in parts or ()
        ]
    )


def _tasks(tasks: Any) -> IdPartitions:
    return tuple(sorted((of.subtopology_id, tuple(sorted(of.partitions))) for of in tasks))


def _partitions(assignment: Any) -> IdPartitions:
    # A coordinator promises no order; the same assignment should look the same.
    return tuple(
        sorted(
            (printed(of_topic.topic_id.bytes) or "", tuple(sorted(of_topic.partitions)))
            for of_topic in assignment.topic_partitions
        )
    )
