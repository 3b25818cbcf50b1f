"""The lines of `evenkeel what-if`: a line of `evenkeel assign` plus the current owners in, an object a strategy out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from msgspec import Struct

from assignors.assignment import Assignment, from_pairs, to_pairs
from assignors.brokers import ServerGroup, assign_on_server, known_server_strategies
from assignors.exceptions import AssignorError, CallWouldFail
from assignors.jsonl.assign import as_lists, listed_queues, sorted_pairs
from assignors.jsonl.lines import (
    ROCKETMQ_PREFIX,
    AllocateLine,
    BadLine,
    ClientLine,
    Pair,
    QueueOfLine,
    Rate,
    ServerLine,
    as_queues,
    read,
)
from assignors.measures import Load, Outcome, bounds_of, outcome, what_if
from assignors.model import Group, Subscription
from assignors.registry import known_strategies
from assignors.rocketmq import MessageQueue, allocate_all, known_allocate_strategies
from assignors.strategy import Strategy


class _Asked(Struct):
    current: dict[str, tuple[Pair, ...]]
    load: dict[str, list[Rate]] | None = None
    strategies: list[str] | None = None


class _AskedOfQueues(Struct):
    current: dict[str, tuple[QueueOfLine, ...]]
    load: list[Rate] | None = None
    strategies: list[str] | None = None


_Told = tuple[Mapping[str, Any], Outcome]
"""The assignment as the line shows it, and what it costs."""


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
        the whole line.

    Raises:
        UnicodeEncodeError: A topic's name has half of a surrogate pair; nothing else is raised.
    """
    fields = line if isinstance(line, dict) else {}
    try:
        if "queues" in fields:
            return _of_rocketmq(read(line, AllocateLine), read(line, _AskedOfQueues))
        if "topics" in fields:
            return _of_server(read(line, ServerLine), read(line, _Asked))
        return _of_clients(read(line, ClientLine), read(line, _Asked), custom or {})
    except (BadLine, AssignorError) as error:
        return {"error": str(error)}


def _of_clients(line: ClientLine, asked: _Asked, custom: Mapping[str, Strategy]) -> dict[str, Any]:
    group = line.group()
    told = what_if(
        group,
        [custom.get(name, name) for name in dict.fromkeys(asked.strategies or [*known_strategies(), *custom])],
        from_pairs(asked.current),
        library=line.leaders_library(),
        partition_racks=line.racks(),
        load=_load(asked.load, group.partitions_per_topic),
    )

    def shown(result: Outcome | AssignorError) -> _Told:
        if isinstance(result, AssignorError):
            raise result
        return as_lists(to_pairs(result.assignment)), result

    return {name: _answer(partial(shown, result)) for name, result in told.items()}


def _of_server(line: ServerLine, asked: _Asked) -> dict[str, Any]:
    group = line.group()
    now = {
        member_id: {group.uuids[topic_id].text: parts for topic_id, parts in topics.items()}
        for member_id, topics in from_pairs(asked.current).items()
    }
    load = _load(asked.load, group.counts)
    informed = group if any(member.target for member in group.members) else _with_targets(group, now)
    members = ((member.member_id, group.subscribed(member)) for member in group.members)
    measured = Group(tuple(Subscription(one, tuple(uuid.text for uuid in of)) for one, of in members), group.counts)
    bounds = bounds_of(measured, now)

    def compute(strategy: str) -> _Told:
        assignment = assign_on_server(strategy, informed, line.library)
        return sorted_pairs(assignment), outcome(measured, now, assignment, bounds, load)

    return {name: _answer(partial(compute, name)) for name in asked.strategies or known_server_strategies()}


def _with_targets(group: ServerGroup, current: Assignment) -> ServerGroup:
    def of(member_id: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple((topic, tuple(parts)) for topic, parts in current.get(member_id, {}).items())

    return ServerGroup(tuple(replace(member, target=of(member.member_id)) for member in group.members), group.topics)


# For the measures, which count partitions: every queue of RocketMQ is a partition of one topic.
_QUEUES = "queues"


def _of_rocketmq(line: AllocateLine, asked: _AskedOfQueues) -> dict[str, Any]:
    """A client whose call would throw keeps its queues, as in `RebalanceImpl`."""
    queues = as_queues(line.queues)
    current = {client: as_queues(owned) for client, owned in asked.current.items()}
    position: dict[MessageQueue, int] = {}
    for queue in chain(queues, *current.values()):
        position.setdefault(queue, len(position))
    here = len(set(queues))

    def numbered(owned: Iterable[MessageQueue]) -> dict[str, tuple[int, ...]]:
        # CONFIG may contain queues that do not exist: they are measured as additional ones.
        return {_QUEUES: tuple(sorted({position.setdefault(queue, len(position)) for queue in owned}))}

    now: Assignment = {client: dict(numbered(owned)) for client, owned in current.items()}
    group = Group(tuple(Subscription(client, (_QUEUES,)) for client in dict.fromkeys(line.clients)), {_QUEUES: here})
    load = None
    if asked.load is not None:
        _require_count(asked.load, len(queues), "the load")
        # If a queue is listed twice, its last load counts.
        of_queue = dict(zip(queues, asked.load, strict=True))
        load = {_QUEUES: [of_queue[queue] for queue in list(position)[:here]]}
    bounds = bounds_of(group, now)

    def compute(name: str) -> _Told:
        dealt = allocate_all(line.named(name), queues, line.clients, presort=line.presort)
        after: Assignment = {
            client: now.get(client, {}) if isinstance(mine, CallWouldFail) else dict(numbered(mine or ()))
            for client, mine in dealt.items()
        }
        return listed_queues(dealt), outcome(group, now, after, bounds, load)

    known = [ROCKETMQ_PREFIX + name for name in known_allocate_strategies()]
    if line.separates_rooms:
        known.append(f"{ROCKETMQ_PREFIX}MACHINE_ROOM_NEARBY-AVG")
    return {name: _answer(partial(compute, name)) for name in asked.strategies or known}


def _answer(compute: Callable[[], _Told]) -> dict[str, Any]:
    try:
        shown, outcome = compute()
    except AssignorError as error:
        return {"error": str(error)}
    return {
        "assignment": shown,
        "partitions_moved": outcome.partitions_moved,
        "partitions_moved_optimal": outcome.bounds.partitions_moved_optimal,
        "imbalance": outcome.partitions and outcome.partitions.imbalance,
        "imbalance_optimal": outcome.bounds.imbalance_optimal,
        "load_imbalance": outcome.load and outcome.load.imbalance,
        "generations": outcome.generations,
    }


def _load(given: Load | None, counts: Mapping[str, int]) -> Load | None:
    for topic, numbers in (given or {}).items():
        if topic not in counts:
            message = f"The load has topic {topic!r}, which the group's topics do not have."
            raise BadLine(message)
        _require_count(numbers, counts[topic], f"the load of topic {topic!r}")
    return given


def _require_count(numbers: Iterable[float], count: int, what: str) -> None:
    if len(list(numbers)) != count:
        message = f"Expected {count} numbers for {what}."
        raise BadLine(message)
