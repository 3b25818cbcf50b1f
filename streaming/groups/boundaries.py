"""What is kept between boundaries of the log, and what a compacted stretch of the log makes a group forget.

Commits are merged until the next boundary and processed there, so that no cut of the stream matters.

Where Kafka has compacted the log, the last record of each key remains, so the present state is complete. The history is
not, so nothing is claimed about it:

- A round inside the stretch is not judged: it gets no row in `lag` or `group_health`, and no findings. The partition
  counts that the probe saw are kept.
- A classic decision is complete in one record and is judged. What preceded it is unknown: its row shows no moves and
  nobody who joined or left, and it may be the record of a static member's return.
- A KIP-848 decision is spread over many records, and some of those that remain may be newer than it. It gets no churn
  row, and its members are shown as they are at the next judged round.
- Anything that spans the start of the stretch is dropped: the bounds on a rebalance's cost, rebalances that wait for a
  round, the rounds by which lag is judged, the present window of the rates, and the pause between the last commit
  before it and the first inside.

`streaming/offsets_log/log_cleaning.py` finds the stretches.
"""

from __future__ import annotations

from collections.abc import Iterable

from streaming.groups.classic.before import note_commits
from streaming.groups.classic.cost import commit_after_rebalance
from streaming.groups.context import Context
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.state import PartitionState
from streaming.groups.load.rates import void_window
from streaming.groups.modern.consumer_group import forget_before
from streaming.groups.state import GroupState
from streaming.records import AnyObservation, CommitWindow, Compacted, GroupInput, merge_windows


def fold(state: GroupState, window: CommitWindow, context: Context) -> None:  # noqa: ARG001
    """Merge commits with those since the last boundary."""
    of_topic = state.windows.setdefault(window.topic, {})
    earlier = of_topic.get(window.partition)
    of_topic[window.partition] = window if earlier is None else merge_windows(earlier, window)


def take_in_commits(state: GroupState) -> None:
    """Process the commits merged since the last boundary."""
    note_commits(state)
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
            commit_after_rebalance(state, window)
            lag.absorb(known, window, topic_id)
        if partitions:
            state.partitions[topic] = partitions
    state.windows = {}


_NEVER = -1


def note_compacted(state: GroupState, stretch: Compacted, context: Context) -> None:  # noqa: ARG001
    """Note that a stretch begins or continues: each read from inside a stretch reports it again from there."""
    goes_on = state.is_compacted(stretch.first)
    state.compacted_until = max(state.compacted_until, stretch.until)
    if goes_on:
        return
    state.classic.cost = state.classic.rounds = state.modern.pauses = None
    state.classic.committed = -1
    state.stopped = []
    void_window(state.load)
    for partitions in state.partitions.values():
        for known in partitions.values():
            known.forget_rounds()
    if state.modern.group is not None:
        forget_before(state.modern.group)


def leave_compacted(state: GroupState, position: int) -> None:
    """Forget the stretch once this position is beyond it."""
    if position >= state.compacted_until:
        state.compacted_until = _NEVER


def goes_on_behind(state: GroupState, inputs: Iterable[GroupInput]) -> bool:
    """Whether more of the group's records in the stretch may follow these inputs, the newest ones processed."""
    if state.compacted_until < 0:
        return False
    others = AnyObservation | Compacted
    taken = max((item.position for item in inputs if not isinstance(item, others)), default=-1)
    return taken + 1 < state.compacted_until
