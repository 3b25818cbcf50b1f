"""Rows of `what_if` for RocketMQ: what each of its six strategies would have given at one decision, over all topics.

A strategy works topic by topic, so a row adds them up: queues moved, and how even the members' sums are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from assignors import Assignment, AssignorError, Bounds, CannotTell, Load, Outcome
from assignors.measures import bounds_of, outcome
from assignors.rocketmq import (
    CallWouldFail,
    MessageQueue,
    allocate_all,
    known_allocate_strategies,
    strategy_named,
)
from streaming.groups.classic.state import Owned
from streaming.groups.context import GroupConfig, of_decision
from streaming.groups.load.rates import known_load
from streaming.groups.rocketmq.allocation import NEARBY, missing_of, options_of
from streaming.groups.rocketmq.membership import Numbered
from streaming.groups.rocketmq.state import Unjudged
from streaming.groups.rocketmq.views import Views
from streaming.groups.rows import WhatIfRow, for_people, split, unit_of
from streaming.groups.state import GroupState
from streaming.groups.verdicts import Judged
from streaming.groups.what_if.classic import StrategyColumns, columns_of, too_large, what_if_row
from streaming.records import GroupObservation, Member


def rocketmq_what_if_rows(
    state: GroupState,
    waiting: Unjudged,
    judged: Judged,
    views: Views,
    observation: GroupObservation,
    config: GroupConfig,
) -> list[WhatIfRow]:
    """The rows of one decision, one per strategy; a single one with the reason where nothing is computed.

    Args:
        state: The group's state.
        waiting: The decision, with what members held before.
        judged: Its own columns.
        views: The round.
        observation: The round as any group's.
        config: Settings.
    """
    current = state.classic.current
    if not config.what_if_max_size or current is None or not current.record.members:
        return []
    members = current.record.members
    routes = {topic: views.routes[topic] for topic in views.judged_topics if not views.is_mapped(topic)}
    count = sum(chain.from_iterable(brokers.values() for brokers in routes.values()))
    why_not = too_large(count, len(members), config) if count else "its topics have no queues that can be read"
    columns: Sequence[StrategyColumns] = ()
    if why_not is None and any(member.topics is None for member in members):
        why_not = "members do not tell what they subscribe to"
    if why_not is None:
        try:
            with of_decision():
                columns = _columns(state, waiting, judged.strategy, members, routes, views)
        except AssignorError as error:
            why_not = str(error)[:200]
    if why_not is not None:
        columns = [StrategyColumns(judged.strategy or "", runs=True, reason=why_not, load_reason=why_not)]
    return [what_if_row(of, judged, observation, config) for of in columns]


def _columns(
    state: GroupState,
    waiting: Unjudged,
    runs: str | None,
    members: Sequence[Member],
    routes: Mapping[str, Mapping[str, int]],
    views: Views,
) -> list[StrategyColumns]:
    had = _within(waiting.before or {}, routes)
    numbered = Numbered(members, routes)
    before = numbered.numbered(had)
    bounds = bounds_of(numbered.group, before)
    load = _load(state, numbered, routes)
    weights = None if isinstance(load, str) else load
    names = dict.fromkeys((*known_allocate_strategies(), f"{NEARBY}-{views.allocation.nearby_delegate}"))
    columns = []
    for name in (*names, *(() if runs is None or runs in names else (runs,))):
        found = _found(name, numbered, before, members, routes, views, bounds, weights)
        columns.append(
            columns_of(
                name,
                found,
                bounds,
                load,
                runs=None if runs is None else name == runs,
                library=None,
                known_before=waiting.before is not None,
            )
        )
    return columns


def _found(
    name: str,
    numbered: Numbered,
    before: Assignment,
    members: Sequence[Member],
    routes: Mapping[str, Mapping[str, int]],
    views: Views,
    bounds: Bounds,
    weights: Load | None,
) -> Outcome | AssignorError:
    missing = None if name == "CONSISTENT_HASH" else missing_of(name, views.allocation)
    if missing is not None:
        return CannotTell(missing)
    held: Owned = {member.member_id: {} for member in members}
    try:
        strategy = strategy_named(name, options_of(views.allocation))
        for topic in routes:
            subscribers = sorted(views.subscribers[topic])
            queues = [MessageQueue(topic, broker, number) for broker, number in numbered.order[topic]]
            for client, dealt in allocate_all(strategy, queues, subscribers).items():
                if isinstance(dealt, CallWouldFail):
                    return dealt
                units: dict[str, list[int]] = {}
                for queue in dealt or ():
                    if queue.topic == topic:
                        units.setdefault(unit_of(topic, queue.broker), []).append(queue.queue)
                held[client].update({unit: tuple(of) for unit, of in units.items()})
        return outcome(numbered.group, before, numbered.numbered(held), bounds, weights)
    except AssignorError as error:
        return error


def _within(held: Owned, routes: Mapping[str, Mapping[str, int]]) -> Owned:
    """What members held, of the topics that are compared."""
    return {
        member: {unit: numbers for unit, numbers in units.items() if split(unit)[0] in routes}
        for member, units in held.items()
    }


def _load(state: GroupState, numbered: Numbered, routes: Mapping[str, Mapping[str, int]]) -> Load | str:
    """Records of the newest ended window per queue, by topic, or why they are not known."""
    counts = {unit_of(topic, broker): count for topic, brokers in routes.items() for broker, count in brokers.items()}
    found = known_load(state.load, counts)
    if isinstance(found, str):
        return for_people(found)
    return {
        topic: [found[unit_of(topic, broker)][number] for broker, number in numbered.order[topic]] for topic in routes
    }
