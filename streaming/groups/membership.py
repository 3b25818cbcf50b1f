"""Who owns what in one generation, read off a membership record."""

from __future__ import annotations

from functools import lru_cache

from assignors import AssignorError, BadGroup, Group, Subscription, imbalance, imbalance_least
from streaming.groups.inputs import Member, MembershipRecord

__all__ = [
    "MAX_GROUP_PARTITIONS",
    "Owners",
    "balance_of",
    "counts_of",
    "group_of",
    "is_consumer",
    "leader_count",
    "owners_of",
    "subscribed_topics",
    "subscription_of",
    "undecodable",
]

Owners = dict[str, dict[int, str]]
"""Member id by topic and partition."""

# A record may claim partition 2,147,483,646; recomputing a group of that size would stop the job. The largest groups
# in Kafka's own scale tests have 1,000,000 partitions (kafka.md 6.3).
MAX_GROUP_PARTITIONS = 2_000_000

CONSUMER = "consumer"
"""Protocol type whose subscriptions and assignments are topic partitions."""


def is_consumer(record: MembershipRecord) -> bool:
    """Whether the record speaks the consumer protocol."""
    return record.protocol_type == CONSUMER


def undecodable(record: MembershipRecord) -> Member | None:
    """First member whose subscription or assignment cannot be read; None when all can."""
    for member in record.members:
        if member.undecodable is not None or member.topics is None or member.assigned is None:
            return member
    return None


def owners_of(record: MembershipRecord) -> Owners | None:
    """Owner of each assigned partition; of a partition assigned twice the first in record order.

    Returns:
        None when the record does not speak the consumer protocol or a member cannot be decoded.
    """
    if not record.members:
        return {}
    if not is_consumer(record) or undecodable(record) is not None:
        return None
    owners: Owners = {}
    for member in record.members:
        member_id = member.member_id
        for topic, partitions in member.assigned or ():
            of_topic = owners.setdefault(topic, {})
            for partition in partitions:
                of_topic.setdefault(partition, member_id)
    return owners


def counts_of(record: MembershipRecord) -> list[int] | None:
    """Assigned partitions per member, in record order; None when a member's are not known."""
    counts = []
    for member in record.members:
        if member.assigned is None:
            return None
        counts.append(sum(len(partitions) for _, partitions in member.assigned))
    return counts


def subscribed_topics(record: MembershipRecord) -> frozenset[str] | None:
    """Topics that any member subscribes to; None when there is no consumer membership that tells."""
    if not record.members or not is_consumer(record):
        return None
    topics: set[str] = set()
    for member in record.members:
        if member.topics is None:
            return None
        topics.update(member.topics)
    return frozenset(topics)


def leader_count(record: MembershipRecord, topic: str) -> int:
    """Partition count of a topic as the leader knew it at least: the highest assigned partition plus one."""
    highest = -1
    for member in record.members:
        for name, partitions in member.assigned or ():
            if name == topic and partitions:
                highest = max(highest, *partitions)
    return highest + 1


def group_of(record: MembershipRecord) -> Group:
    """The group as its leader saw it, with the partition counts that its own assignment shows.

    Raises:
        AssignorError: The record is no group that a leader could have seen (a member id twice, ...).
    """
    topics = dict.fromkeys(topic for member in record.members for topic in member.topics or ())
    counts = {topic: leader_count(record, topic) for topic in topics}
    if sum(counts.values()) > MAX_GROUP_PARTITIONS:
        message = f"the record assigns partition numbers up to {max(counts.values()) - 1}: no such group is computed"
        raise BadGroup(message)
    return Group(tuple(map(subscription_of, record.members)), counts)


def balance_of(record: MembershipRecord) -> tuple[float | None, float | None]:
    """Imbalance of a decision, and the least that any assignment of the same partitions could have.

    Returns:
        (None, None) when nothing is assigned or a member cannot be decoded.
    """
    counts = counts_of(record) if is_consumer(record) else None
    if not counts or not sum(counts) or undecodable(record) is not None:
        return None, None
    try:
        return imbalance(counts), imbalance_least(group_of(record))
    except AssignorError:
        return imbalance(counts), None


@lru_cache(maxsize=4096)
def subscription_of(member: Member) -> Subscription:
    """A member as the assignors take it."""
    return Subscription(
        member_id=member.member_id,
        topics=member.topics or (),
        owned=member.owned,
        generation=member.generation,
        group_instance_id=member.group_instance_id,
        rack=member.rack,
        user_data=member.user_data,
    )
