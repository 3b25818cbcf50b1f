"""What every assignment must keep, checked without recomputation: invariants, and what the strategy's name promises.

A promise is listed here only if no known client breaks it. `range` and `roundrobin` are names that many clients use for
algorithms of their own. The sources read, beside those that are recomputed: pykafka 2.8, ruby-kafka 1.5, and of Rust
kafka_client 0.8, kafrust 0.2, krabka 0.7, rustfs-kafka 1.4 and samsa 0.1. All of them, with equal subscriptions, deal

- `range`: each topic evenly. kafka-php deals all topics in turn under this name, which is even in each topic, too;
- `roundrobin`: all partitions evenly (Java and others), or each topic evenly (kafka-go, samsa, sarama-cluster, sarama
  before 1.28). sarama from 1.28 on is even only in total, since it sorts partitions as text;
- `sticky`: all partitions evenly, also where claims are in conflict or name partitions that do not exist.

`cooperative-sticky` promises nothing: partitions that move are held back, which leaves members uneven in each library.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from assignors.assignment import Assignment, PartitionId, Partitions
from assignors.model import Subscription

DOUBLY_ASSIGNED = "doubly_assigned"
NOT_SUBSCRIBED = "not_subscribed"
BEYOND_COUNT = "beyond_count"


@dataclass(frozen=True, slots=True)
class Violation:
    """A partition that a member must not own.

    Attributes:
        kind: `DOUBLY_ASSIGNED` (an earlier member of the assignment, or the same list, has it already),
            `NOT_SUBSCRIBED` (the member does not subscribe to the topic) or `BEYOND_COUNT` (the partition does not
            exist).
        topic: Topic.
        partition: Partition.
        member: The member that wrongly has it; with `DOUBLY_ASSIGNED` each one after the first.
    """

    kind: str
    topic: str
    partition: int
    member: str


def violations(
    assignment: Assignment,
    subscribed: Mapping[str, Collection[str]],
    partitions_per_topic: Mapping[str, int],
) -> tuple[Violation, ...]:
    """Find violations that no strategy may cause.

    Args:
        assignment: The actual assignment.
        subscribed: Topics by member id. A member that is missing here was not decoded, so its subscription is unknown
            and not judged.
        partitions_per_topic: Partition counts. A missing topic has an unknown count and is not judged for
            `BEYOND_COUNT`; 0 means that the topic does not exist.

    Returns:
        Violations in the order of the assignment; () for a sound one. One partition can have several.
    """
    found: list[Violation] = []
    taken: dict[str, set[int]] = {}
    for member_id, topics in assignment.items():
        wanted = subscribed.get(member_id)
        for topic, partitions in topics.items():
            if not partitions:
                continue
            if wanted is not None and topic not in wanted:
                found.extend(Violation(NOT_SUBSCRIBED, topic, partition, member_id) for partition in partitions)
            count = partitions_per_topic.get(topic)
            if count is not None and (max(partitions) >= count or min(partitions) < 0):
                found.extend(
                    Violation(BEYOND_COUNT, topic, partition, member_id)
                    for partition in partitions
                    if not 0 <= partition < count
                )
            of_topic = taken.setdefault(topic, set())
            of_member = set(partitions)
            if len(of_member) < len(partitions) or not of_topic.isdisjoint(of_member):
                found.extend(_doubly(of_topic, topic, member_id, partitions))
            of_topic |= of_member
    return tuple(found)


def _doubly(taken: Collection[int], topic: str, member_id: str, partitions: Partitions) -> Iterable[Violation]:
    """Partitions of one member's list that an earlier member, or the same list, has already."""
    of_list: set[int] = set()
    for partition in partitions:
        if partition in taken or partition in of_list:
            yield Violation(DOUBLY_ASSIGNED, topic, partition, member_id)
        of_list.add(partition)


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """Uneven shares where the strategy's name promises even ones.

    Attributes:
        topic: The topic whose shares are uneven; None for the totals of all topics.
        fewest: Smallest share, in partitions.
        most: Largest share; at least `fewest` + 2.
        least_loaded: Members with the smallest share, sorted.
        most_loaded: Members with the largest share, sorted.
        surplus: Partitions that members have beyond `fewest` + 1, the last ones of each member in the order of topic
            and number; sorted.
    """

    topic: str | None
    fewest: int
    most: int
    least_loaded: tuple[str, ...]
    most_loaded: tuple[str, ...]
    surplus: tuple[PartitionId, ...]


def broken_promises(
    strategy: str, members: Sequence[Subscription], assignment: Assignment
) -> tuple[BrokenPromise, ...]:
    """What an assignment breaks of what its strategy's name promises.

    Only the assigned partitions count, so it does not matter which topics and partitions the leader knew.

    Args:
        strategy: Protocol name. A name without a promise is never broken.
        members: All members. Nothing is promised unless all subscribe to the same topics, each listed once, and all or
            none are static: kafka-python mixes static and dynamic members up. A member whose subscription was not
            decoded must not be passed as one without topics: then do not ask.
        assignment: The actual assignment.

    Returns:
        For `range` one per uneven topic, sorted; for `roundrobin` and `sticky` at most one, of the totals, and for
        `roundrobin` only if a topic is uneven as well. () for an assignment that keeps the promise.
    """
    if strategy not in _PROMISING or not _are_alike(members):
        return ()
    ids = [member.member_id for member in members]
    by_topic: dict[str, dict[str, Partitions]] = {}
    for member_id in ids:
        for topic, partitions in assignment.get(member_id, {}).items():
            by_topic.setdefault(topic, {})[member_id] = partitions
    uneven = [topic for topic in sorted(by_topic) if _is_uneven([len(by_topic[topic].get(m, ())) for m in ids])]
    if strategy == _EACH_TOPIC:
        return tuple(_broken(topic, ids, {topic: by_topic[topic]}) for topic in uneven)
    totals = [sum(len(of_member.get(m, ())) for of_member in by_topic.values()) for m in ids]
    if not _is_uneven(totals) or (strategy == _TOTALS_OR_EACH_TOPIC and not uneven):
        return ()
    return (_broken(None, ids, by_topic),)


_EACH_TOPIC, _TOTALS_OR_EACH_TOPIC, _TOTALS = "range", "roundrobin", "sticky"
_PROMISING = frozenset({_EACH_TOPIC, _TOTALS_OR_EACH_TOPIC, _TOTALS})


def _are_alike(members: Sequence[Subscription]) -> bool:
    topics = frozenset(members[0].topics) if members else frozenset()
    # librdkafka reads "^" at the start of a topic as a pattern.
    return (
        bool(topics)
        and all(len(member.topics) == len(topics) and topics == frozenset(member.topics) for member in members)
        and len({member.group_instance_id is not None for member in members}) == 1
        and not any(topic.startswith("^") for topic in topics)
    )


def _is_uneven(shares: Sequence[int]) -> bool:
    return max(shares) - min(shares) > 1


def _broken(
    topic: str | None, members: Sequence[str], by_topic: Mapping[str, Mapping[str, Partitions]]
) -> BrokenPromise:
    owned = {
        member_id: sorted((name, partition) for name, of in by_topic.items() for partition in of.get(member_id, ()))
        for member_id in members
    }
    shares = {member_id: len(partitions) for member_id, partitions in owned.items()}
    fewest, most = min(shares.values()), max(shares.values())
    return BrokenPromise(
        topic,
        fewest,
        most,
        least_loaded=tuple(sorted(member_id for member_id, share in shares.items() if share == fewest)),
        most_loaded=tuple(sorted(member_id for member_id, share in shares.items() if share == most)),
        surplus=tuple(sorted(partition for partitions in owned.values() for partition in partitions[fewest + 1 :])),
    )
