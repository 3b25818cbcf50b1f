"""Which partition counts a leader of a sticky group may have known, where its assignment alone does not show them.

A leader hands out every partition that it knows, so that the highest assigned one shows a topic's count; with two
exceptions, both about partitions that a member says it had. `cooperative-sticky` holds back what another member still
owns: then there may be more partitions than assigned ones. And Java's sticky strategies leave with a member what it
had, even where the topic has become smaller: then there may be fewer. Of a user's own strategy nothing is known: it
may leave any partition to nobody.

Any number up to 2**31 - 1 can stand in a record, and dealing so many partitions takes as much time and memory as if
they were there: a count far beyond what rounds have seen is not tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from assignors import Strategy, Subscription, claimed_partitions

__all__ = ["STICKY", "is_far_beyond", "possible_counts"]

STICKY: Final = frozenset({"sticky", "cooperative-sticky"})
"""Strategies that go by what members had: without it they are not asked what they would be asked in a group."""

_COOPERATIVE = "cooperative-sticky"

# A leader may know more than the rounds have seen: a topic that was made, or doubled, since. A count that no round has
# seen never makes a verdict `identical`, so that little is lost beyond this; less, and a misplaced partition of a topic
# that has just grown would be passed over more often.
_TIMES_SEEN = 2
_BEYOND_SEEN = 100


def is_far_beyond(count: int, seen: int) -> bool:
    """Whether a leader's count, of one topic or of all together, is not tried for being far beyond the rounds'."""
    return count > _TIMES_SEEN * seen + _BEYOND_SEEN


def possible_counts(
    strategy: Strategy, members: Collection[Subscription], shown: Mapping[str, int], seen: Mapping[str, Collection[int]]
) -> Iterator[dict[str, int]]:
    """Yield counts by topic that the leader may have known; those first that rounds have seen.

    Args:
        strategy: The group's strategy; of one that is neither sticky nor custom only `shown` is possible.
        members: The members.
        shown: Per topic the highest assigned partition plus one.
        seen: Per topic the counts that rounds have seen around the decision.

    Yields:
        Nothing where only counts are possible that are far beyond what rounds have seen.
    """
    for counts in product(*_options(strategy, members, shown, seen)):
        yield dict(zip(shown, counts, strict=True))


def _options(
    strategy: Strategy, members: Collection[Subscription], shown: Mapping[str, int], seen: Mapping[str, Collection[int]]
) -> Sequence[Sequence[int]]:
    """Counts of each topic."""
    likely = {topic: [] if is_far_beyond(count, max(seen[topic])) else [count] for topic, count in shown.items()}
    if strategy.custom:
        return [[*likely[topic], *(c for c in sorted(seen[topic]) if c > count)] for topic, count in shown.items()]
    if strategy.name not in STICKY:
        return list(likely.values())
    claimed = dict.fromkeys(shown, 0)
    for member in members:
        for topic, partitions in claimed_partitions(member):
            if topic in claimed:
                claimed[topic] = max(claimed[topic], max(partitions, default=-1) + 1)
    held_back = strategy.name == _COOPERATIVE
    options = []
    for topic, count in shown.items():
        most = claimed[topic]
        others = [c for c in sorted(seen[topic]) if (held_back and count < c <= most) or c < count <= most]
        options.append([*likely[topic], *others] if count in seen[topic] else [*others, *likely[topic]])
    return options
