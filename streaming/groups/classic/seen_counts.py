"""What the rounds know of the partition counts around a decision."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.groups.classic.membership import leader_counts
from streaming.groups.config import GroupConfig
from streaming.groups.state import GroupState
from streaming.groups.topics import TopicState
from streaming.records import MembershipRecord

__all__ = ["SeenCounts", "counts_from", "seen_counts"]


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


def counts_from(known: TopicState, horizon: int) -> frozenset[int]:
    """Counts that rounds have seen from a time on, with the one in force at it for all that they tell."""
    before = [count for count in known.counts if count.first <= horizon][-1:] or known.counts[:1]
    return frozenset(count.count for count in (*before, *(c for c in known.counts if c.first > horizon)))


def _of_topic(known: TopicState, horizon: int, leader: int) -> SeenCounts:
    return SeenCounts(
        seen=counts_from(known, horizon),
        newest=known.counts[-1].count,
        complete=known.since <= horizon and known.renewed <= horizon,
        leader=leader,
    )
