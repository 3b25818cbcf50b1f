"""The input of a leader: the group's members, their subscriptions, the partition counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assignors.assignment import Assignment
from assignors.exceptions import BadGroup

TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by topic, in the order of the record: ((topic, (partition, ...)), ...)."""

# As many as the largest clusters have in total (KRaft: one to two million), and few enough that a wrong number in a
# line of input leads to an error and does not fill the machine's memory.
MAX_PARTITIONS = 2_000_000


class _Subscriber(Protocol):
    @property
    def topics(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's data as the leader gets it (`ConsumerPartitionAssignor.Subscription`).

    Attributes:
        member_id: Member id.
        topics: Subscribed topics in the order of the bytes; a topic may occur twice, which some libraries count twice.
        owned: Owned partitions (v1+) in the order of the bytes.
        generation: Generation in the bytes (v2+); None when absent or negative.
        group_instance_id: `group.instance.id`; None for a dynamic member.
        rack: `client.rack`; None when absent. An empty text counts as absent, except for librdkafka's sticky strategy.
        user_data: The assignor's own bytes; None when null, which differs from empty.
    """

    member_id: str
    topics: tuple[str, ...]
    owned: TopicPartitions = ()
    generation: int | None = None
    group_instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """One group at the leader's decision.

    Attributes:
        members: Members in record order, the order of the leader's JoinGroup response, which some strategies use.
        partitions_per_topic: Partition count by topic in the leader's metadata. A topic that is missing, or has 0, did
            not exist for the leader.
        remembered_generation: Highest generation in earlier decisions of the leader's assignor, which remembers it as
            long as its process lives (Java's sticky strategies from 3.0 on); -1 for none. It matters only if it is
            above all generations of the members.
        other_topics_known: Whether the leader's metadata has topics without any subscriber, which affects
            kafka-python's sticky strategies.
        leader: Member id of the leader, for libraries that deal the leader's own topics only; None when unknown.

    Raises:
        BadGroup: A member id occurs twice, a count is negative or not a whole number, or the counts
            together are above `MAX_PARTITIONS`.
    """

    members: tuple[Subscription, ...]
    partitions_per_topic: Mapping[str, int]
    remembered_generation: int = -1
    other_topics_known: bool = False
    leader: str | None = None
    _by_id: dict[str, Subscription] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_once(member.member_id for member in self.members)
        require_counts(self.partitions_per_topic)
        object.__setattr__(self, "_by_id", {member.member_id: member for member in self.members})

    def member(self, member_id: str) -> Subscription | None:
        """The member with this id, or None."""
        return self._by_id.get(member_id)


def topics_listed(members: Iterable[_Subscriber]) -> list[tuple[str, ...]]:
    """Topics that each member lists; equal lists are one object, so equal subscriptions are compared once."""
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = []
    last: tuple[str, ...] = ()
    for member in members:
        if member.topics is not last and member.topics != last:
            last = known.setdefault(member.topics, member.topics)
        result.append(last)
    return result


def require_once(member_ids: Iterable[str]) -> None:
    """Refuse a group that lists a member twice; raises BadGroup."""
    seen: set[str] = set()
    for member_id in member_ids:
        if member_id in seen:
            message = f"Member {member_id!r} appears twice in the group: list each member once."
            raise BadGroup(message)
        seen.add(member_id)


def require_counts(counts: Mapping[str, int]) -> None:
    """Refuse partition counts, by topic, that no cluster could have; raises BadGroup."""
    total = 0
    for topic, count in counts.items():
        if type(count) is not int or not 0 <= count <= MAX_PARTITIONS:
            message = f"Topic {topic!r} has the partition count {count!r}: give 0 to {MAX_PARTITIONS}."
            raise BadGroup(message)
        total += count
    if total > MAX_PARTITIONS:
        message = f"The group's topics have {total} partitions in total: the limit is {MAX_PARTITIONS}."
        raise BadGroup(message)


PartitionRacks = Mapping[str, Sequence[Sequence[str]]]
"""Racks of the replicas of each partition, by topic: racks[topic][partition] lists them, in any order."""

Recompute = Callable[[Group, PartitionRacks | None], Assignment]
"""Computes the assignment of a leader of one era; raises CannotTell or LeaderWouldFail (assignors.exceptions)."""
