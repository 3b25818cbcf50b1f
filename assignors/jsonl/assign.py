"""The lines of `evenkeel assign`: one JSON object in, one out; an error in a line is answered, not raised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assignors.assignment import to_pairs
from assignors.clients import as_listed
from assignors.exceptions import AssignorError, CannotTell
from assignors.jsonl import brokers as server
from assignors.jsonl import rocketmq
from assignors.jsonl.fields import (
    INT32,
    BadLine,
    a_list,
    a_partition,
    a_text,
    a_whole_number,
    an_object,
    optional_text,
    required,
)
from assignors.model import Group, Subscription
from assignors.registry import assign
from assignors.strategy import JAVA, Library, Strategy, parse_library


def assign_line(line: object, custom: Mapping[str, Strategy] | None = None) -> dict[str, Any]:
    """Answer one line of `evenkeel assign` (docs/tools.md); the strategy's name determines the family.

    Args:
        line: The decoded object.
        custom: Users' own strategies by name.

    Returns:
        {"assignment": ...} or {"error": reason}. Never raises.
    """
    strategy = line.get("strategy") if isinstance(line, dict) else None
    if isinstance(strategy, str):
        if strategy.startswith(rocketmq.PREFIX):
            return rocketmq.allocate_line(line)
        if strategy.startswith(server.PREFIX):
            return server.server_line(line)
    return client_line(line, custom or {})


def client_line(line: object, custom: Mapping[str, Strategy]) -> dict[str, Any]:
    """Answer one line for Kafka clients.

    Args:
        line: The decoded object: "strategy", "partitions_per_topic", "members" (their order, and that of the lists in
            them, matters), and optionally "library", "partition_racks", "remembered_generation",
            "other_topics_known" and "leader".
        custom: Users' own strategies by name.

    Returns:
        {"assignment": {id: [[topic, partition], ...]}} as the leader's `assign()` returns it, or
        {"error": reason}, with {"possible": [assignment, ...]} if it must have been one of these. Never raises.
    """
    try:
        question = an_object(line, "the line")
        strategy = a_text(required(question, "strategy"), "strategy")
        library = read_library(question)
        group = read_client_group(question)
        racks = read_racks(question)
        result = assign(custom.get(strategy, strategy), group, library, racks)
        listed = as_listed(strategy, group, library, result, racks)
    except (BadLine, AssignorError) as error:
        answer: dict[str, Any] = {"error": str(error)}
        if isinstance(error, CannotTell) and error.possible:
            answer["possible"] = [_written(to_pairs(assignment)) for assignment in error.possible]
        return answer
    return {"assignment": _written(listed)}


def read_client_group(question: Mapping[str, Any]) -> Group:
    """Read "members", "partitions_per_topic" and the leader's other knowledge; raises BadLine and BadGroup."""
    return Group(
        _members(question),
        _partition_counts(question),
        remembered_generation=_remembered_generation(question),
        other_topics_known=_other_topics_known(question),
        leader=optional_text(question.get("leader"), "leader"),
    )


def read_library(question: Mapping[str, Any]) -> Library:
    """Read "library" of a line; without one, the newest Java."""
    given = question.get("library")
    return Library(JAVA) if given is None else parse_library(a_text(given, "library"))


def read_racks(question: Mapping[str, Any]) -> dict[str, list[list[str]]] | None:
    """Read "partition_racks" of a line; None without one."""
    given = question.get("partition_racks")
    if given is None:
        return None
    racks = {}
    for topic, partitions in an_object(given, "partition_racks").items():
        where = f"partition_racks of topic {topic!r}"
        racks[topic] = [
            [a_text(rack, f"a rack in {where}") for rack in a_list(replicas, where) if rack is not None]
            for replicas in a_list(partitions, where)
        ]
    return racks


def _remembered_generation(question: Mapping[str, Any]) -> int:
    given = question.get("remembered_generation")
    if given is None:
        return -1
    generation = a_whole_number(given, "remembered_generation")
    if not -1 <= generation < INT32:
        message = f"The remembered_generation is {generation}: give a generation, or -1 for none."
        raise BadLine(message)
    return generation


def _other_topics_known(question: Mapping[str, Any]) -> bool:
    given = question.get("other_topics_known", False)
    if not isinstance(given, bool):
        message = f"Expected true or false for other_topics_known, got {given!r}."
        raise BadLine(message)
    return given


def _written(listed: Mapping[str, Iterable[tuple[str, int]]]) -> dict[str, list[list[Any]]]:
    return {member_id: [list(pair) for pair in pairs] for member_id, pairs in listed.items()}


def _partition_counts(question: Mapping[str, Any]) -> dict[str, int]:
    # `Group` checks the numbers.
    return an_object(required(question, "partitions_per_topic"), "partitions_per_topic")


def _members(question: Mapping[str, Any]) -> tuple[Subscription, ...]:
    members = an_object(required(question, "members"), "members")
    return tuple(_member(member_id, given) for member_id, given in members.items())


def _member(member_id: str, given: object) -> Subscription:
    where = f"member {member_id!r}"
    member = an_object(given, where)
    topics = a_list(required(member, "topics", where), f"topics of {where}")
    generation = member.get("generation")
    if generation is not None and type(generation) is not int:
        message = f"The generation of {where} is {generation!r}: give a whole number or null."
        raise BadLine(message)
    return Subscription(
        member_id,
        tuple(a_text(topic, f"a topic of {where}") for topic in topics),
        owned=_owned(a_list(member.get("owned") or [], f"owned of {where}"), where),
        generation=None if generation is None or generation < 0 else generation,
        group_instance_id=optional_text(member.get("group_instance_id"), f"group_instance_id of {where}"),
        rack=optional_text(member.get("rack"), f"rack of {where}"),
        user_data=_bytes(member.get("user_data"), where),
    )


def _owned(pairs: list[Any], where: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    # The order of the pairs may matter, so only adjacent pairs of one topic are joined.
    topics: list[tuple[str, list[int]]] = []
    for pair in pairs:
        topic, partition = a_partition(pair, f"An owned partition of {where}")
        if not topics or topics[-1][0] != topic:
            topics.append((topic, []))
        topics[-1][1].append(partition)
    return tuple((topic, tuple(partitions)) for topic, partitions in topics)


def _bytes(given: object, where: str) -> bytes | None:
    if given is None:
        return None
    try:
        return bytes.fromhex(a_text(given, f"user_data of {where}"))
    except ValueError:
        message = f"The user_data of {where} is not hex."
        raise BadLine(message) from None
