"""The lines of `evenkeel assign` for RocketMQ."""

from __future__ import annotations

from typing import Any

from assignors.exceptions import AssignorError
from assignors.jsonl.fields import BadLine, a_list, a_text, a_whole_number, an_object, required
from assignors.rocketmq import AllocateStrategy, CallWouldFail, MessageQueue, Options, allocate_all, strategy_named

PREFIX = "rocketmq:"
"""Prefix of RocketMQ strategies in a line."""


def allocate_line(line: object) -> dict[str, Any]:
    """Answer one line of `evenkeel assign` for RocketMQ (docs/tools.md).

    Args:
        line: The decoded object: "strategy" ("rocketmq:AVG"), "queues", "clients", and optionally "presort" and
            "options".

    Returns:
        {"assignment": {client: [queue, ...]}} in the class's order, with null where the class returns null and
        {"error": reason} for a client whose own call would throw; or {"error": reason} for the whole line. Never
        raises.
    """
    try:
        question = an_object(line, "the line")
        strategy = read_strategy(a_text(required(question, "strategy"), "strategy"), question.get("options"))
        presort = read_presort(question)
        queues = read_queues(required(question, "queues"), "queues")
        result = allocate_all(strategy, queues, read_clients(question), presort=presort)
    except (BadLine, AssignorError) as error:
        return {"error": str(error)}
    return {
        "assignment": {
            client: {"error": str(dealt)} if isinstance(dealt, CallWouldFail) else written_queues(dealt)
            for client, dealt in result.items()
        }
    }


def read_strategy(name: str, options: object) -> AllocateStrategy:
    """The strategy for "strategy" and "options" of a line."""
    return strategy_named(name.removeprefix(PREFIX), _options(options))


def read_clients(question: dict[str, Any]) -> list[str]:
    """Read "clients" of a line."""
    return [a_text(client, "a client") for client in a_list(required(question, "clients"), "clients")]


def read_presort(question: dict[str, Any]) -> bool:
    """Read "presort" of a line; true without one."""
    presort = question.get("presort", True)
    if not isinstance(presort, bool):
        message = f"Expected true or false for presort, got {presort!r}."
        raise BadLine(message)
    return presort


def read_queues(given: object, what: str) -> tuple[MessageQueue, ...]:
    """Read a list of {"topic", "broker", "queue"}."""
    result = []
    for one in a_list(given, what):
        queue = an_object(one, f"a queue of {what}")
        where = f"a queue of {what}"
        result.append(
            MessageQueue(
                a_text(required(queue, "topic", where), f"the topic of {where}"),
                a_text(required(queue, "broker", where), f"the broker of {where}"),
                a_whole_number(required(queue, "queue", where), f"the queue id of {where}"),
            )
        )
    return tuple(result)


def written_queues(queues: tuple[MessageQueue, ...] | None) -> list[dict[str, Any]] | None:
    """Queues in the form of a line."""
    return None if queues is None else [queue._asdict() for queue in queues]


def _options(given: object) -> Options:
    options = {} if given is None else an_object(given, "options")
    unknown = sorted(set(options) - {"virtual_node_cnt", "message_queue_list", "consumeridcs", "room_separator"})
    if unknown:
        message = f"Option {unknown[0]!r} is not known."
        raise BadLine(message)
    rooms, listed = options.get("consumeridcs"), options.get("message_queue_list")
    nodes, separator = options.get("virtual_node_cnt"), options.get("room_separator")
    return Options(
        virtual_node_cnt=10 if nodes is None else a_whole_number(nodes, "virtual_node_cnt"),
        message_queue_list=None if listed is None else read_queues(listed, "message_queue_list"),
        consumeridcs=None
        if rooms is None
        else frozenset(a_text(room, "a room of consumeridcs") for room in a_list(rooms, "consumeridcs")),
        room_separator=None if separator is None else a_text(separator, "room_separator"),
    )
