"""The members of one generation, as its record has them: owners, subscriptions and counts, and their rows of `members`.

Each member of a decision gets a row with its partitions, and a closing row when it has left.

Kafka Streams with the classic protocol is a group whose strategy `stream` deals tasks, and the partitions follow them.
A task reads the partitions of its number in all topics of its subtopology. So it may be active with one member only,
and the load of a member is its tasks. Which member gets a task depends on the lag of each copy of its state: the leader
asks the brokers for the ends of changelogs, and no record has them (`HighAvailabilityTaskAssignor`, KIP-441).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from assignors import AssignorError, BadGroup, Group, Subscription, imbalance, imbalance_optimal
from streaming.groups.context import Context
from streaming.groups.kind import FindingAtRound, Ownership, Owning, idle_finding
from streaming.groups.rows import DriftedPartition, MemberRow, TopicAssignment, known, split
from streaming.groups.state import GroupState
from streaming.groups.verdicts import MISPLACED
from streaming.records import (
    CONNECT,
    CONNECTOR,
    CONSUMER,
    STREAM,
    Member,
    MembershipRecord,
    StreamThread,
    count_of,
    counts_in,
    each_of,
    holders,
    thread_of,
    worker_of,
)
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


Owners = dict[tuple[str, int], str]
"""Member id by topic and partition."""

# A record may claim partition 2,147,483,646, and recomputing a group of that size would stop the job. The largest group
# in Kafka's own scale tests (`AbstractStickyAssignorTest`) has 1,000,000 partitions.
MAX_GROUP_PARTITIONS = 2_000_000


def is_consumer(record: MembershipRecord) -> bool:
    """Whether the record's protocol type is "consumer": its assignments are topic partitions."""
    return record.protocol_type == CONSUMER


def is_connect(record: MembershipRecord) -> bool:
    """Whether the record is of Kafka Connect's workers: what it assigns are connectors and tasks (`Member`)."""
    return record.protocol_type == CONNECT


def columns_of(record: MembershipRecord, incarnation: int, context: Context) -> dict[str, Any]:
    """The columns that every row about a decision has."""
    return context.of_a_decision(
        record.record, record.log_partition, record.record_time, incarnation, record.known_generation
    )


def undecodable(record: MembershipRecord) -> Member | None:
    """The first member whose subscription or assignment cannot be decoded; None if all can."""
    return next(
        (m for m in record.members if m.undecodable is not None or m.topics is None or m.assigned is None), None
    )


def owners_in(record: MembershipRecord) -> Ownership:
    """Who owns what by a record: topic partitions, or units of Connect. Nobody where its protocol type is another."""
    members = record.members if is_consumer(record) or is_connect(record) else ()
    return Ownership([Owning(m, m.assigned, m.topics) for m in members], (record.record, len(record.members)))


def owners_of(record: MembershipRecord, beside: MembershipRecord | None = None) -> Owners | None:
    """Id of the member that owns each partition, by topic.

    Args:
        record: The record.
        beside: The decision before or after it. Of a partition's several owners one counts that both records have: it
            has not moved. Without one it is the first in record order.

    Returns:
        None if nothing is known of what the protocol type assigns, or an assignment cannot be decoded.
    """
    if not record.members:
        return {}
    if counts_of(record) is None:
        return None
    by_topic = owners_in(record).by_partition
    owners = {(topic, number): m.member_id for topic, of_topic in by_topic.items() for number, m in of_topic.items()}
    if beside is not None and sum(counts_of(record) or ()) > len(owners):
        now, before_or_after = (holders({m.member_id: m.assigned for m in of.members}) for of in (record, beside))
        for partition, members in now.items():
            staying = set(members).intersection(before_or_after.get(partition, ()))
            if staying:
                owners[partition] = min(staying)
    return owners


def counts_of(record: MembershipRecord) -> list[int] | None:
    """Number of assigned partitions, or units, per member, in record order; None if an assignment is unknown."""
    if not (is_consumer(record) or is_connect(record)) or any(member.assigned is None for member in record.members):
        return None
    return [count_of(member.assigned) for member in record.members]


def wanted_topics(record: MembershipRecord) -> set[str]:
    """Topics with a subscriber as far as known: a member with an unknown subscription wants what it is assigned."""
    wanted: set[str] = set()
    for member in record.members:
        if member.topics is not None:
            wanted.update(member.topics)
        else:
            wanted.update(topic for topic, _ in member.assigned or ())
    return wanted


def leader_counts(record: MembershipRecord) -> dict[str, int]:
    """The leader's partition counts, as lower bounds: per topic the highest assigned partition plus one.

    Returns:
        All subscribed or assigned topics; 0 for a topic with no assigned partition.
    """
    counts: dict[str, int] = {}
    for member in record.members:
        counts.update(dict.fromkeys(member.topics or (), 0))
    return counts | counts_in([member.assigned for member in record.members])


def group_for_assignors(record: MembershipRecord) -> Group:
    """The group as its leader saw it, with the partition counts that its assignment shows.

    Raises:
        AssignorError: No leader could have seen such a group (for example, a member id occurs twice).
    """
    counts = leader_counts(record)
    if sum(counts.values()) > MAX_GROUP_PARTITIONS:
        message = f"the record assigns partition numbers up to {max(counts.values()) - 1}: too many to recompute"
        raise BadGroup(message)
    return Group(tuple(map(subscription_of, record.members)), counts, leader=record.leader)


def balance_of(record: MembershipRecord) -> tuple[float | None, float | None]:
    """Imbalance of a decision, and the lowest that any assignment of the same partitions, or tasks, could have.

    Returns:
        (None, None) when nothing is assigned or an assignment cannot be decoded; (imbalance, None) when only the lowest
        cannot be computed, as where a subscription cannot be decoded.
    """
    counts = counts_of(record)
    if not counts or not sum(counts):
        return None, None
    if is_connect(record):
        present = imbalance(counts) or 0.0
        return present, min(present, _even_units(record))
    if undecodable(record) is not None:
        return imbalance(counts), None
    if is_streams(record):
        return balance_of_tasks(record) or (imbalance(counts), None)
    try:
        return imbalance(counts), imbalance_optimal(group_for_assignors(record))
    except AssignorError:
        return imbalance(counts), None


def _even_units(record: MembershipRecord) -> float:
    """Imbalance of an even deal of Connect's units. Its leaders deal connectors and tasks each by themselves.

    So the same worker may have one more of both, where an even deal of all together would need neither.
    """
    numbers = [number for member in record.members for _, number in each_of(member.assigned)]
    connectors, workers = numbers.count(CONNECTOR), len(record.members)
    most = -(-connectors // workers) - (connectors - len(numbers)) // workers
    return most * workers / len(numbers) - 1


_SMALL_BYTES: Final = 8 * 1024
"""Members with more of names and user data are not cached: a member may have a megabyte, and would stay in memory."""


def subscription_of(member: Member) -> Subscription:
    """A member as input for the assignors."""
    size = len(member.user_data or b"") + sum(map(len, member.topics or ()))
    if size <= _SMALL_BYTES:
        return _cached_subscription(member)
    return _subscription_of(member)


def _subscription_of(member: Member) -> Subscription:
    return Subscription(
        member_id=member.member_id,
        topics=member.topics or (),
        owned=member.owned,
        generation=member.generation,
        group_instance_id=member.group_instance_id,
        rack=member.rack,
        user_data=member.user_data,
    )


_cached_subscription = lru_cache(maxsize=4096)(_subscription_of)


def write_members(state: GroupState, record: MembershipRecord, incarnation: int, context: Context) -> None:
    """Write a row for every member of a decision, and a closing row for each previous member that is gone."""
    rows = [_member_row(member, record, incarnation, context) for member in record.members]
    context.rows.change_members(standing_members(state, context), rows, record.record, record.record_time)
    state.classic.members_ended = not record.members


def standing_members(state: GroupState, context: Context) -> list[MemberRow]:
    """The rows of those who are members, as their decision wrote them."""
    current = state.classic.current
    if current is None or state.classic.members_ended:
        return []
    return [_member_row(member, current.record, current.incarnation, context) for member in current.record.members]


def close_members(state: GroupState, offset: int, record_time: int, context: Context) -> None:
    """Write a closing row for every member of a group whose membership has ended."""
    context.rows.change_members(standing_members(state, context), (), offset, record_time)
    state.classic.members_ended = True


def _member_row(member: Member, record: MembershipRecord, incarnation: int, context: Context) -> MemberRow:
    assigned = member.assigned
    worker = worker_of(member) if is_connect(record) else None
    topics = member.topics if worker is None else None
    return MemberRow(
        **columns_of(record, incarnation, context),
        member_id=member.member_id,
        ended=False,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host if worker is None else worker.url,
        rack=member.rack or None,
        leader=None if record.seen else member.member_id == record.leader,
        subscription=None if topics is None else tuple(dict.fromkeys(split(topic)[0] for topic in topics)),
        partition_count=None if assigned is None else count_of(assigned),
        partitions=None if assigned is None else tuple(_assigned(unit, numbers) for unit, numbers in assigned),
        undecodable=member.undecodable,
        session_timeout_ms=known(member.session_timeout),
        rebalance_timeout_ms=known(member.rebalance_timeout),
    )


def _assigned(unit: str, numbers: tuple[int, ...]) -> TopicAssignment:
    topic, broker = split(unit)
    return TopicAssignment(topic, numbers, broker)
