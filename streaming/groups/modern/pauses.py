"""What a new target cost: for how long partitions of a consumer group had no owner, bounded from below and from above.

The broker writes down who owns what, member by member (type 8). So of a partition that changes hands the log has

    the record in which one member has it no more     it has stopped before
    the record in which the next has it               it starts after

and between the two nobody surely owned it: the lower bound. What surely contains the pause begins where the first owner
was last seen at work: told to give the partition up, it said that it still has it (`revoking`), or its last commit. It
ends at a commit after the second record. Commits are folded between rounds: where that hides which of them came first,
the bound is the looser one.

A pause counts for the decision under which it ends. The next decision ends the waiting for all that is still open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from streaming.groups.rows import ChurnRow
from streaming.records import CommitWindow, CurrentAssignment, IdPartitions, ModernInput

__all__ = ["MOST_MS", "GivenUp", "Pause", "Pauses", "begin", "commit", "complete", "forget", "places_of", "shift"]

MOST_MS = 2**53
"""Sums of times may be absurd when record timestamps are (anyone with the right may write to the log); the state and
the tables hold int64."""

_Place = tuple[str, int]


class GivenUp(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition that its owner has no more.

    Attributes:
        time: Record time of that, ms.
        record: Log offset of that.
        since: Last time at which the owner was seen with it, ms; -1 where only its commits tell.
    """

    time: int
    record: int
    since: int


class Pause(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A partition on its way to the next owner.

    Attributes:
        given: When it was given up; None while it is not.
        taken: Record time at which the next owner has it, ms; -1 before.
        taken_record: Log offset of that.
        since: Start of the upper bound, ms; -1 while it is not known.
    """

    given: GivenUp | None
    taken: int = -1
    taken_record: int = -1
    since: int = -1


class Pauses(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Partitions of one group between two owners. Changed in place by the functions of this module.

    Attributes:
        free: What nobody owns at present, by topic id and partition.
        row: Churn row of the newest decision, as last written; None when nothing of it is awaited.
        waiting: Partitions that it moves, until their bounds are known.
        untaken: Those of them that the next owner does not have yet.
        least_ms: Lower bounds, summed.
        most_ms: Upper bounds, summed; -1 where one of them is not to be had.
    """

    free: dict[str, dict[int, GivenUp]] = {}
    row: ChurnRow | None = None
    waiting: dict[str, dict[int, Pause]] = {}
    untaken: int = 0
    least_ms: int = 0
    most_ms: int = 0


def begin(
    pauses: Pauses,
    row: ChurnRow,
    before: Mapping[str, IdPartitions],
    targets: Mapping[str, IdPartitions],
    currents: Mapping[str, CurrentAssignment],
) -> ChurnRow:
    """Begin to wait for what a new target moves.

    Args:
        pauses: Of the group.
        row: Churn row of the decision.
        before: Targets before it; what had no owner there has none to be waited for.
        targets: The new targets.
        currents: What the members own at present.

    Returns:
        The row, with both bounds 0 where all that had an owner is with the one that it is to have.
    """
    forget(pauses)
    # (A member that was told to give a partition up stops with it, even where the new target gives it back: only once
    # it has acknowledged that is it assigned anew, `CurrentAssignmentBuilder`. When it stopped is not in the log.)
    owned = {place: name for name, current in currents.items() for place in places_of(current.partitions)}
    had = {place for target in before.values() for place in places_of(target)}
    for name, target in targets.items():
        for topic_id, number in places_of(target):
            if (topic_id, number) in had and owned.get((topic_id, number)) != name:
                given = pauses.free.get(topic_id, {}).get(number)
                pauses.waiting.setdefault(topic_id, {})[number] = Pause(given, since=given.since if given else -1)
                pauses.untaken += 1
    if not had:
        return row
    if not pauses.untaken:
        return msgspec.structs.replace(row, unowned_partition_seconds_min=0.0, unowned_partition_seconds_max=0.0)
    pauses.row = row
    return row


def forget(pauses: Pauses) -> None:
    """Wait no more for what is still open of the newest decision."""
    pauses.row, pauses.waiting = None, {}
    pauses.untaken = pauses.least_ms = pauses.most_ms = 0


def shift(
    pauses: Pauses, item: ModernInput, before: CurrentAssignment | None, after: CurrentAssignment | None
) -> ChurnRow | None:
    """Take in that a member owns something else.

    Args:
        pauses: Of the group.
        item: The record that says so.
        before: What the member owned until then.
        after: What it owns now.

    Returns:
        The decision's row with the lower bound, when this was the last partition that was awaited.
    """
    had, has = set(_owned(before)), set(_owned(after))
    revoking = set(places_of(before.revoking)) if before is not None else set()
    for topic_id, number in had - has:
        told = before is not None and (topic_id, number) in revoking
        given = GivenUp(item.record_time, item.record, before.record_time if told and before is not None else -1)
        pauses.free.setdefault(topic_id, {})[number] = given
        pause = pauses.waiting.get(topic_id, {}).get(number)
        if pause is not None and pause.taken < 0:
            pause.given, pause.since = given, given.since
    for topic_id, number in has - had:
        of_topic = pauses.free.get(topic_id, {})
        of_topic.pop(number, None)
        if not of_topic:
            pauses.free.pop(topic_id, None)
        pause = pauses.waiting.get(topic_id, {}).get(number)
        if pause is not None and pause.taken < 0:
            pause.taken, pause.taken_record = item.record_time, item.record
            pauses.untaken -= 1
            if pause.given is None:
                pauses.most_ms = -1  # two owned it at once, for all the log says
            else:
                pauses.least_ms = min(MOST_MS, pauses.least_ms + max(0, item.record_time - pause.given.time))
    if pauses.row is None or pauses.untaken or had == has:
        return None
    if pauses.row.unowned_partition_seconds_min is not None:
        return None
    pauses.row = msgspec.structs.replace(
        pauses.row,
        revision=pauses.row.revision + 1,
        unowned_partition_seconds_min=round(pauses.least_ms / 1000, 3),
    )
    return pauses.row


def commit(pauses: Pauses, topic_id: str | None, window: CommitWindow, last_commit: int) -> None:
    """Let commits bound the pause of their partition from above.

    Args:
        pauses: Of the group.
        topic_id: Id of the window's topic; None when not known.
        window: All commits of the partition between two boundaries.
        last_commit: Record time of the last commit before the window, ms; -1 when there was none.
    """
    of_topic = pauses.waiting.get(topic_id or "", {})
    pause = of_topic.get(window.partition)
    if pause is None or pause.given is None or not window.commits:
        return
    if pause.since < 0:
        start = last_commit
        if window.last_record < pause.given.record:
            start = window.last_commit_time
        elif window.first_record < pause.given.record:
            start = window.first_commit_time
        # (What was committed after it was given up was not committed by the one that gave it up.)
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
        del pauses.waiting[topic_id or ""]
    if pause.since < 0:
        pauses.most_ms = -1
    elif pauses.most_ms >= 0:
        pauses.most_ms = min(MOST_MS, pauses.most_ms + max(0, end - pause.since))


def complete(pauses: Pauses) -> ChurnRow | None:
    """The newest decision's row with both bounds, once every partition has been taken and committed again."""
    row = pauses.row
    if row is None or pauses.untaken or (pauses.waiting and pauses.most_ms >= 0):
        return None
    most, least = pauses.most_ms, row.unowned_partition_seconds_min or 0.0
    forget(pauses)
    if most < 0:
        return None
    return msgspec.structs.replace(
        row, revision=row.revision + 1, unowned_partition_seconds_max=max(least, round(most / 1000, 3))
    )


def places_of(partitions: IdPartitions) -> Iterator[_Place]:
    """Topic id and number of each partition."""
    return ((topic_id, number) for topic_id, numbers in partitions for number in numbers)


def _owned(current: CurrentAssignment | None) -> Iterator[_Place]:
    if current is not None:
        yield from places_of(current.partitions)
        yield from places_of(current.revoking)
