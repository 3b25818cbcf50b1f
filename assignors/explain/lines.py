"""Explains a line of `evenkeel assign`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from assignors.assignment import Assignment, PartitionId, from_pairs
from assignors.brokers import ServerGroup, assign_on_server
from assignors.clients.sticky.claims import claimed_partitions
from assignors.exceptions import AssignorError, CallWouldFail
from assignors.explain.explanation import Explanation
from assignors.jsonl.lines import (
    ROCKETMQ_PREFIX,
    SERVER_PREFIX,
    STREAMS_PREFIX,
    AllocateLine,
    ClientLine,
    ServerLine,
    StreamsLine,
    as_queues,
    read,
)
from assignors.registry import assign
from assignors.rocketmq import MessageQueue, allocate_all
from assignors.strategy import JAVA, KAFKA_PYTHON, Strategy

_STICKY = ("sticky", "cooperative-sticky")

_RULES: Final = {
    "range": "range deals each topic by itself, as evenly as it can; the first subscribers get what is left over.",
    "roundrobin": "roundrobin deals the partitions of all topics in turn, among those that subscribe to the topic.",
    "sticky": "sticky lets members keep what they had as far as the balance allows, and deals the rest.",
    "cooperative-sticky": (
        "cooperative-sticky lets members keep what they had as far as the balance allows and deals the rest; what "
        "another member still reads is not assigned in this generation but in the next."
    ),
    "server-range": "The broker's range deals each topic by itself, as evenly as it can.",
    "server-uniform": (
        "The broker's uniform lets members keep their previous target as far as the balance allows, and deals the rest."
    ),
    "server-simple": (
        "The broker's simple gives a partition as many members as it takes for each member to have one; members keep "
        "their previous target as far as the balance allows. Only partitions that the group has initialized are given."
    ),
    "streams-sticky": (
        "The broker's sticky task assignor lets members keep their previous tasks as far as the balance allows, and "
        "deals the rest. These are the active tasks: 1_3 is task 3 of subtopology 1."
    ),
    "rocketmq:AVG": "AVG cuts the queues, in order, into one block per client; the first get what is left over.",
    "rocketmq:AVG_BY_CIRCLE": "AVG_BY_CIRCLE deals the queues, in order, to the clients in turn, like cards.",
    "rocketmq:CONFIG": "CONFIG gives every client the queues that its code was configured with.",
    "rocketmq:MACHINE_ROOM": "MACHINE_ROOM deals the queues of brokers named room@broker with a configured room.",
    "rocketmq:CONSISTENT_HASH": "CONSISTENT_HASH gives a queue to the client that is next on a ring of hashes.",
}
"""What a strategy does, in words."""

_NEARBY: Final = (
    "MACHINE_ROOM_NEARBY deals each room's queues among the clients of that room, and the queues of rooms without a "
    "client among all."
)

# Libraries whose strategies are those of `_RULES`; the others have algorithms of their own under these names.
_LIKE_JAVA: Final = (JAVA, "librdkafka", KAFKA_PYTHON, "aiokafka")


def explain_line(line: object, custom: Mapping[str, Strategy] | None = None) -> Explanation:
    """Explain one line of `evenkeel assign` (docs/tools.md): the assignment that it gives, and what it changes.

    Args:
        line: The decoded object.
        custom: Users' own strategies by name.

    Raises:
        BadLine: The line is not one of `evenkeel assign`.
        BadGroup: Its group contradicts itself.
    """
    strategy = line.get("strategy") if isinstance(line, dict) else None
    if isinstance(strategy, str) and strategy.startswith(ROCKETMQ_PREFIX):
        return _explain_view(read(line, AllocateLine))
    if isinstance(strategy, str) and strategy.startswith(SERVER_PREFIX):
        return _explain_server(read(line, ServerLine))
    if isinstance(strategy, str) and strategy.startswith(STREAMS_PREFIX):
        return _explain_tasks(read(line, StreamsLine))
    asked = read(line, ClientLine)
    return _explain_client(asked, (custom or {}).get(asked.strategy))


def _explain_client(line: ClientLine, custom: Strategy | None) -> Explanation:
    strategy, library, group = line.strategy, line.leaders_library(), line.group()
    rule, reason = _RULES.get(strategy, f"{strategy}."), None
    if custom is not None:
        rule = f"{strategy} is a strategy of your own: Evenkeel asks its code for the assignment."
        reason = None if custom.deterministic else "It is not deterministic: asked again it may give another result"
    elif library.name not in _LIKE_JAVA:
        rule = f"{library.name} has its own algorithm under the name {strategy}: docs/assignors.md says what it does."
    had = {}
    if strategy in _STICKY:
        had = {member.member_id: _partition_ids(claimed_partitions(member)) for member in group.members}
    blank = Explanation(rule, _ranges(group.partitions_per_topic), had)
    try:
        assignment = assign(custom or strategy, group, library, line.racks())
    except AssignorError as error:
        return blank.not_computed(error)
    return replace(blank, assignment=assignment, reason=reason)


def _explain_server(line: ServerLine) -> Explanation:
    group = line.group()
    named = _topic_names(group)
    partitions = {topic_name: topic.assignable() for topic_name, topic in group.topics.items()}
    had = {
        member.member_id: _partition_ids(
            [(named.get(group.uuids[topic_id].text, topic_id), numbers) for topic_id, numbers in member.target]
        )
        for member in group.members
    }
    blank = Explanation(_RULES.get(line.strategy, f"{line.strategy}."), partitions, had)
    try:
        return replace(blank, assignment=_by_name(assign_on_server(line.strategy, group, line.library), group))
    except AssignorError as error:
        return blank.not_computed(error)


def _explain_tasks(line: StreamsLine) -> Explanation:
    had = {member_id: _partition_ids(member.active) for member_id, member in line.members.items()}
    tasks = _ranges({name: part.tasks for name, part in line.subtopologies.items()})
    blank = Explanation(_RULES.get(line.strategy, f"{line.strategy}."), tasks, had, unit="task")
    try:
        return replace(blank, assignment=line.assign().active)
    except AssignorError as error:
        return blank.not_computed(error)


def _explain_view(line: AllocateLine) -> Explanation:
    """One view of a RocketMQ group: each client computes its own share."""
    queues = as_queues(line.queues)
    partitions: dict[str, set[int]] = {}
    for queue in queues:
        topic, number = _partition_id(queue)
        partitions.setdefault(topic, set()).add(number)
    blank = Explanation(_RULES.get(line.strategy, _NEARBY), partitions)
    try:
        dealt = allocate_all(line.named(line.strategy), queues, line.clients, presort=line.presort)
    except AssignorError as error:
        return blank.not_computed(error)
    given, failing = {}, []
    for client, mine in dealt.items():
        if isinstance(mine, CallWouldFail):
            failing.append(f"{client}: {mine}")
        else:
            given[client] = map(_partition_id, mine or ())
    if failing:
        reason = f"The call of {len(failing):,} of the clients throws, so each keeps what it has ({failing[0]})"
        blank = replace(blank, reason=reason)
    return replace(blank, assignment=from_pairs(given))


def _partition_id(queue: MessageQueue) -> PartitionId:
    """A queue as the tables name it."""
    return f"{queue.topic}@{queue.broker}", queue.queue


def _ranges(counts_by_topic: Mapping[str, int]) -> dict[str, range]:
    return {topic: range(count) for topic, count in counts_by_topic.items()}


def _partition_ids(claimed: Iterable[tuple[str, Iterable[int]]]) -> dict[PartitionId, None]:
    return dict.fromkeys((topic, number) for topic, numbers in claimed for number in numbers)


def _topic_names(group: ServerGroup) -> dict[str, str]:
    """Names of topics by id; ids of topics that are gone are missing."""
    return {group.uuids[topic.topic_id].text: topic_name for topic_name, topic in group.topics.items()}


def _by_name(assignment: Assignment, group: ServerGroup) -> Assignment:
    """An assignment by topic id, by topic name."""
    named = _topic_names(group)
    return {
        member: {named.get(topic_id, topic_id): partitions for topic_id, partitions in topics.items()}
        for member, topics in assignment.items()
    }
