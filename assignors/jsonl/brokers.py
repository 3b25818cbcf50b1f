"""The lines of `evenkeel assign` for Kafka's brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assignors.assignment import Assignment
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server
from assignors.exceptions import AssignorError
from assignors.jsonl.fields import BadLine, a_list, a_text, an_object, optional_text, required

PREFIX = "server-"
"""Prefix of all strategies of brokers."""


def server_line(line: object) -> dict[str, Any]:
    """Answer one line of `evenkeel assign` for Kafka's brokers (docs/tools.md).

    Args:
        line: The decoded object: "strategy" ("server-uniform", "server-range"), "topics", "members" (their order, and
            that of the lists in them, matters), and optionally "library", the broker's release.

    Returns:
        {"assignment": {id: [[topic id, partition], ...]}}, sorted by topic id and partition, or
        {"error": reason}. Never raises.
    """
    try:
        question = an_object(line, "the line")
        strategy = a_text(required(question, "strategy"), "strategy")
        release = optional_text(question.get("library"), "library")
        result = assign_on_server(strategy, read_group(question), release)
    except (BadLine, AssignorError) as error:
        return {"error": str(error)}
    return {"assignment": listed(result)}


def read_group(question: Mapping[str, Any]) -> ServerGroup:
    """Read "topics" and "members" of a line; raises BadLine and BadGroup."""
    topics = {}
    for name, given in an_object(required(question, "topics"), "topics").items():
        where = f"topic {name!r}"
        topic = an_object(given, where)
        count: Any = required(topic, "partitions", where)  # checked by ServerGroup
        topics[name] = ServerTopic(a_text(required(topic, "id", where), f"the id of {where}"), count)
    members = an_object(required(question, "members"), "members")
    return ServerGroup(tuple(_member(member_id, given) for member_id, given in members.items()), topics)


def listed(assignment: Assignment) -> dict[str, list[list[Any]]]:
    """Convert an assignment to sorted pairs."""
    return {
        member_id: [[topic_id, partition] for topic_id in sorted(topics) for partition in sorted(topics[topic_id])]
        for member_id, topics in assignment.items()
    }


def _member(member_id: str, given: object) -> ServerMember:
    where = f"member {member_id!r}"
    member = an_object(given, where)
    topics = a_list(required(member, "topics", where), f"topics of {where}")
    target = []
    for pair in a_list(member.get("target") or [], f"target of {where}"):
        match pair:
            case [str(topic_id), list(partitions)]:
                target.append((topic_id, partitions))
            case _:
                message = f"A part of the target of {where} is {pair!r}: give [topic id, [partition, ...]]."
                raise BadLine(message)
    return ServerMember(
        member_id,
        tuple(a_text(topic, f"a topic of {where}") for topic in topics),
        target=tuple(target),
        group_instance_id=optional_text(member.get("group_instance_id"), f"group_instance_id of {where}"),
        rack=optional_text(member.get("rack"), f"rack of {where}") or None,
    )
