"""Rows of `what_if` for RocketMQ: what each of its six strategies would have given at one decision, over all topics.

A strategy works topic by topic, so a row adds them up: queues moved, and how even the members' sums are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from assignors import Assignment, CannotTell, from_topics
from assignors.rocketmq import (
    AllocateStrategy,
    CallWouldFail,
    MessageQueue,
    allocate_all,
    known_allocate_strategies,
)
from streaming.groups.classic.state import ClassicDecision
from streaming.groups.context import GroupConfig
from streaming.groups.load.rates import known_load
from streaming.groups.rocketmq.allocation import NEARBY, missing_of, options_of
from streaming.groups.rocketmq.round import RocketMQRound, group_of
from streaming.groups.rocketmq.state import Routes
from streaming.groups.rocketmq.views import Views, queues_of
from streaming.groups.rows import WhatIfRow, unit_of
from streaming.groups.state import GroupState
from streaming.groups.verdicts import Judged
from streaming.groups.what_if import Compared, what_if_rows
from streaming.records import Member


def rocketmq_what_if_rows(
    state: GroupState, decision: ClassicDecision, judged: Judged, seen: RocketMQRound, config: GroupConfig
) -> list[WhatIfRow]:
    """The rows of one decision, one per strategy.

    Args:
        state: The group's state.
        decision: The decision.
        judged: Its own columns.
        seen: The round at which it was judged.
        config: Settings.
    """
    members, views = decision.record.members, seen.views
    if not members:
        return []
    routes = {topic: views.routes[topic] for topic in views.judged_topics if not views.is_mapped(topic)}

    runs = judged.strategy
    count = sum(chain.from_iterable(brokers.values() for brokers in routes.values()))
    names = dict.fromkeys((*known_allocate_strategies(), f"{NEARBY}-{views.allocation.nearby_delegate}"))
    if runs is not None:
        names[runs] = None

    def compared() -> Compared | str:
        if not count:
            return "its topics have no queues that can be read"
        if any(member.topics is None for member in members):
            return "members do not tell what they subscribe to"
        group = group_of(members, routes)
        load = known_load(state.load, group.partitions_per_topic)
        return Compared(group, decision.before, load, lambda name: (None, _given(name, members, routes, views)))

    strategies = {name: None if runs is None else name == runs for name in names}
    return what_if_rows(judged, seen, config, strategies, (count, len(members)), compared)


def _given(name: str, members: Sequence[Member], routes: Routes, views: Views) -> Assignment:
    """What a strategy gives each member, by unit."""
    missing = None if name == "CONSISTENT_HASH" else missing_of(name, views.allocation)
    if missing is not None:
        raise CannotTell(missing)
    held: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in members}
    strategy = AllocateStrategy(name, options_of(views.allocation))
    for topic, brokers in routes.items():
        queues = [MessageQueue(topic, broker, number) for broker, number in sorted(queues_of(brokers))]
        for client, dealt in allocate_all(strategy, queues, sorted(views.subscribers.get(topic, ()))).items():
            if isinstance(dealt, CallWouldFail):
                raise dealt
            for queue in dealt or ():
                if queue.topic == topic:
                    held[client].setdefault(unit_of(topic, queue.broker), []).append(queue.queue)
    return from_topics({client: [(unit, tuple(of)) for unit, of in units.items()] for client, units in held.items()})
