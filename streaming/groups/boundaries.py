"""What happens at boundaries of the log, and what a compacted stretch of the log makes a group forget.

Commits are merged until the next boundary and processed there, so that no cut of the stream matters. Then rebalances of
which more is known get a further revision of their row.

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

import msgspec

from streaming.groups.causes import moved_by_brokers, newest_epoch
from streaming.groups.classic.before import note_commits
from streaming.groups.context import Context
from streaming.groups.delayed import Stopped, bounds
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.state import PartitionState
from streaming.groups.load.rates import void_window
from streaming.groups.rows import ChurnRow, Rows
from streaming.groups.state import GroupState
from streaming.records import (
    AnyObservation,
    CommitWindow,
    Compacted,
    GroupInput,
    GroupObservation,
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


def await_reason(state: GroupState, row: ChurnRow) -> None:
    """Let a decision whose coordinator has moved wait for the group's next round, which may know why."""
    waits = any(stopped.row.decision == row.decision for stopped in state.stopped)
    if not waits and newest_epoch(row.causes or ()) >= 0:
        state.await_round(row, {})


def close_cost(
    state: GroupState,
    rows: Rows,
    observation: GroupObservation | None = None,
    following: MembershipRecord | None = None,
) -> None:
    """Write a further revision of each rebalance of which more is known now.

    Each kind knows when the time without an owner is known (`classic/cost.py`, `modern/pauses.py`). What arrived
    meanwhile is known at the group's next round.

    Args:
        state: The group's state, before this round's lag is judged.
        rows: Rows are appended here.
        observation: The round that is judged now; None at other boundaries.
        following: The membership record that is processed next; None at other boundaries.
    """
    revised = [kept.next_revision(at_round=observation is not None, following=following) for kept in state.kinds]
    told = {row.decision: row for row in revised if row is not None}
    if observation is not None and state.stopped:
        state.stopped = _told_by_round(state, observation, told)
    if not told:
        return
    rows.rebalance_churn.extend(told.values())
    # The next revision of a row begins with what is known now.
    for waiting in (*state.stopped, *(kept.cost for kept in state.kinds)):
        if waiting is not None and waiting.row is not None:
            waiting.row = told.get(waiting.row.decision, waiting.row)


def _told_by_round(state: GroupState, observation: GroupObservation, told: dict[int, ChurnRow]) -> list[Stopped]:
    """Put the rows that a round completes into `told`.

    Returns:
        What goes on waiting: decisions whose coordinator had moved after the round looked who it was.
    """
    newest = state.newest_round
    waiting: list[Stopped] = []
    for stopped in state.stopped:
        causes = stopped.row.causes or ()
        reasons = moved_by_brokers(causes, observation.coordinator_moves)
        row = told.get(stopped.row.decision)
        if stopped.stops or reasons != causes:
            row = row or msgspec.structs.replace(stopped.row, revision=stopped.row.revision + 1)
            row = msgspec.structs.replace(row, causes=reasons)
            if stopped.stops:
                least, most, reason = bounds(stopped, state.partitions, newest, observation)
                row = msgspec.structs.replace(
                    row, records_delayed_min=least, records_delayed_max=most, records_delayed_reason=reason
                )
            told[row.decision] = row
        if 0 <= observation.coordinator_epoch < newest_epoch(causes):
            waiting.append(Stopped(row or stopped.row, {}))
    return waiting


def note_compacted(state: GroupState, stretch: Compacted, context: Context) -> None:  # noqa: ARG001
    """Note that a stretch begins or continues: each read from inside a stretch reports it again from there."""
    goes_on = state.is_compacted(stretch.first)
    state.compacted_until = max(state.compacted_until, stretch.until)
    if goes_on:
        return
    for kept in state.kinds:
        kept.forget_before()
    state.stopped = []
    void_window(state.load)
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
