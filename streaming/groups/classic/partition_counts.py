"""Which partition counts the leader of a group may have known.

A strategy hands out every partition that the leader knows, so the assignment shows the count of each topic, and the
rounds around the decision say whether there was such a count (`seen_counts`).

Sticky groups are the exception, for partitions that a member says it had (`possible_counts`). `cooperative-sticky`
holds back what another member still owns: then there may be more partitions than assigned ones. And Java's sticky
strategies leave with a member what it had, even where the topic has become smaller: then there may be fewer. Nothing is
known of a user's own strategy: it may leave any partition to nobody.

Any number up to 2**31 - 1 can stand in a record, and dealing so many partitions takes as much time and memory as if
they were there: a count far beyond what rounds have seen is not tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from assignors import Strategy, Subscription, claimed_partitions
from streaming.groups.classic.membership import leader_counts
from streaming.groups.config import GroupConfig
from streaming.groups.state import GroupState
from streaming.groups.topics import TopicState, counts_from
from streaming.records import MembershipRecord

__all__ = ["STICKY", "SeenCounts", "is_far_beyond", "possible_counts", "seen_counts"]

STICKY: Final = frozenset({"sticky", "cooperative-sticky"})
"""Strategies that go by what members had: without it they are not asked what they would be asked in a group."""

_COOPERATIVE = "cooperative-sticky"

# A leader may know more than the rounds have seen: a topic that was made, or doubled, since. A count that no round has
# seen never makes a verdict `identical`, so that little is lost beyond this; less, and a misplaced partition of a topic
# that has just grown would be passed over more often.
_TIMES_SEEN = 2
_BEYOND_SEEN = 100


@dataclass(frozen=True, slots=True)
class SeenCounts:
    """What the rounds know of one topic's partition count around a decision.

    Attributes:
        seen: Counts of the rounds from the grace period before the decision to the first round after it.
        newest: The last of them.
        complete: Rounds have shown the topic for all of the grace period before the decision, and the same
            topic: as counts only grow, none lower and none higher was possible.
        leader: Count as the leader knew it at least.
    """

    seen: frozenset[int]
    newest: int
    complete: bool
    leader: int

    @property
    def ahead(self) -> bool:
        """Whether the leader knew more partitions than any round."""
        return self.leader > max(self.seen)

    @property
    def impossible(self) -> bool:
        """Whether the leader's count was surely in force at no time (one between two may have been, unseen)."""
        return self.complete and not min(self.seen) <= self.leader <= max(self.seen)


def seen_counts(state: GroupState, record: MembershipRecord, config: GroupConfig) -> dict[str, SeenCounts]:
    """What the rounds know of each subscribed or assigned topic; topics no round has shown are missing."""
    horizon = record.record_time - config.metadata_grace_ms
    return {
        topic: _of_topic(state.topics[topic], horizon, leader)
        for topic, leader in leader_counts(record).items()
        if topic in state.topics
    }


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


def _of_topic(known: TopicState, horizon: int, leader: int) -> SeenCounts:
    return SeenCounts(
        seen=counts_from(known, horizon),
        newest=known.counts[-1].count,
        complete=known.since <= horizon and known.renewed <= horizon,
        leader=leader,
    )
