"""Commits between two boundaries: merged first, processed at a boundary, so that no cut of the stream matters."""

from __future__ import annotations

from streaming.groups.classic import cost, departures
from streaming.groups.context import Context
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.state import PartitionState
from streaming.groups.state import GroupState
from streaming.records import CommitWindow, merge_windows


def fold(state: GroupState, window: CommitWindow, context: Context) -> None:  # noqa: ARG001
    """Merge commits with those since the last boundary."""
    of_topic = state.windows.setdefault(window.topic, {})
    earlier = of_topic.get(window.partition)
    of_topic[window.partition] = window if earlier is None else merge_windows(earlier, window)


def take_in_commits(state: GroupState) -> None:
    """Process the commits merged since the last boundary."""
    departures.note_commits(state)
    for topic, windows in state.windows.items():
        partitions = state.partitions.get(topic, {})
        seen = state.topics.get(topic)
        topic_id = seen.topic_id if seen is not None else None
        for partition, window in windows.items():
            known = partitions.get(partition)
            if known is None:
                if not (window.commits or window.unreadable):
                    continue  # a tombstone for a commit that was never seen
                known = partitions[partition] = PartitionState()
            cost.commit_after_rebalance(state, window)
            lag.absorb(known, window, topic_id)
        if partitions:
            state.partitions[topic] = partitions
    state.windows = {}
