"""Offset commits of a group, folded into windows."""

from __future__ import annotations

import msgspec

__all__ = ["CommitWindow", "merge_windows"]


class CommitWindow(msgspec.Struct, frozen=True, array_like=True, tag="c", gc=False, forbid_unknown_fields=True):
    """The offset commits of one partition between two boundaries, folded.

    A boundary is the log position of a round, or a membership record of the same group, so a window can be ordered
    against observations and generations by any of its record offsets. Windows of the same partition with no boundary
    between them merge into the window of all their records (`merge_windows`), which makes the fold independent of where
    a batch was cut.

    Attributes:
        topic: Topic of the commits.
        partition: Partition of the commits.
        commits: Number of commit records in the window; 0 when it has only tombstones.
        tombstones: Number of tombstones in the window.
        first_offset: Committed offset of the first commit; -1 when there is none.
        first_commit_time: Record timestamp of the first commit, ms; -1 when there is none.
        first_record: Log offset of the first record of the window.
        offset: Committed offset of the last commit; -1 when there is none.
        leader_epoch: Leader epoch of the last commit; -1 when not recorded.
        last_commit_time: Record timestamp of the last commit, ms; -1 when there is none.
        last_record: Log offset of the last record of the window.
        deleted: The last record is a tombstone (expired, deleted, or the topic was deleted).
        step_back: Largest step backwards between successive commits, in offsets, ignoring tombstones between them; 0
            when there was none.
        topic_id: Kafka's printed topic id of the last commit (value v4); None when not recorded.
    """

    topic: str
    partition: int
    commits: int
    tombstones: int
    first_offset: int
    first_commit_time: int
    first_record: int
    offset: int
    leader_epoch: int
    last_commit_time: int
    last_record: int
    deleted: bool
    step_back: int
    topic_id: str | None = None

    @property
    def position(self) -> int:
        """Log offset by which this input is ordered."""
        return self.last_record


def merge_windows(earlier: CommitWindow, later: CommitWindow) -> CommitWindow:
    """Fold two adjacent windows of the same partition into the window of all their records.

    The merge is associative: the result is the same however the records were cut.
    """
    last = later if later.commits else earlier
    first = earlier if earlier.commits else later
    step_back = max(earlier.step_back, later.step_back)
    if earlier.commits and later.commits:
        step_back = max(step_back, earlier.offset - later.first_offset)
    return CommitWindow(
        topic=earlier.topic,
        partition=earlier.partition,
        commits=earlier.commits + later.commits,
        tombstones=earlier.tombstones + later.tombstones,
        first_offset=first.first_offset,
        first_commit_time=first.first_commit_time,
        first_record=earlier.first_record,
        offset=last.offset,
        leader_epoch=last.leader_epoch,
        last_commit_time=last.last_commit_time,
        last_record=later.last_record,
        deleted=later.deleted,
        step_back=step_back,
        topic_id=last.topic_id,
    )
