"""The lines of `evenkeel what-if`: a line of `evenkeel assign` plus the current owners in, an object a strategy out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assignors.assignment import Assignment, from_pairs, to_pairs
from assignors.brokers import what_if_on_server
from assignors.exceptions import AssignorError
from assignors.jsonl import brokers as server
from assignors.jsonl import rocketmq
from assignors.jsonl.assign import read_client_group, read_library, read_racks
from assignors.jsonl.fields import BadLine, a_list, a_partition, a_text, an_object, loads, optional_text, required
from assignors.measures import Load, Outcome, what_if
from assignors.registry import known_strategies
from assignors.rocketmq import (
    AllocateStrategy,
    CallWouldFail,
    DealtQueues,
    known_allocate_strategies,
    what_if_in_rocketmq,
)
from assignors.strategy import Strategy


def what_if_line(line: object, custom: Mapping[str, Strategy] | None = None) -> dict[str, Any]:
    """Answer one line of `evenkeel what-if` (docs/tools.md).

    Args:
        line: The decoded object: as for `assign`, with "current", and optionally "load" and "strategies". The fields
            determine the family (clients, brokers, RocketMQ): "queues" for RocketMQ, "topics" for brokers. "strategy"
            is optional; without "strategies" all of the family are tried.
        custom: Further strategies by name.

    Returns:
        By strategy {"assignment", "partitions_moved", "partitions_moved_optimal", "imbalance", "imbalance_optimal",
        "load_imbalance", "generations"}, or {"error": reason} for one that cannot be computed; or {"error": reason} for
        the whole line. Never raises.
    """
    try:
        question = an_object(line, "the line")
        if "queues" in question:
            return _of_rocketmq(question)
        if "topics" in question:
            return _of_server(question)
        return _of_clients(question, custom or {})
    except (BadLine, AssignorError) as error:
        return {"error": str(error)}


def _of_clients(question: Mapping[str, Any], custom: Mapping[str, Strategy]) -> dict[str, Any]:
    group = read_client_group(question)
    names = _strategies(question) or [*known_strategies(), *custom]
    told = what_if(
        group,
        [custom.get(name, name) for name in names],
        _current(question),
        library=read_library(question),
        partition_racks=read_racks(question),
        load=_load(question, group.partitions_per_topic),
    )
    return {name: _written(outcome, _listed) for name, outcome in told.items()}


def _of_server(question: Mapping[str, Any]) -> dict[str, Any]:
    group = server.read_group(question)
    told = what_if_on_server(
        group,
        _strategies(question),
        _current(question),
        release=optional_text(question.get("library"), "library"),
        load=_load(question, group.counts),
    )
    return {name: _written(outcome, server.listed) for name, outcome in told.items()}


def _of_rocketmq(question: dict[str, Any]) -> dict[str, Any]:
    queues = rocketmq.read_queues(required(question, "queues"), "queues")
    clients = rocketmq.read_clients(question)
    given = an_object(required(question, "current"), "current")
    current = {client: rocketmq.read_queues(owned, f"current of {client!r}") for client, owned in given.items()}
    load = question.get("load")
    weights = None if load is None else loads(load, "load", len(queues))
    options, presort = question.get("options"), rocketmq.read_presort(question)
    names = _strategies(question)
    if names is None:
        names = [rocketmq.PREFIX + name for name in known_allocate_strategies()]
        if isinstance(options, dict) and options.get("room_separator"):
            names.append(f"{rocketmq.PREFIX}MACHINE_ROOM_NEARBY-AVG")
    made: dict[str, AllocateStrategy] = {}
    result: dict[str, Any] = {}
    for name in names:
        try:
            made[name] = rocketmq.read_strategy(name, options)
            result[name] = None  # in the line's order
        except AssignorError as error:
            result[name] = {"error": str(error)}
    told = what_if_in_rocketmq(list(made.values()), queues, clients, current, presort=presort, load=weights)
    for name, strategy in made.items():
        result[name] = _rocketmq_written(told[strategy.name])
    return result


def _rocketmq_written(told: DealtQueues | AssignorError) -> dict[str, Any]:
    if isinstance(told, AssignorError):
        return {"error": str(told)}
    dealt, outcome = told
    assignment = {
        client: {"error": str(mine)} if isinstance(mine, CallWouldFail) else rocketmq.written_queues(mine)
        for client, mine in dealt.items()
    }
    return {"assignment": assignment, **_measures(outcome)}


def _listed(assignment: Assignment) -> dict[str, list[list[Any]]]:
    return {member_id: [list(pair) for pair in pairs] for member_id, pairs in to_pairs(assignment).items()}


def _written(outcome: Outcome | AssignorError, listed: Any) -> dict[str, Any]:
    if isinstance(outcome, AssignorError):
        return {"error": str(outcome)}
    return {"assignment": listed(outcome.assignment), **_measures(outcome)}


def _measures(outcome: Outcome) -> dict[str, Any]:
    return {
        "partitions_moved": outcome.partitions_moved,
        "partitions_moved_optimal": outcome.bounds.partitions_moved_optimal,
        "imbalance": outcome.partitions and outcome.partitions.imbalance,
        "imbalance_optimal": outcome.bounds.imbalance_optimal,
        "load_imbalance": outcome.load and outcome.load.imbalance,
        "generations": outcome.generations,
    }


def _strategies(question: Mapping[str, Any]) -> list[str] | None:
    given = question.get("strategies")
    if given is not None:
        return list(dict.fromkeys(a_text(name, "a strategy") for name in a_list(given, "strategies")))
    return None


def _current(question: Mapping[str, Any]) -> Assignment:
    members = {}
    for member_id, pairs in an_object(required(question, "current"), "current").items():
        where = f"current of {member_id!r}"
        members[member_id] = [a_partition(pair, f"A partition of {where}") for pair in a_list(pairs, where)]
    return from_pairs(members)


def _load(question: Mapping[str, Any], counts: Mapping[str, int]) -> Load | None:
    given = question.get("load")
    if given is None:
        return None
    load = {}
    for topic, numbers in an_object(given, "load").items():
        if topic not in counts:
            message = f"The load has topic {topic!r}, which the group's topics do not have."
            raise BadLine(message)
        load[topic] = loads(numbers, f"the load of topic {topic!r}", counts[topic])
    return load
