"""Tasks of Kafka Streams with the classic protocol: its strategy `stream` deals tasks, and the partitions follow them.

A task reads the partitions of its number in all topics of its subtopology. So it may be active with one member only,
and the load of a member is its tasks. Which member gets a task depends on the lag of each copy of its state: the leader
asks the brokers for the ends of changelogs, and no record has them (`HighAvailabilityTaskAssignor`, KIP-441).
"""

from __future__ import annotations

from typing import Final

from assignors import imbalance
from streaming.groups.kind import FindingAtRound, idle_finding
from streaming.groups.rows import DriftedPartition
from streaming.groups.verdicts import MISPLACED
from streaming.records import STREAM, MembershipRecord, StreamThread, count_of, holders, thread_of
from streaming.terminal import counted

NOT_RECOMPUTED: Final = (
    "Kafka Streams places tasks by the lag of each copy of their state at that moment, which no record has"
)
"""Reason of a decision of which nothing is wrong."""

_ERRORS: Final = {
    1: "a source topic is missing",
    2: "it could not read what a member of another release sent",
    3: "its task assignor failed",
    4: "a member has asked the whole application to stop",
}
"""Why a leader gives nobody a task (`AssignorError`)."""


def is_streams(record: MembershipRecord) -> bool:
    """Whether the members are threads of Kafka Streams."""
    return record.protocol == STREAM and record.protocol_type == "consumer"


def threads_of(record: MembershipRecord) -> dict[str, StreamThread] | None:
    """What each thread got, by member id; None where that is not known of all."""
    threads = {member.member_id: thread_of(member) for member in record.members} if is_streams(record) else {}
    known = {name: thread for name, thread in threads.items() if thread is not None and thread.unreadable is None}
    if not threads or len(known) < len(threads):
        return None
    return known


def why_not_judged(record: MembershipRecord) -> str:
    """Why a decision of Kafka Streams of which nothing is wrong is not recomputed, in words."""
    for member in record.members:
        thread = thread_of(member)
        if thread is None:
            return "its tasks were not read: an older release took in its record"
        if thread.unreadable is not None:
            return f"member {member.member_id[:100]!r}: {thread.unreadable}"
        if thread.error:
            why = _ERRORS.get(thread.error, f"error {thread.error}")
            return f"the leader gave nobody a task: {why}"
    return NOT_RECOMPUTED


def torn_tasks(record: MembershipRecord) -> dict[str, tuple[DriftedPartition, ...]]:
    """Tasks that are active with several members, as Kafka Streams prints them, each with its partitions.

    Which of the members should have the task nobody can tell. Members of which the tasks are not known count for none.
    """
    members = {member.member_id: member for member in record.members if is_streams(record)}
    threads = {name: thread_of(member) or StreamThread() for name, member in members.items()}
    return {
        f"{name}_{number}": tuple(
            [
                DriftedPartition(topic, number, MISPLACED, None, (member_id,))
                for member_id in having
                for topic, numbers in members[member_id].assigned or ()
                if topic in dict(threads[member_id].topics).get(name, ()) and number in numbers
            ]
        )
        for (name, number), having in sorted(holders({name: of.active for name, of in threads.items()}).items())
        if len(having) > 1
    }


def balance_of_tasks(record: MembershipRecord) -> tuple[float | None, float | None] | None:
    """Imbalance of active tasks, and the lowest possible: any member may have any task. None where not known of all."""
    threads = threads_of(record)
    if threads is None:
        return None
    counts = [count_of(thread.active) for thread in threads.values()]
    if not sum(counts):
        return None, None
    least, more = divmod(sum(counts), len(counts))
    return imbalance(counts), imbalance([least + (at < more) for at in range(len(counts))])


def idle_threads(record: MembershipRecord, since: int) -> list[FindingAtRound]:
    """The finding `idle_members` where there are fewer tasks than threads.

    A thread with standby tasks is not idle. Nor is one that has none while there are more tasks than threads: it waits
    for the state of others, of which few are copied at once (`max.warmup.replicas`).

    Args:
        record: The group's membership.
        since: When the group decided, ms.
    """
    if all(count_of(member.assigned) for member in record.members):
        return []
    threads = threads_of(record) or {}
    tasks = sum(count_of(thread.active) for thread in threads.values())
    idle = [name for name, thread in threads.items() if not thread.active and not thread.standby]
    if not idle or tasks >= len(threads):
        return []
    verb = "is" if tasks == 1 else "are"
    why = f"there {verb} {counted(tasks, 'task')} for {counted(len(threads), 'member')}"
    return idle_finding(idle, len(threads), f"own nothing, {why}", since)
