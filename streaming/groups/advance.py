"""The core's one function: it takes a group's state and its next events, and returns the new state and rows.

    advance(state, group, inputs, config) -> (state, rows)

The result does not depend on how the events were split into batches: commits are processed only at boundaries that
lie in the events themselves (a round, a membership record). Between boundaries they are only merged, and merging is
associative.
"""

from __future__ import annotations

from streaming.groups import compaction
from streaming.groups.classic import churn, cost
from streaming.groups.config import GroupConfig
from streaming.groups.context import Context
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.state import PartitionState
from streaming.groups.modern import decisions as modern
from streaming.groups.observation import close_group, judge_round, pass_round
from streaming.groups.rows import Rows
from streaming.groups.state import GroupState
from streaming.records import (
    CommitWindow,
    Compacted,
    GroupInput,
    GroupObservation,
    MembershipRecord,
    MembershipTombstone,
    in_order,
    merge_windows,
)

__all__ = ["advance"]


def advance(
    state: GroupState | None, group: str, inputs: list[GroupInput], config: GroupConfig
) -> tuple[GroupState | None, Rows]:
    """Advance one group.

    Args:
        state: The group's state; None for an unknown group. It is modified: decode it again to advance from the same
            state twice.
        group: Group id.
        inputs: Its events, in any order: they are sorted into the order of the log and the rounds first.
        config: Settings.

    Returns:
        The new state, None when there is nothing left to keep (the group is gone), and the rows.
    """
    context = Context(group, config, Rows())
    for item in in_order(inputs):
        if state is None:
            state = GroupState()
        if isinstance(item, CommitWindow):
            _fold(state, item)
        elif isinstance(item, GroupObservation):
            _take_in(state, context.rows)
            compaction.leave(state, item.log_position)
            if item.gone is not None:
                compacted_until = state.compacted_until
                if not state.is_void():
                    close_group(state, item, context)
                state = GroupState(compacted_until=compacted_until) if compacted_until >= 0 else None
            elif compaction.is_compacted(state, item.log_position):
                pass_round(state, item, context)
            else:
                judge_round(state, item, context)
        elif isinstance(item, MembershipRecord):
            _take_in(state, context.rows)
            compaction.leave(state, item.record)
            churn.decide(state, item, context)
        elif isinstance(item, MembershipTombstone):
            _take_in(state, context.rows)
            compaction.leave(state, item.record)
            churn.end_membership(state, item, context)
        elif isinstance(item, Compacted):
            compaction.take_in(state, item)
        else:
            modern.follow(state, item, context)
    if state is not None and state.is_void() and not compaction.goes_on_behind(state, inputs):
        state = None
    return state, context.rows


def _fold(state: GroupState, window: CommitWindow) -> None:
    of_topic = state.windows.setdefault(window.topic, {})
    earlier = of_topic.get(window.partition)
    of_topic[window.partition] = window if earlier is None else merge_windows(earlier, window)


def _take_in(state: GroupState, rows: Rows) -> None:
    """Process the commits merged since the last boundary."""
    for topic, windows in state.windows.items():
        partitions = state.partitions.get(topic, {})
        seen = state.topics.get(topic)
        topic_id = seen.topic_id if seen is not None else None
        for partition, window in windows.items():
            known = partitions.get(partition)
            if known is None:
                if not window.commits:
                    continue  # a tombstone for a commit that was never seen
                known = partitions[partition] = PartitionState()
            cost.commit_after_rebalance(state, window)
            lag.absorb(known, window, topic_id)
        if partitions:
            state.partitions[topic] = partitions
    state.windows = {}
    cost.close_cost(state, rows)
