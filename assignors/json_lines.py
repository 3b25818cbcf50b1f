"""The lines of `evenkeel assign`: one JSON object in, one out; whatever is wrong with a line is an answer too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assignors.exceptions import AssignorError
from assignors.library import JAVA, Library, parse_library
from assignors.listed import as_listed
from assignors.model import Group, Subscription
from assignors.registry import assign

__all__ = ["assign_line"]


class _BadLine(Exception):
    """The line is no question that can be answered; its text says why."""


def assign_line(line: object) -> dict[str, Any]:
    """Answer one line of `evenkeel assign` for Kafka clients (DESIGN.md 5).

    Args:
        line: The decoded object: "strategy", "partitions_per_topic", "members" (whose order, and that of the
            lists in them, counts), and where given "library" and "partition_racks".

    Returns:
        {"assignment": {id: [[topic, partition], ...]}} as the leader's `assign()` returns it, or
        {"error": reason}. Never raises.
    """
    try:
        question = _object(line, "the line")
        strategy = _text(_required(question, "strategy"), "strategy")
        library = _library(question.get("library"))
        group = Group(_members(question), _partition_counts(question))
        result = assign(strategy, group, library, _racks(question.get("partition_racks")))
        listed = as_listed(strategy, group, library, result)
    except (_BadLine, AssignorError) as error:
        return {"error": str(error)}
    return {"assignment": {member_id: [list(pair) for pair in pairs] for member_id, pairs in listed.items()}}


def _library(given: object) -> Library:
    return Library(JAVA) if given is None else parse_library(_text(given, "library"))


def _partition_counts(question: Mapping[str, Any]) -> dict[str, int]:
    # Group checks the numbers.
    return _object(_required(question, "partitions_per_topic"), "partitions_per_topic")


def _members(question: Mapping[str, Any]) -> tuple[Subscription, ...]:
    members = _object(_required(question, "members"), "members")
    return tuple(_member(member_id, given) for member_id, given in members.items())


def _member(member_id: str, given: object) -> Subscription:
    where = f"member {member_id!r}"
    member = _object(given, where)
    topics = _list(_required(member, "topics", where), f"topics of {where}")
    generation = member.get("generation")
    if generation is not None and type(generation) is not int:
        message = f"The generation of {where} is {generation!r}: give a whole number or null."
        raise _BadLine(message)
    return Subscription(
        member_id,
        tuple(_text(topic, f"a topic of {where}") for topic in topics),
        owned=_owned(_list(member.get("owned") or [], f"owned of {where}"), where),
        generation=None if generation is None or generation < 0 else generation,
        group_instance_id=_optional_text(member.get("group_instance_id"), f"group_instance_id of {where}"),
        rack=_optional_text(member.get("rack"), f"rack of {where}") or None,
        user_data=_bytes(member.get("user_data"), where),
    )


def _owned(pairs: list[Any], where: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    topics: dict[str, list[int]] = {}
    for pair in pairs:
        match pair:
            case [str(topic), int(partition)] if type(partition) is int:
                topics.setdefault(topic, []).append(partition)
            case _:
                message = f"An owned partition of {where} is {pair!r}: give [topic, partition]."
                raise _BadLine(message)
    return tuple((topic, tuple(partitions)) for topic, partitions in topics.items())


def _bytes(given: object, where: str) -> bytes | None:
    if given is None:
        return None
    try:
        return bytes.fromhex(_text(given, f"user_data of {where}"))
    except ValueError:
        message = f"The user_data of {where} is no hex."
        raise _BadLine(message) from None


def _racks(given: object) -> dict[str, list[list[str]]] | None:
    if given is None:
        return None
    racks = {}
    for topic, partitions in _object(given, "partition_racks").items():
        where = f"partition_racks of topic {topic!r}"
        racks[topic] = [
            [_text(rack, f"a rack in {where}") for rack in _list(replicas, where) if rack is not None]
            for replicas in _list(partitions, where)
        ]
    return racks


def _required(holder: Mapping[str, Any], key: str, where: str = "the line") -> object:
    if key not in holder:
        message = f"There is no {key!r} in {where}: add it."
        raise _BadLine(message)
    return holder[key]


def _object(given: object, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        message = f"What stands for {what} is no JSON object."
        raise _BadLine(message)
    return given


def _list(given: object, what: str) -> list[Any]:
    if not isinstance(given, list):
        message = f"What stands for {what} is no list."
        raise _BadLine(message)
    return given


def _text(given: object, what: str) -> str:
    if not isinstance(given, str):
        message = f"What stands for {what} is {given!r}: give a text."
        raise _BadLine(message)
    return given


def _optional_text(given: object, what: str) -> str | None:
    return None if given is None else _text(given, what)
