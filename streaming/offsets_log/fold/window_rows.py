"""Commit windows as columns, and their merge: `merge_windows` for many rows at once.

A single record is a window, too; so records become windows, and windows larger ones, by the same rule, in whatever
pieces they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from streaming.offsets_log.codec.record_columns import Ints

__all__ = ["Ints", "WindowRows", "concatenated", "merged"]


@dataclass(frozen=True, slots=True)
class WindowRows:
    """One row per window, in log order of the rows of each slot; fields as in `CommitWindow`, except for these.

    Attributes:
        slot: Number of group, topic and partition, a new one after each membership record of the group.
        era: The boundaries that it is between; windows of the same slot and era are parts of one.
        step_back: Unsigned: two int64 offsets can be further apart than an int64 holds.
        topic_id: 16 bytes a row; zero when not recorded.
    """

    slot: Ints
    era: Ints
    commits: Ints
    tombstones: Ints
    first_offset: Ints
    first_commit_time: Ints
    first_record: Ints
    offset: Ints
    leader_epoch: Ints
    last_commit_time: Ints
    last_record: Ints
    deleted: npt.NDArray[np.bool_]
    step_back: npt.NDArray[np.uint64]
    topic_id: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return int(self.slot.size)

    def where(self, mask: npt.NDArray[np.bool_]) -> WindowRows:
        """The rows selected by a mask."""
        return WindowRows(*(getattr(self, field.name)[mask] for field in fields(WindowRows)))


def concatenated(parts: Sequence[WindowRows]) -> WindowRows:
    """The rows of several parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    return WindowRows(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(WindowRows)))


def merged(rows: WindowRows) -> WindowRows:
    """Merge the rows of each slot and era into one, ordered by slot and era.

    The rules are those of `streaming.records.inputs.merge_windows`.

    Args:
        rows: At least one; those of one slot in log order.
    """
    order = _by_slot(rows.slot)
    slot, era = rows.slot[order], rows.era[order]
    begins = np.concatenate(([True], (slot[1:] != slot[:-1]) | (era[1:] != era[:-1])))
    starts = np.flatnonzero(begins)
    ends = np.concatenate((starts[1:], [slot.size])) - 1
    if not rows.tombstones.any():
        return _merged_commits(rows, order, begins, starts, ends)
    commits = rows.commits[order]
    # First and last row with a commit; where there is none, any row will do: all are -1.
    places = np.arange(slot.size)
    first = np.minimum(np.minimum.reduceat(np.where(commits > 0, places, slot.size), starts), ends)
    last = np.maximum(np.maximum.reduceat(np.where(commits > 0, places, -1), starts), starts)
    first, last = order[first], order[last]
    return WindowRows(
        slot=slot[starts],
        era=era[starts],
        commits=np.add.reduceat(commits, starts),
        tombstones=np.add.reduceat(rows.tombstones[order], starts),
        first_offset=rows.first_offset[first],
        first_commit_time=rows.first_commit_time[first],
        first_record=rows.first_record[order[starts]],
        offset=rows.offset[last],
        leader_epoch=rows.leader_epoch[last],
        last_commit_time=rows.last_commit_time[last],
        last_record=rows.last_record[order[ends]],
        deleted=rows.deleted[order[ends]],
        step_back=np.maximum.reduceat(_steps(rows, order, commits, starts), starts),
        topic_id=rows.topic_id[last],
    )


def _merged_commits(
    rows: WindowRows, order: Ints, begins: npt.NDArray[np.bool_], starts: Ints, ends: Ints
) -> WindowRows:
    """The same where every row has a commit and none a tombstone, as nearly always: half the time."""
    first, last = order[starts], order[ends]
    steps = rows.step_back[order]
    before, after = rows.offset[order[:-1]], rows.first_offset[order[1:]]
    there = np.flatnonzero((before > after) & ~begins[1:])
    steps[there + 1] = np.maximum(steps[there + 1], before[there].view(np.uint64) - after[there].view(np.uint64))
    return WindowRows(
        slot=rows.slot[first],
        era=rows.era[first],
        commits=np.add.reduceat(rows.commits[order], starts),
        tombstones=rows.tombstones[first],
        first_offset=rows.first_offset[first],
        first_commit_time=rows.first_commit_time[first],
        first_record=rows.first_record[first],
        offset=rows.offset[last],
        leader_epoch=rows.leader_epoch[last],
        last_commit_time=rows.last_commit_time[last],
        last_record=rows.last_record[last],
        deleted=rows.deleted[last],
        step_back=np.maximum.reduceat(steps, starts),
        topic_id=rows.topic_id[last],
    )


def _steps(rows: WindowRows, order: Ints, commits: Ints, starts: Ints) -> npt.NDArray[np.uint64]:
    """Per row the larger of its own step back and the step to it from the previous row with a commit."""
    steps = rows.step_back[order]
    with_commit = np.flatnonzero(commits > 0)
    if with_commit.size > 1:
        run = np.zeros(commits.size, np.int64)
        run[starts[1:]] = 1
        run = np.cumsum(run)[with_commit]
        before = rows.offset[order[with_commit[:-1]]]
        after = rows.first_offset[order[with_commit[1:]]]
        back = (before > after) & (run[1:] == run[:-1])
        there = with_commit[1:][back]
        # As unsigned numbers the difference of a larger and a smaller int64 is right, however far apart they are.
        steps[there] = np.maximum(steps[there], before[back].view(np.uint64) - after[back].view(np.uint64))
    return steps


def _by_slot(slot: Ints) -> Ints:
    """Rows ordered by slot, those of one slot as they come: ten times as fast as NumPy's stable sort of an int64."""
    # NumPy sorts 16 bits by radix.
    order = np.argsort((slot & 0xFFFF).astype(np.uint16), kind="stable")
    high = slot >> 16
    return order[np.argsort(high[order].astype(np.uint16), kind="stable")] if high.any() else order
