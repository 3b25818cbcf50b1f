"""What the names of strategies promise, checked on what real leaders decided.

With equal subscriptions: under `range`, the shares of each topic differ by at most one; under `roundrobin`, the totals
do or the shares of each topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from streaming.records import MembershipRecord

_RANGE = {"range"}
_ROUNDROBIN = {"roundrobin", "RoundRobinAssigner"}


def facts(record: MembershipRecord, counts: Mapping[str, int]) -> Mapping[str, int]:
    """What one decision shows.

    Args:
        record: The decision.
        counts: Partitions of each topic, at a round behind it.

    Returns:
        The number of partitions with `two owners`, `not subscribed` by their owner, `beyond` their topic's count, and
        `unowned` though somebody subscribed; with equal subscriptions, the largest differences between two members'
        shares of a topic (`topic`) and totals (`total`); `undecoded` members, without which nothing else is known.
    """
    members = record.members
    undecoded = sum(member.topics is None or member.assigned is None for member in members)
    if undecoded:
        return {"undecoded": undecoded}
    owners: Counter[tuple[str, int]] = Counter()
    found = Counter({"equal": 0})
    for member in members:
        for topic, partitions in member.assigned or ():
            for partition in partitions:
                owners[topic, partition] += 1
                found["not subscribed"] += topic not in (member.topics or ())
                found["beyond"] += partition >= counts.get(topic, 0)
    found["two owners"] = sum(count > 1 for count in owners.values())
    subscribed = {topic for member in members for topic in member.topics or ()}
    found["unowned"] = sum(
        (topic, partition) not in owners for topic in subscribed for partition in range(counts.get(topic, 0))
    )
    if len({frozenset(member.topics or ()) for member in members}) == 1 and len(members) > 1:
        found["equal"] = 1
        shares = [{topic: len(of) for topic, of in member.assigned or ()} for member in members]
        found["topic"] = max(_spread([share.get(topic, 0) for share in shares]) for topic in subscribed)
        found["total"] = _spread([sum(share.values()) for share in shares])
    return found


def broken(record: MembershipRecord, counts: Mapping[str, int]) -> bool:
    """Whether a decision breaks what its strategy's name promises."""
    found = facts(record, counts)
    by_topic, in_total = (found.get(spread, 0) > 1 for spread in ("topic", "total"))
    return by_topic if record.protocol in _RANGE else record.protocol in _ROUNDROBIN and by_topic and in_total


def _spread(numbers: Iterable[int]) -> int:
    numbers = list(numbers)
    return max(numbers) - min(numbers)
