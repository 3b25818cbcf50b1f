"""The probe's events about what is seen of a group where its log cannot be read: membership and committed offsets.

Part of the schema of `schema.py`, whose rules hold here. These types come only in rounds that are closed
without log positions (`RoundSeen`), behind their group's `SeenGroupEvent`, at most one of each per group and round.
They come when something has changed and once per heartbeat, so a reader compares with what it knows.

Everything in them is somebody else's: anyone who may join a group chooses ids, subscriptions and user data. So the
probe limits what it reports (`MOST_TOLD`), and a reader checks numbers before it uses them.
"""

from __future__ import annotations

from typing import Final

import msgspec

MOST_TOLD: Final = 4 * 1024 * 1024
"""Bytes of one group's membership, or of its offsets, in one round, before they are encoded. Larger memberships are
only counted (`more`): 2,000 members with 2 KB each still fit. Offsets beyond it come with the next rounds."""

_MAX_PARTITION: Final = 1_000_000

_MAX_OFFSET: Final = 2**63 - 1

_MAX_INT32: Final = 2**31 - 1

SeenPartitions = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Partitions by topic: ((topic id as Kafka prints it, topic name, (partition, ...)), ...)."""


class ClassicMemberSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A member in the answer to DescribeGroups.

    Attributes:
        id: Member id.
        subscription: Bytes of its subscription to the selected protocol, as it joined (user data included).
        assignment: Bytes of its assignment.
        client: Client id.
        host: Host as the broker recorded it.
        instance: `group.instance.id`; None for a dynamic member, and from brokers before 2.4.
    """

    id: str
    subscription: bytes = b""
    assignment: bytes = b""
    client: str = ""
    host: str = ""
    instance: str | None = None


class ClassicSeen(msgspec.Struct, frozen=True, tag="classic_seen", tag_field="type"):
    """Membership of a classic group whose members all have their assignment (state Stable).

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        round: The round's number.
        group: Group id.
        protocol_type: "consumer", "connect", ...
        protocol: Selected protocol (the strategy's name).
        members: Its members, in the order of the answer, which is not that of the log's record.
        more: Members that are left out because together they would be too large; then all are.
    """

    v: int
    cluster: str
    round: int
    group: str
    protocol_type: str
    protocol: str
    members: tuple[ClassicMemberSeen, ...]
    more: int = 0


class ConsumerMemberSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A member in the answer to ConsumerGroupDescribe (KIP-848).

    Attributes:
        id: Member id.
        epoch: Epoch that it has reached.
        client: Client id.
        host: Host as the broker recorded it.
        instance: `group.instance.id`; None for a dynamic member.
        rack: Its rack; None when absent.
        topics: Subscribed topic names.
        regex: Subscribed regular expression; None when there is none.
        owned: Partitions that it owns.
        target: Partitions that the coordinator wants it to own.
        classic: It uses the classic protocol; None when the broker does not say (before 4.0).
    """

    id: str
    epoch: int
    client: str = ""
    host: str = ""
    instance: str | None = None
    rack: str | None = None
    topics: tuple[str, ...] = ()
    regex: str | None = None
    owned: SeenPartitions = ()
    target: SeenPartitions = ()
    classic: bool | None = None


class ConsumerSeen(msgspec.Struct, frozen=True, tag="consumer_seen", tag_field="type"):
    """Membership of a consumer group that its coordinator assigns (KIP-848).

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        round: The round's number.
        group: Group id.
        epoch: Group epoch.
        assignment_epoch: Epoch of the target assignment; below `epoch` while the next one is being computed.
        assignor: The server assignor in use.
        members: Its members, in the order of the answer.
        more: As in `ClassicSeen`.
    """

    v: int
    cluster: str
    round: int
    group: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ConsumerMemberSeen, ...]
    more: int = 0


class CommitsSeen(msgspec.Struct, frozen=True, tag="commits_seen", tag_field="type"):
    """A group's committed offsets by OffsetFetch: those that moved since they were last reported, or all.

    Attributes:
        v: Schema version.
        cluster: Configured name of the cluster.
        round: The round's number.
        group: Group id.
        whole: These are all offsets of the group: others are gone.
        offsets: (partition, committed offset) by topic; -1 for an offset that is gone.
    """

    v: int
    cluster: str
    round: int
    group: str
    whole: bool
    offsets: dict[str, tuple[tuple[int, int], ...]]


SeenEvent = ClassicSeen | ConsumerSeen | CommitsSeen

SEEN_TYPES: Final = frozenset({"classic_seen", "consumer_seen", "commits_seen"})
"""Types of the events of this module."""


def wrong_seen(event: SeenEvent) -> str | None:
    """Why an event contradicts itself; None when it does not."""
    if not 0 <= event.round <= _MAX_OFFSET:
        return f"round {event.round}"
    if isinstance(event, CommitsSeen):
        for offsets in event.offsets.values():
            for partition, offset in offsets:
                if not (0 <= partition < _MAX_PARTITION and -1 <= offset <= _MAX_OFFSET):
                    return f"committed offset {offset} of partition {partition}"
            if len({partition for partition, _ in offsets}) != len(offsets):
                return "two committed offsets of one partition"
        return None
    if not 0 <= event.more <= _MAX_INT32 or (event.more and event.members):
        return f"{len(event.members)} members and {event.more} more"
    if len({member.id for member in event.members}) != len(event.members):
        return "two members with one id"
    if isinstance(event, ConsumerSeen):
        return _wrong_consumer(event)
    return None


def _wrong_consumer(event: ConsumerSeen) -> str | None:
    epochs = (event.epoch, event.assignment_epoch, *(member.epoch for member in event.members))
    if not all(-_MAX_INT32 <= epoch <= _MAX_INT32 for epoch in epochs):
        return "an epoch beyond int32"
    for member in event.members:
        for _, _, partitions in (*member.owned, *member.target):
            if partitions and not (min(partitions) >= 0 and max(partitions) < _MAX_PARTITION):
                return f"partition {min(partitions)} or {max(partitions)} of a member"
    return None
