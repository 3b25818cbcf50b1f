"""Which partition counts a leader of a sticky group may have known, where its assignment alone does not show them.

A leader hands out every partition that it knows, so that the highest assigned one shows a topic's count; with two
exceptions, both about partitions that a member says it had. `cooperative-sticky` holds back what another member still
owns: then there may be more partitions than assigned ones. And Java's sticky strategies leave with a member what it
had, even where the topic has become smaller: then there may be fewer. Of a user's own strategy nothing is known: it
may leave any partition to nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import Final

from assignors import Strategy, Subscription, claimed_partitions

__all__ = ["STICKY", "possible_counts"]

STICKY: Final = frozenset({"sticky", "cooperative-sticky"})
"""Strategies that go by what members had: without it they are not asked what they would be asked in a group."""

_COOPERATIVE = "cooperative-sticky"


def possible_counts(
    strategy: Strategy, members: Collection[Subscription], shown: Mapping[str, int], seen: Mapping[str, Collection[int]]
) -> Iterator[dict[str, int]]:
    """Yield counts by topic that the leader may have known; those first that rounds have seen.

    Args:
        strategy: The group's strategy; of one that is neither sticky nor custom only `shown` is possible.
        members: The members.
        shown: Per topic the highest assigned partition plus one.
        seen: Per topic the counts that rounds have seen around the decision.
    """
    if strategy.custom:
        for counts in product(
            *([count, *(c for c in sorted(seen[topic]) if c > count)] for topic, count in shown.items())
        ):
            yield dict(zip(shown, counts, strict=True))
        return
    if strategy.name not in STICKY:
        yield dict(shown)
        return
    claimed = dict.fromkeys(shown, 0)
    for member in members:
        for topic, partitions in claimed_partitions(member):
            if topic in claimed:
                claimed[topic] = max(claimed[topic], max(partitions, default=-1) + 1)
    options = [
        _of_topic(count, claimed[topic], seen[topic], held_back=strategy.name == _COOPERATIVE)
        for topic, count in shown.items()
    ]
    for counts in product(*options):
        yield dict(zip(shown, counts, strict=True))


def _of_topic(count: int, claimed: int, seen: Collection[int], *, held_back: bool) -> list[int]:
    others = [c for c in sorted(seen) if (held_back and count < c <= claimed) or c < count <= claimed]
    return [count, *others] if count in seen else [*others, count]
