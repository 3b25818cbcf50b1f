"""The partition counts that a group's leader may have known.

A strategy assigns every partition that the leader knows, so the assignment shows the count of each topic, and the
rounds around the decision show whether the topic had that count (`seen_counts`).

There are exceptions (`possible_counts`). `cooperative-sticky` holds back partitions that another member still owns, so
the topic may have more partitions than assigned. Java's sticky strategies leave a member its previous partitions even
if the topic has become smaller, so it may have fewer. A user's own strategy may leave any partition unassigned.

A record may contain any partition number up to 2**31 - 1, and assigning that many partitions costs the time and memory
of real ones. So a count far higher than rounds have seen is not tried.
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
"""Strategies whose result depends on the members' previous partitions."""

_COOPERATIVE = "cooperative-sticky"

# A leader may know higher counts than the rounds have seen, for a topic created or enlarged since. A count that no
# round has seen never gives the verdict `identical`, so higher limits would gain little; lower ones would miss more
# misplaced partitions in topics that have just grown.
_TIMES_SEEN = 2
_BEYOND_SEEN = 100


@dataclass(frozen=True, slots=True)
class SeenCounts:
    """One topic's partition counts around a decision, as the rounds have seen them.

    Attributes:
        seen: Counts seen from the grace period before the decision to the first round after it.
        newest: The last of them.
        complete: Rounds have shown the same topic during the whole grace period before the decision. Counts only grow,
            so no count outside the range of `seen` was in force.
        leader: Lower bound of the leader's count.
    """

    seen: frozenset[int]
    newest: int
    complete: bool
    leader: int

    @property
    def ahead(self) -> bool:
        """Whether the leader knew more partitions than any round has seen."""
        return self.leader > max(self.seen)

    @property
    def impossible(self) -> bool:
        """Whether the leader's count was certainly never in force; one between two seen counts may have been."""
        return self.complete and not min(self.seen) <= self.leader <= max(self.seen)


def seen_counts(state: GroupState, record: MembershipRecord, config: GroupConfig) -> dict[str, SeenCounts]:
    """The counts of each subscribed or assigned topic; topics that no round has shown are missing."""
    horizon = record.record_time - config.metadata_grace_ms
    return {
        topic: _of_topic(state.topics[topic], horizon, leader)
        for topic, leader in leader_counts(record).items()
        if topic in state.topics
    }


def is_far_beyond(count: int, seen: int) -> bool:
    """Whether a leader's count, of one topic or of all together, is too far above the rounds' to be tried."""
    return count > _TIMES_SEEN * seen + _BEYOND_SEEN


def possible_counts(
    strategy: Strategy, members: Collection[Subscription], shown: Mapping[str, int], seen: Mapping[str, Collection[int]]
) -> Iterator[dict[str, int]]:
    """Yield counts by topic that the leader may have known, those seen by rounds first.

    Args:
        strategy: The group's strategy; if it is neither sticky nor custom, only `shown` is possible.
        members: The members.
        shown: Per topic the highest assigned partition plus one.
        seen: Per topic the counts that rounds have seen around the decision.

    Yields:
        Nothing if all possible counts are far higher than rounds have seen.
    """
    for counts in product(*_options(strategy, members, shown, seen)):
        yield dict(zip(shown, counts, strict=True))


def _options(
    strategy: Strategy, members: Collection[Subscription], shown: Mapping[str, int], seen: Mapping[str, Collection[int]]
) -> Sequence[Sequence[int]]:
    """Possible counts of each topic."""
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
