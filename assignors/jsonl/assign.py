"""The lines of `evenkeel assign`: one JSON object in, one out; an error in a line is answered, not raised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assignors.assignment import Assignment, to_pairs
from assignors.brokers import assign_on_server
from assignors.clients.assign_order import as_listed
from assignors.exceptions import AssignorError, CallWouldFail, CannotTell
from assignors.jsonl.lines import (
    ROCKETMQ_PREFIX,
    SERVER_PREFIX,
    AllocateLine,
    BadLine,
    ClientLine,
    ServerLine,
    as_queues,
    read,
)
from assignors.registry import assign
from assignors.rocketmq import Queues, allocate_all
from assignors.strategy import Strategy


def assign_line(line: object, custom: Mapping[str, Strategy] | None = None) -> dict[str, Any]:
    """Answer one line of `evenkeel assign` (docs/tools.md); the strategy's name determines the family.

    Args:
        line: The decoded object.
        custom: Users' own strategies by name.

    Returns:
        {"assignment": {id: [[topic, partition], ...]}} as the leader's `assign()` returns it; for brokers sorted by
        topic id and partition; for RocketMQ {client: [queue, ...]} in the class's order, with null where the class
        returns null and {"error": reason} for a client whose own call would throw. Or {"error": reason}, with
        {"possible": [assignment, ...]} if it must have been one of these. Never raises.
    """
    strategy = line.get("strategy") if isinstance(line, dict) else None
    try:
        if isinstance(strategy, str) and strategy.startswith(ROCKETMQ_PREFIX):
            return {"assignment": _of_rocketmq(read(line, AllocateLine))}
        if isinstance(strategy, str) and strategy.startswith(SERVER_PREFIX):
            asked = read(line, ServerLine)
            return {"assignment": sorted_pairs(assign_on_server(asked.strategy, asked.group(), asked.library))}
        return {"assignment": _of_client(read(line, ClientLine), custom or {})}
    except (BadLine, AssignorError) as error:
        answer: dict[str, Any] = {"error": str(error)}
        if isinstance(error, CannotTell) and error.possible:
            answer["possible"] = [as_lists(to_pairs(assignment)) for assignment in error.possible]
        return answer


def _of_client(line: ClientLine, custom: Mapping[str, Strategy]) -> dict[str, Any]:
    library, group, racks = line.leaders_library(), line.group(), line.racks()
    result = assign(custom.get(line.strategy, line.strategy), group, library, racks)
    return as_lists(as_listed(line.strategy, group, library, result, racks))


def _of_rocketmq(line: AllocateLine) -> dict[str, Any]:
    dealt = allocate_all(line.named(line.strategy), as_queues(line.queues), line.clients, presort=line.presort)
    return listed_queues(dealt)


def as_lists(listed: Mapping[str, Iterable[tuple[str, int]]]) -> dict[str, list[list[Any]]]:
    """Pairs of each member as JSON has them."""
    return {member_id: [list(pair) for pair in pairs] for member_id, pairs in listed.items()}


def sorted_pairs(assignment: Assignment) -> dict[str, list[list[Any]]]:
    """A broker's assignment as sorted pairs."""
    return as_lists({member_id: sorted(pairs) for member_id, pairs in to_pairs(assignment).items()})


def listed_queues(dealt: Mapping[str, Queues | CallWouldFail | None]) -> dict[str, Any]:
    """Each client's queues; null where the class returns null, {"error": reason} where its call would throw."""
    return {
        client: {"error": str(mine)}
        if isinstance(mine, CallWouldFail)
        else mine and [queue._asdict() for queue in mine]
        for client, mine in dealt.items()
    }
