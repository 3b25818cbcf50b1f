"""The answers of `evenkeel assign` and `evenkeel what-if`: one JSON object in, one out; errors are answered too.

`what-if` takes a line of `assign` plus the current owners, and answers with an object per strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from msgspec import Struct

from assignors.assignment import Assignment, from_pairs, to_pairs
from assignors.brokers import ServerGroup, assign_on_server, known_server_strategies
from assignors.exceptions import AssignorError, CallWouldFail, CannotTell
from assignors.jsonl.lines import (
    ROCKETMQ_PREFIX,
    SERVER_PREFIX,
    STREAMS_PREFIX,
    AllocateLine,
    BadLine,
    ClientLine,
    Pair,
    QueueOfLine,
    Rate,
    ServerLine,
    StreamsLine,
    as_queues,
    read,
)
from assignors.measures import Bounds, Load, Outcome, bounds_of, outcome, settled
from assignors.model import Group, Subscription
from assignors.registry import assign, known_strategies
from assignors.rocketmq import MessageQueue, Queues, allocate_all, known_allocate_strategies
from assignors.strategy import Strategy


def assign_line(line: object, custom: Mapping[str, Strategy] | None = None) -> dict[str, Any]:
    """Answer one line of `evenkeel assign` (docs/tools.md); the strategy's name determines the family.

    Args:
        line: The decoded object.
        custom: Users' own strategies by name.

    Returns:
        {"assignment": {id: [[topic, partition], ...]}}, sorted by topic (for brokers by its id) and partition; for
        streams groups by subtopology and task, with "standby" likewise; for
        RocketMQ {client: [queue, ...]} in the class's order, with null where the class returns null and
        {"error": reason} for a client whose own call would throw. Or {"error": reason}, with
        {"possible": [assignment, ...]} if it must have been one of these. Never raises.
    """
    strategy = line.get("strategy") if isinstance(line, dict) else None
    try:
        if isinstance(strategy, str) and strategy.startswith(ROCKETMQ_PREFIX):
            view = read(line, AllocateLine)
            queues, strategy_of_view = as_queues(view.queues), view.named(view.strategy)
            return {
                "assignment": listed_queues(allocate_all(strategy_of_view, queues, view.clients, presort=view.presort))
            }
        if isinstance(strategy, str) and strategy.startswith(SERVER_PREFIX):
            asked = read(line, ServerLine)
            return {"assignment": sorted_pairs(assign_on_server(asked.strategy, asked.group(), asked.library))}
        if isinstance(strategy, str) and strategy.startswith(STREAMS_PREFIX):
            tasks = read(line, StreamsLine).assign()
            return {"assignment": sorted_pairs(tasks.active), "standby": sorted_pairs(tasks.standby)}
        led = read(line, ClientLine)
        strategy_of_line = (custom or {}).get(led.strategy, led.strategy)
        result = assign(strategy_of_line, led.group(), led.leaders_library(), led.racks())
        return {"assignment": sorted_pairs(result)}
    except (BadLine, AssignorError) as error:
        answer: dict[str, Any] = {"error": str(error)}
        if isinstance(error, CannotTell) and error.possible:
            answer["possible"] = [as_lists(to_pairs(assignment)) for assignment in error.possible]
        return answer


def as_lists(listed: Mapping[str, Iterable[tuple[str, int]]]) -> dict[str, list[list[Any]]]:
    """Pairs of each member as JSON has them."""
    return {member_id: [list(pair) for pair in pairs] for member_id, pairs in listed.items()}


def sorted_pairs(assignment: Assignment) -> dict[str, list[list[Any]]]:
    """An assignment as sorted pairs."""
    return as_lists({member_id: sorted(pairs) for member_id, pairs in to_pairs(assignment).items()})


def listed_queues(dealt: Mapping[str, Queues | CallWouldFail | None]) -> dict[str, Any]:
    """Each client's queues; null where the class returns null, {"error": reason} where its call would throw."""
    return {
        client: {"error": str(mine)}
        if isinstance(mine, CallWouldFail)
        else mine and [queue._asdict() for queue in mine]
        for client, mine in dealt.items()
    }


class _Asked(Struct):
    current: dict[str, tuple[Pair, ...]]
    load: dict[str, list[Rate]] | None = None
    strategies: list[str] | None = None


class _AskedOfQueues(Struct):
    current: dict[str, tuple[QueueOfLine, ...]]
    load: list[Rate] | None = None
    strategies: list[str] | None = None


_Told = tuple[Mapping[str, Any], Outcome, int]
"""The assignment as the line shows it, what it costs, and the number of rebalances until it is final."""


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
    group, library, racks = line.group(), line.leaders_library(), line.racks()
    now = from_pairs(asked.current)
    load = _load(asked.load, group.partitions_per_topic)

    def compute(name: str) -> _Told:
        assignment, generations = settled(custom.get(name, name), group, now, library, racks)
        return as_lists(to_pairs(assignment)), outcome(group, now, assignment, load), generations

    return _answers(compute, asked.strategies or [*known_strategies(), *custom], bounds_of(group, now))


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

    def compute(strategy: str) -> _Told:
        assignment = assign_on_server(strategy, informed, line.library)
        return sorted_pairs(assignment), outcome(measured, now, assignment, load), 1

    return _answers(compute, asked.strategies or known_server_strategies(), bounds_of(measured, now))


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

    def compute(name: str) -> _Told:
        dealt = allocate_all(line.named(name), queues, line.clients, presort=line.presort)
        after: Assignment = {
            client: now.get(client, {}) if isinstance(mine, CallWouldFail) else dict(numbered(mine or ()))
            for client, mine in dealt.items()
        }
        return listed_queues(dealt), outcome(group, now, after, load), 1

    known = [ROCKETMQ_PREFIX + name for name in known_allocate_strategies()]
    if line.separates_rooms:
        known.append(f"{ROCKETMQ_PREFIX}MACHINE_ROOM_NEARBY-AVG")
    return _answers(compute, asked.strategies or known, bounds_of(group, now))


def _answers(compute: Callable[[str], _Told], names: Iterable[str], bounds: Bounds) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for name in names:
        try:
            shown, outcome, generations = compute(name)
        except AssignorError as error:
            answers[name] = {"error": str(error)}
            continue
        answers[name] = {
            "assignment": shown,
            "partitions_moved": outcome.partitions_moved,
            "partitions_moved_optimal": bounds.partitions_moved_optimal,
            "imbalance": outcome.imbalance,
            "imbalance_optimal": bounds.imbalance_optimal,
            "load_imbalance": outcome.load_imbalance,
            "generations": generations,
        }
    return answers


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
