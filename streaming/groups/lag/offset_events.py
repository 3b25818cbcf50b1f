"""Events on committed offsets: deletion, expiry, rewinds, and topics deleted and created again.

A topic created again under its old name has new offsets, so earlier commits mean nothing for it. Topic ids are compared
if both commits (value version 4) and rounds (brokers since 2.8) have them. A commit without an id counts for the topic
that the last round before it showed, until the group commits again.

An event happens at one round; its finding stays as long as it matters: a rewind while the offset is below where it was,
an offset of a replaced topic until the group commits again, other events for some minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streaming.groups.health.columns import FindingAtRound, some
from streaming.groups.lag.partitions import REWOUND, UNKNOWN
from streaming.groups.lag.state import OffsetEvents, PartitionState
from streaming.groups.rows import LagRow, unit_of
from streaming.groups.state import GroupState, TopicState
from streaming.records import TopicObservation
from streaming.terminal import counted

RECREATED = "topic_recreated"
"""Finding, and the reason of an unknown lag."""

_OFFSET_DELETED = "offset_deleted"
_DATA_LOST = "data_lost"

# `PartitionState.of_topic` of a commit without an id, made before the topic was created again.
_OTHER_TOPIC = ""

# Lag statuses of rows that can start an event.
_TELLING = frozenset({REWOUND, UNKNOWN})

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


def note(state: GroupState, time: int, rows: Sequence[LagRow]) -> None:
    """Keep the events that one round's rows of `lag` show; for partitions without a row, nothing has changed."""
    known = state.offset_events
    deleted: dict[str, list[int]] = {}
    for row in rows:
        status = row.lag_status
        if known is None and status not in _TELLING and not row.offset_deleted:
            continue  # true of almost every row
        unit = unit_of(row.topic, row.broker)
        rewound = _is_back(state, unit, row)
        if rewound and row.rewound_by:
            known = known or OffsetEvents()
            of_topic = known.rewound.setdefault(unit, {})
            of_topic[row.partition] = max(row.rewound_by, of_topic.get(row.partition, 0))
        elif known is not None and not rewound:
            _forget(known.rewound, unit, row.partition)
        if row.reason == RECREATED:
            known = known or OffsetEvents()
            known.left_behind.setdefault(unit, {})[row.partition] = 0
        elif known is not None:
            _forget(known.left_behind, unit, row.partition)
        if row.offset_deleted and row.subscribed:
            deleted.setdefault(unit, []).append(row.partition)
    if deleted:
        known = known or OffsetEvents()
        known.deleted = {topic: len(partitions) for topic, partitions in deleted.items()}
        known.deleted_at = time
    state.offset_events = known


def findings_of_offsets(state: GroupState, time: int, lost: Mapping[str, Mapping[int, int]]) -> list[FindingAtRound]:
    """The findings on committed offsets at a round.

    Args:
        state: The group's state, including this round.
        time: The round's time, ms.
        lost: Number of offsets deleted before the group committed past them, by topic and partition.
    """
    found: list[FindingAtRound] = []
    known = state.offset_events or OffsetEvents()
    recreated = {
        name: t for name, t in state.topics.items() if 0 <= time - t.recreated < _SHOWN_MS and t.recreated >= 0
    }
    recreated |= {name: state.topics[name] for name in known.left_behind if name in state.topics}
    if recreated:
        since = min(t.recreated if t.recreated >= 0 else time for t in recreated.values())
        detail = some([_recreated(name, of, known.left_behind.get(name, {})) for name, of in sorted(recreated.items())])
        found.append(FindingAtRound(RECREATED, since, f"deleted and created again: {detail}"))
    if known.rewound:
        detail = some([_rewound(name, steps) for name, steps in sorted(known.rewound.items())])
        found.append(FindingAtRound(REWOUND, time, f"committed offsets went back: {detail}"))
    if lost:
        detail = some([_lost(name, of) for name, of in sorted(lost.items())])
        found.append(FindingAtRound(_DATA_LOST, time, f"deleted before the group committed past it: {detail}"))
    if known.deleted and time - known.deleted_at < _SHOWN_MS:
        detail = some(
            [f"{name[:200]} ({counted(count, 'partition')})" for name, count in sorted(known.deleted.items())]
        )
        found.append(
            FindingAtRound(_OFFSET_DELETED, known.deleted_at, f"committed offsets were deleted or expired: {detail}")
        )
    elif not (known.rewound or known.left_behind):
        state.offset_events = None
    return found


def _is_back(state: GroupState, unit: str, row: LagRow) -> bool:
    """Whether a committed offset is below an earlier one."""
    if row.ended or not row.subscribed:
        return False
    if row.lag_status != UNKNOWN or row.reason == RECREATED:
        return row.lag_status == REWOUND
    # A round with unknown lag still has the commits, so they can be compared with the earlier offsets in the trend.
    partition = state.partitions[unit][row.partition]
    return max(partition.trend.high, partition.trend.committed) > partition.committed


def _recreated(name: str, topic: TopicState, left_behind: dict[int, int]) -> str:
    said = []
    count = topic.counts[-1].count
    if 0 < count < topic.count_before:
        said.append(f"{counted(count, 'partition')} instead of {topic.count_before}")
    if left_behind:
        said.append(f"{counted(len(left_behind), 'partition')} with offsets of the previous topic")
    return f"{name[:200]} ({', '.join(said)})" if said else name[:200]


def _rewound(name: str, steps: dict[int, int]) -> str:
    if len(steps) == 1:
        [(partition, step)] = steps.items()
        return f"{name[:200]} {partition} rewound by {step:,}"
    return f"{name[:200]} rewound by up to {max(steps.values()):,} on {len(steps)} partitions"


def _lost(name: str, partitions: Mapping[int, int]) -> str:
    if len(partitions) == 1:
        [(partition, count)] = partitions.items()
        return f"{name[:200]} {partition} ({count:,} offsets)"
    return f"{name[:200]} ({sum(partitions.values()):,} offsets on {len(partitions)} partitions)"


def _forget(known: dict[str, dict[int, int]], topic: str, partition: int) -> None:
    of_topic = known.get(topic)
    if of_topic is not None:
        of_topic.pop(partition, None)
        if not of_topic:
            del known[topic]


def _count_before(known: TopicState) -> int:
    return next((seen.count for seen in reversed(known.counts) if seen.count), 0)
