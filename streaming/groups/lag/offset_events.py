"""Events on committed offsets: deletion, expiry, rewinds, and topics deleted and created again.

A topic created again under its old name has new offsets, so earlier commits mean nothing for it. Topic ids are compared
if both commits (value version 4) and rounds (brokers since 2.8) have them. A commit without an id counts for the topic
that the last round before it showed, until the group commits again.

An event happens at one round; its finding stays as long as it matters: a rewind while the offset is below where it was,
an offset of a replaced topic until the group commits again, other events for some minutes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from streaming.groups.kind import FindingAtRound, finding_of
from streaming.groups.lag.state import DeletedOffsets, PartitionState
from streaming.groups.state import GroupState, TopicState
from streaming.records import TopicObservation
from streaming.terminal import counted

RECREATED = "topic_recreated"
"""Finding, and the reason of an unknown lag."""

_OFFSET_DELETED = "offset_deleted"
_DATA_LOST = "data_lost"

# `PartitionState.of_topic` of a commit without an id, made before the topic was created again.
_OTHER_TOPIC = ""

# Lag statuses of partitions whose offset may be below where it was.
TELLING = frozenset({"rewound", "unknown"})

# The tables' default heartbeat, long enough to be noticed by people who look only now and then.
_SHOWN_MS = 600_000


def was_recreated(known: TopicState, seen: TopicObservation) -> bool:
    """Whether a round shows a new topic under the old name.

    It has another id, or, if ids are unknown, fewer partitions: a topic never loses partitions.
    """
    if seen.partitions is None:
        return False
    if known.topic_id is not None and seen.topic_id is not None:
        return known.topic_id != seen.topic_id
    return seen.partitions < _count_before(known)


def note_recreation(known: TopicState, partitions: Iterable[PartitionState], time: int) -> None:
    """Note that a topic was deleted and created again, so that its commits are not compared with earlier ones."""
    known.recreated = time
    known.count_before = _count_before(known)
    for partition in partitions:
        partition.forget_rounds()
        partition.rewound_by = 0
        if partition.committed >= 0 and partition.of_topic is None:
            partition.of_topic = _OTHER_TOPIC


def settle(partition: PartitionState, seen: TopicObservation | None) -> None:
    """Clear `of_topic` if this round shows the commit's topic, or shows no topic id to compare it with."""
    if partition.of_topic and seen is not None and seen.topic_id in {None, partition.of_topic}:
        partition.of_topic = None


class OffsetEvents(NamedTuple):
    """What one round shows of the committed offsets of a group.

    Attributes:
        rewound: How far the offset is below where it was, in offsets, by topic and partition.
        lost: Number of offsets deleted before the group committed past them, by topic and partition.
        left_behind: Partitions whose offset is of an earlier topic of that name, by topic.
        deleted: Partitions whose offset was deleted since the round before, by topic.
    """

    rewound: dict[str, dict[int, int]]
    lost: dict[str, dict[int, int]]
    left_behind: Counter[str]
    deleted: Counter[str]

    def compare(
        self, topic: str, partition: int, known: PartitionState, reason: str | None, *, subscribed: bool
    ) -> None:
        """Compare a partition's committed offset with those before it.

        Args:
            topic: Topic.
            partition: Its number.
            known: Its state, including this round; its lag status is one of `TELLING`.
            reason: Why its lag is not known; None if it is.
            subscribed: The group subscribes to the topic.
        """
        if reason == RECREATED:
            self.left_behind[topic] += 1
        elif subscribed:
            # A round with unknown lag still has the commits.
            below = max(known.trend.high, known.trend.committed) - known.position
            if below > 0:
                self.rewound.setdefault(topic, {})[partition] = below


def findings_of_offsets(state: GroupState, time: int, events: OffsetEvents) -> list[FindingAtRound]:
    """The findings on committed offsets at a round.

    Args:
        state: The group's state, including this round.
        time: The round's time, ms.
        events: What the round shows.
    """
    if events.deleted:
        state.deleted = DeletedOffsets(dict(events.deleted), time)
    if state.deleted is not None and time - state.deleted.time >= _SHOWN_MS:
        state.deleted = None
    deleted = state.deleted or DeletedOffsets({}, time)
    recreated = [
        (topic.recreated if topic.recreated >= 0 else time, _recreated(name, topic, events.left_behind.get(name, 0)))
        for name, topic in sorted(state.topics.items())
        if name in events.left_behind or (topic.recreated >= 0 and 0 <= time - topic.recreated < _SHOWN_MS)
    ]
    rewound = [(time, _rewound(name, steps)) for name, steps in sorted(events.rewound.items())]
    lost = [(time, _lost(name, counts)) for name, counts in sorted(events.lost.items())]
    gone = [
        (deleted.time, f"{name[:200]} ({counted(count, 'partition')})")
        for name, count in sorted(deleted.topics.items())
    ]
    told = (
        (RECREATED, "deleted and created again", recreated),
        ("rewound", "committed offsets went back", rewound),
        (_DATA_LOST, "deleted before the group committed past it", lost),
        (_OFFSET_DELETED, "committed offsets were deleted or expired", gone),
    )
    return [found for name, what, where in told for found in finding_of(name, what, where)]


def _recreated(name: str, topic: TopicState, left_behind: int) -> str:
    said = []
    count = topic.counts[-1].count
    if 0 < count < topic.count_before:
        said.append(f"{counted(count, 'partition')} instead of {topic.count_before}")
    if left_behind:
        said.append(f"{counted(left_behind, 'partition')} with offsets of the previous topic")
    if said:
        return f"{name[:200]} ({', '.join(said)})"
    return name[:200]


def _rewound(name: str, steps: dict[int, int]) -> str:
    if len(steps) == 1:
        [(partition, step)] = steps.items()
        return f"{name[:200]} {partition} is {step:,} below where it was"
    return f"{name[:200]} is up to {max(steps.values()):,} below where it was on {len(steps)} partitions"


def _lost(name: str, partitions: Mapping[int, int]) -> str:
    if len(partitions) == 1:
        [(partition, count)] = partitions.items()
        return f"{name[:200]} {partition} ({count:,} offsets)"
    return f"{name[:200]} ({sum(partitions.values()):,} offsets on {len(partitions)} partitions)"


def _count_before(known: TopicState) -> int:
    return next((seen.count for seen in reversed(known.counts) if seen.count), 0)
