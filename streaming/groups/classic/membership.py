"""Who owns what in one generation, read off a membership record."""

from __future__ import annotations

from functools import lru_cache

from assignors import AssignorError, BadGroup, Group, Subscription, imbalance, imbalance_least
from streaming.records import Member, MembershipRecord

__all__ = [
    "MAX_GROUP_PARTITIONS",
    "Owners",
    "balance_of",
    "counts_of",
    "group_of",
    "is_consumer",
    "leader_counts",
    "owners_of",
    "owning_members",
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


def owning_members(record: MembershipRecord) -> dict[str, dict[int, Member]]:
    """Member that owns each partition, by topic; of a partition assigned twice the first in record order.

    What cannot be decoded owns nothing; empty when the record does not speak the consumer protocol.
    """
    owners: dict[str, dict[int, Member]] = {}
    if is_consumer(record):
        for member in record.members:
            for topic, partitions in member.assigned or ():
                of_topic = owners.setdefault(topic, {})
                for partition in partitions:
                    of_topic.setdefault(partition, member)
    return owners


def owners_of(record: MembershipRecord) -> Owners | None:
    """Id of the member that owns each partition, by topic.

    Returns:
        None when the record does not speak the consumer protocol or a member cannot be decoded.
    """
    if not record.members:
        return {}
    if not is_consumer(record) or undecodable(record) is not None:
        return None
    return {topic: {p: m.member_id for p, m in of.items()} for topic, of in owning_members(record).items()}


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


def leader_counts(record: MembershipRecord) -> dict[str, int]:
    """Partition counts as the leader knew them at least: per topic the highest assigned partition plus one.

    Returns:
        Every subscribed or assigned topic; 0 where nothing of it is assigned.
    """
    counts = dict.fromkeys((topic for member in record.members for topic in member.topics or ()), 0)
    for member in record.members:
        for topic, partitions in member.assigned or ():
            counts[topic] = max(counts.get(topic, 0), max(partitions, default=-1) + 1)
    return counts


def group_of(record: MembershipRecord) -> Group:
    """The group as its leader saw it, with the partition counts that its own assignment shows.

    Raises:
        AssignorError: The record is no group that a leader could have seen (a member id twice, ...).
    """
    counts = leader_counts(record)
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
