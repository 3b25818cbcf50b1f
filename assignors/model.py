"""The inputs of a leader: who is in the group, what each asks for, how many partitions there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assignors.exceptions import BadPartitionCount, DuplicateMember

__all__ = ["MAX_PARTITIONS", "Group", "Subscription", "TopicPartitions", "topics_listed"]

TopicPartitions = Sequence[tuple[str, tuple[int, ...]]]
"""Partitions by topic, in the order of the record: ((topic, (partition, ...)), ...), a tuple or `PackedPartitions`."""

# What the largest clusters hold in all (KRaft: one to two million), and low enough that a wrong number on a line
# of input costs an error and not the machine's memory.
MAX_PARTITIONS = 2_000_000


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one member told the leader, as `ConsumerPartitionAssignor.Subscription` holds it.

    Attributes:
        member_id: Member id.
        topics: Subscribed topics in the order of the bytes; a topic may stand twice, which some libraries count
            twice.
        owned: Owned partitions (v1+) in the order of the bytes; `pack` puts those of a large group into arrays.
        generation: Generation in the bytes (v2+); None when absent or negative.
        group_instance_id: `group.instance.id`; None for a dynamic member.
        rack: `client.rack`; None when absent. An empty text is none too, save to the sticky strategy of librdkafka.
        user_data: The assignor's own bytes; None when null, which is not the same as empty.
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
        members: Members in record order, which is the order of the leader's JoinGroup response and an input of
            some strategies.
        partitions_per_topic: Partition count by topic as the leader's metadata had it. A topic that is missing,
            or has 0, did not exist for the leader.
        remembered_generation: Highest generation that the leader's assignor has met in earlier decisions, which it
            keeps as long as its process lives (Java's sticky strategies from 3.0 on); -1 for none. Matters only where
            it is above all generations of the members.
        other_topics_known: Whether the leader's metadata has topics that no member subscribes to, which changes what
            kafka-python's sticky strategies do.

    Raises:
        DuplicateMember: A member id stands twice.
        BadPartitionCount: A count is negative or no whole number, or all together are above `MAX_PARTITIONS`.
    """

    members: tuple[Subscription, ...]
    partitions_per_topic: Mapping[str, int]
    remembered_generation: int = -1
    other_topics_known: bool = False
    _by_id: dict[str, Subscription] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_id = {member.member_id: member for member in self.members}
        if len(by_id) != len(self.members):
            seen: set[str] = set()
            for member in self.members:
                if member.member_id in seen:
                    message = f"Member {member.member_id!r} stands twice in the group: list each member once."
                    raise DuplicateMember(message)
                seen.add(member.member_id)
        total = 0
        for topic, count in self.partitions_per_topic.items():
            if type(count) is not int or not 0 <= count <= MAX_PARTITIONS:
                message = f"Topic {topic!r} has the partition count {count!r}: give 0 to {MAX_PARTITIONS}."
                raise BadPartitionCount(message)
            total += count
        if total > MAX_PARTITIONS:
            message = f"The group's topics have {total} partitions together: {MAX_PARTITIONS} is the most."
            raise BadPartitionCount(message)
        object.__setattr__(self, "_by_id", by_id)

    def member(self, member_id: str) -> Subscription | None:
        """The member of that id, or None."""
        return self._by_id.get(member_id)


def topics_listed(members: Iterable[Subscription]) -> list[tuple[str, ...]]:
    """Topics that each member lists, equal ones as one object: members that subscribe alike are compared once."""
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = []
    last: tuple[str, ...] = ()
    for member in members:
        if member.topics is not last and member.topics != last:
            last = known.setdefault(member.topics, member.topics)
        result.append(last)
    return result
