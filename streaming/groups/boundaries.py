"""What happens at boundaries of the log, and what a compacted stretch of the log makes a group forget.

Commits are merged until the next boundary and processed there, so that no cut of the stream matters. Then a rebalance
of which more is known gets a further revision of its row.

Where Kafka has compacted the log, the last record of each key remains, so the present state is complete. The history is
not, so nothing is claimed about it:

- A round inside the stretch is not judged: it gets no row in `lag` or `group_health`, and no findings. The partition
  counts that the probe saw are kept.
- A classic decision is complete in one record and is judged. What preceded it is unknown: its row shows no moves and
  nobody who joined or left, and it may be the record of a static member's return.
- A KIP-848 decision is spread over many records, and some of those that remain may be newer than it. It gets no churn
  row, and its members are shown as they are at the next judged round.
- Anything that spans the start of the stretch is dropped: the bounds on a rebalance's cost, the rounds by which lag is
  judged, the present window of the rates, and the pause between the last commit before it and the first inside.

`streaming/offsets_log/log_cleaning.py` finds the stretches.
"""

from __future__ import annotations

from collections.abc import Iterable

from streaming.groups.classic.before import note_commits
from streaming.groups.context import Context
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.state import PartitionState
from streaming.groups.rows import Rows
from streaming.groups.state import GroupState
from streaming.records import (
    AnyObservation,
    CommitWindow,
    Compacted,
    GroupInput,
    MembershipRecord,
    merge_windows,
)


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
            for kept in state.kinds:
                if kept.cost is not None:
                    kept.cost.note_commit(window, window.topic_id or topic_id, known.commit_time)
            lag.absorb(known, window, topic_id)
        if partitions:
            state.partitions[topic] = partitions
    state.windows = {}


def close_cost(
    state: GroupState, rows: Rows, *, at_round: bool = False, following: MembershipRecord | None = None
) -> None:
    """Write a further revision of the newest rebalance, once the time without an owner is known.

    Each kind knows when that is (`classic/cost.py`, `modern/pauses.py`).

    Args:
        state: The group's state, before this round's lag is judged.
        rows: Rows are appended here.
        at_round: A round is judged now.
        following: The membership record that is processed next; None at other boundaries.
    """
    for kept in state.kinds:
        row = kept.next_revision(at_round=at_round, following=following)
        if row is not None:
            rows.rebalance_churn.append(row)


def note_compacted(state: GroupState, stretch: Compacted, context: Context) -> None:  # noqa: ARG001
    """Note that a stretch begins or continues: each read from inside a stretch reports it again from there."""
    goes_on = state.is_compacted(stretch.first)
    state.compacted_until = max(state.compacted_until, stretch.until)
    if goes_on:
        return
    for kept in state.kinds:
        kept.forget_before()
    if state.load is not None:
        state.load.starts = {}  # the present window has no rates at all
    for partitions in state.partitions.values():
        for known in partitions.values():
            known.forget_rounds()


def reach_record(state: GroupState, rows: Rows, position: int, following: MembershipRecord | None = None) -> None:
    """Process what came before a membership record, or before the end of a membership."""
    take_in_commits(state)
    close_cost(state, rows, following=following)
    leave_compacted(state, position)


def leave_compacted(state: GroupState, position: int) -> None:
    """Forget the stretch once this position is beyond it."""
    if position >= state.compacted_until:
        state.compacted_until = -1


def goes_on_behind(state: GroupState, inputs: Iterable[GroupInput]) -> bool:
    """Whether more of the group's records in the stretch may follow these inputs, the newest ones processed."""
    if state.compacted_until < 0:
        return False
    others = AnyObservation | Compacted
    taken = max((item.position for item in inputs if not isinstance(item, others)), default=-1)
    return taken + 1 < state.compacted_until
