"""The inputs of a broker's assignor (KIP-848): who is in the group, its topics, and what each member had as target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assignors.exceptions import BadPartitionCount, DuplicateMember
from assignors.model import MAX_PARTITIONS
from assignors.server.exceptions import BadTarget, BadUuid
from assignors.server.uuid import Uuid, uuid_of

__all__ = ["ServerGroup", "ServerMember", "ServerTopic", "Target"]

Target = tuple[tuple[str, Sequence[int]], ...]
"""Partitions by topic id, in the order of the record: ((topic id, (partition, ...)), ...)."""

_INT32 = 1 << 31


@dataclass(frozen=True, slots=True)
class ServerTopic:
    """A topic of the broker's metadata.

    Attributes:
        topic_id: Uuid as Kafka prints it.
        partitions: Partition count.
    """

    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class ServerMember:
    """What the coordinator knows of one member.

    Attributes:
        member_id: Member id.
        topics: Names of subscribed topics, in the order in which the assignor is shown them; a name twice counts
            once. The order counts only where two ids share a bucket. A coordinator shows them in the order of a
            HashSet of names: `assignors.server.hash_order.names_in_hash_order` of the record's.
        target: Previous target assignment, in record order (type 7).
        group_instance_id: `group.instance.id`; None for a dynamic member.
        rack: `client.rack`; no built-in assignor looks at it (since 3.8).
    """

    member_id: str
    topics: tuple[str, ...]
    target: Target = ()
    group_instance_id: str | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """One group at the coordinator's decision.

    Attributes:
        members: Members in the order in which they were put into the coordinator's HashMap; it counts only where
            two of them share a bucket.
        topics: Topics that exist, by name. A subscribed name that is not among them is passed over, as the
            coordinator does (`TopicIds`), save that it makes subscriptions different.

    Raises:
        DuplicateMember: A member id stands twice.
        BadPartitionCount: A count is negative or no whole number, or all together are above `MAX_PARTITIONS`.
        BadUuid: A topic id is no uuid, or two topics have the same.
        BadTarget: A target holds a topic twice, or a partition that is no int32.
    """

    members: tuple[ServerMember, ...]
    topics: Mapping[str, ServerTopic]
    counts: dict[str, int] = field(init=False, repr=False, compare=False)
    _ids: dict[str, Uuid] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for member in self.members:
            if member.member_id in seen:
                message = f"Member {member.member_id!r} stands twice in the group: list each member once."
                raise DuplicateMember(message)
            seen.add(member.member_id)
            _check_target(member)
        ids: dict[str, Uuid] = {}
        counts: dict[str, int] = {}
        for name, topic in self.topics.items():
            uuid = uuid_of(topic.topic_id)
            if uuid.text in counts:
                message = f"Topic id {uuid.text} stands twice: each topic has its own."
                raise BadUuid(message)
            if type(topic.partitions) is not int or not 0 <= topic.partitions <= MAX_PARTITIONS:
                message = f"Topic {name!r} has the partition count {topic.partitions!r}: give 0 to {MAX_PARTITIONS}."
                raise BadPartitionCount(message)
            ids[name] = uuid
            counts[uuid.text] = topic.partitions
        if sum(counts.values()) > MAX_PARTITIONS:
            message = (
                f"The group's topics have {sum(counts.values())} partitions together: {MAX_PARTITIONS} is the most."
            )
            raise BadPartitionCount(message)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "_ids", ids)

    @property
    def homogeneous(self) -> bool:
        """Whether every subscribed name is subscribed by every member (`ModernGroup.subscriptionType`)."""
        return len({frozenset(member.topics) for member in self.members}) <= 1

    def subscribed(self, member: ServerMember) -> list[Uuid]:
        """Ids of a member's topics that exist, in its order, once each."""
        return [self._ids[name] for name in dict.fromkeys(member.topics) if name in self._ids]


def _check_target(member: ServerMember) -> None:
    seen: set[str] = set()
    for topic_id, partitions in member.target:
        text = uuid_of(topic_id).text
        if text in seen:
            message = f"Topic {text} stands twice in the target of member {member.member_id!r}: the broker refuses it."
            raise BadTarget(message)
        seen.add(text)
        if not set(map(type, partitions)) <= {int} or (
            partitions and (min(partitions) < -_INT32 or max(partitions) >= _INT32)
        ):
            message = f"The target of member {member.member_id!r} has a partition of {text} that is no int32."
            raise BadTarget(message)
