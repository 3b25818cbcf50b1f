"""The cost of a new target: how long partitions of a consumer group had no owner, as a lower and an upper bound.

The broker records what each member owns (key type 8). So for a partition that changes hands the log has

    the record in which the first member no longer has it     this member stopped before
    the record in which the next member has it                this member starts after

Nobody owned it between the two: that is the lower bound. The upper bound starts when the first owner was last seen with
the partition: when it was asked to give it up and still had it (`revoking`), or at its last commit. It ends at a commit
after the second record. Commits are merged between rounds; if that hides their order, the wider bound is used.

A pause counts for the decision during which it ends. The next decision drops all pauses that are still open.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streaming.groups.rows import MOST_MS, ChurnRow, with_seconds
from streaming.records import CommitWindow, CurrentAssignment, IdPartitions, ModernInput, each_of


class RevokedPartition(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition that its owner has given up.

    Attributes:
        time: Time of the record in which the owner no longer has it, ms.
        record: Log offset of that record.
        since: Last time a record showed the owner with it, ms; -1 if only its commits can show that.
    """

    time: int
    record: int
    since: int


class Pause(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A partition on its way to the next owner.

    Attributes:
        given: When it was given up; None until then.
        taken: Time of the record in which the next owner has it, ms; -1 until then.
        taken_record: Log offset of that record.
        since: Start of the upper bound, ms; -1 while unknown.
    """

    given: RevokedPartition | None
    taken: int = -1
    taken_record: int = -1
    since: int = -1


class Pauses(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Partitions of one group between two owners. Changed in place as records come.

    Attributes:
        free: Partitions that nobody owns now, by topic id and partition.
        row: Churn row of the newest decision, as last written; None if no further revision is expected.
        waiting: Partitions that the decision moves, until their bounds are known, by topic id and partition.
        untaken: Number of those that the next owner does not have yet.
        least_ms: Sum of the lower bounds, ms.
        most_ms: Sum of the upper bounds, ms; -1 if one of them cannot be known.
    """

    free: dict[str, dict[int, RevokedPartition]] = {}
    row: ChurnRow | None = None
    waiting: dict[str, dict[int, Pause]] = {}
    untaken: int = 0
    least_ms: int = 0
    most_ms: int = 0

    def begin(
        self,
        row: ChurnRow,
        before: Mapping[str, IdPartitions],
        targets: Mapping[str, IdPartitions],
        currents: Mapping[str, CurrentAssignment],
    ) -> ChurnRow:
        """Start tracking the partitions that a new target moves.

        Args:
            row: Churn row of the decision.
            before: The previous targets; partitions without an owner there are not tracked.
            targets: The new targets.
            currents: What the members own now.

        Returns:
            The row, with both bounds 0 if every partition that had an owner is already with its new one.
        """
        self.forget()
        # What is in no target any more (its topic was deleted, say) is nobody's next.
        assigned = {partition for target in targets.values() for partition in each_of(target)}
        for topic_id, freed in list(self.free.items()):
            self.free[topic_id] = {number: given for number, given in freed.items() if (topic_id, number) in assigned}
            if not self.free[topic_id]:
                del self.free[topic_id]
        # A member asked to revoke a partition stops reading it even if the new target returns it, and gets it again
        # only after it has acknowledged the revocation (`CurrentAssignmentBuilder`). The log does not show when it
        # stops.
        owned = {partition: name for name, current in currents.items() for partition in each_of(current.partitions)}
        had = {partition for target in before.values() for partition in each_of(target)}
        for name, target in targets.items():
            for topic_id, number in each_of(target):
                if (topic_id, number) in had and owned.get((topic_id, number)) != name:
                    given = self.free.get(topic_id, {}).get(number)
                    pause = Pause(given, since=given.since if given else -1)
                    self.waiting.setdefault(topic_id, {})[number] = pause
                    self.untaken += 1
        if not self.untaken:
            if had:
                return with_seconds(row, 0, 0)
            return row
        self.row = row
        return row

    def forget(self) -> None:
        """Stop tracking the newest decision's open self."""
        self.row, self.waiting = None, {}
        self.untaken = self.least_ms = self.most_ms = 0

    def shift(
        self,
        item: ModernInput,
        before: CurrentAssignment | None,
        after: CurrentAssignment | None,
    ) -> ChurnRow | None:
        """Process a change of what a member owns.

        Args:
            item: The record of the change.
            before: What the member owned until then.
            after: What it owns now.

        Returns:
            The decision's row with the lower bound, once the last partition has reached its next owner; None otherwise.
        """
        had, has = _owned(before), _owned(after)
        revoking = set(each_of(before.revoking)) if before is not None else set()
        for topic_id, number in had - has:
            told = before is not None and (topic_id, number) in revoking
            given = RevokedPartition(
                item.record_time, item.record, before.record_time if told and before is not None else -1
            )
            self.free.setdefault(topic_id, {})[number] = given
            pause = self.waiting.get(topic_id, {}).get(number)
            if pause is not None and pause.taken < 0:
                pause.given, pause.since = given, given.since
        for topic_id, number in has - had:
            of_topic = self.free.get(topic_id, {})
            of_topic.pop(number, None)
            if not of_topic:
                self.free.pop(topic_id, None)
            pause = self.waiting.get(topic_id, {}).get(number)
            if pause is not None and pause.taken < 0:
                pause.taken, pause.taken_record = item.record_time, item.record
                self.untaken -= 1
                if pause.given is None:
                    self.most_ms = -1  # according to the log, two members owned it at once
                else:
                    self.least_ms = min(MOST_MS, self.least_ms + max(0, item.record_time - pause.given.time))
        if self.row is None or self.untaken or had == has:
            return None
        if self.row.unassigned_partition_seconds_min is not None:
            return None
        revised = msgspec.structs.replace(self.row, revision=self.row.revision + 1)
        self.row = with_seconds(revised, self.least_ms, None)
        return self.row

    def note_commit(self, window: CommitWindow, topic_id: str | None, last_commit: int) -> None:
        """Use commits for the upper bound of their partition's pause.

        Args:
            window: All commits of the partition between two boundaries.
            topic_id: Id of the window's topic; None when unknown.
            last_commit: Record time of the last commit before the window, ms; -1 if there is none.
        """
        of_topic = self.waiting.get(topic_id or "", {})
        pause = of_topic.get(window.partition)
        if pause is None or pause.given is None or not window.commits:
            return
        if pause.since < 0:
            start = last_commit
            if window.last_record < pause.given.record:
                start = window.last_commit_time
            elif window.first_record < pause.given.record:
                start = window.first_commit_time
            # A commit after the partition was given up is not by the owner that gave it up.
            pause.since = start if start <= pause.given.time else -1
        if pause.taken < 0 or window.last_record < pause.taken_record:
            return
        if window.first_record > pause.taken_record:
            end = window.first_commit_time
        elif not window.tombstones:
            end = window.last_commit_time
        else:
            return
        del of_topic[window.partition]
        if not of_topic:
            del self.waiting[topic_id or ""]
        if pause.since < 0:
            self.most_ms = -1
        elif self.most_ms >= 0:
            self.most_ms = min(MOST_MS, self.most_ms + max(0, end - pause.since))

    def next_revision(self) -> ChurnRow | None:
        """The newest decision's row with both bounds, once every partition has its new owner and a new commit."""
        row = self.row
        if row is None or self.untaken or (self.waiting and self.most_ms >= 0):
            return None
        most = self.most_ms
        self.forget()
        if most >= 0:
            return with_seconds(msgspec.structs.replace(row, revision=row.revision + 1), None, most)
        return None


def _owned(current: CurrentAssignment | None) -> set[tuple[str, int]]:
    return set(each_of(current.held if current is not None else None))
