"""Which strategy a client runs, and what it gives the client for one view of the group.

A client tells the class of its strategy, not the parameters; those come from the configuration. A client of another
language than Java tells no class: they all begin with AVG (`consumer/strategy.go` of apache/rocketmq-client-go,
`AllocateMQStrategy.h` of apache/rocketmq-client-cpp), so that is tried, and only a match is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from assignors import AssignorError
from assignors.rocketmq import (
    AllocateStrategy,
    CallWouldFail,
    MessageQueue,
    Options,
    Queues,
    sorted_clients,
    sorted_queues,
)
from streaming.groups.context import Allocation
from streaming.records import MemberSeen

_PACKAGES: Final = (
    "org.apache.rocketmq.client.consumer.rebalance.",
    "com.alibaba.rocketmq.client.consumer.rebalance.",
)

NEARBY: Final = "MACHINE_ROOM_NEARBY"

_CLASSES: Final = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
    "AllocateMachineRoomNearby": NEARBY,
}

_FIRST_MACHINE_ROOM: Final = (4, 8, 0)
"""Before this release MACHINE_ROOM gave queues of other rooms (apache/rocketmq#2477)."""

_FIRST_UTF8: Final = (5, 0, 0)
"""Before this release CONSISTENT_HASH hashed bytes of the platform's charset (f23fdbe016)."""

MOST_ENTRIES: Final = 500_000
"""Queues and clients of one computation: half a second. Larger topics are not recomputed."""


def may_share(strategies: Collection[str]) -> bool:
    """Whether one of these strategies may give a queue to several clients, because its parameters say so."""
    return "CONFIG" in strategies


def may_leave_out(strategies: Iterable[str]) -> bool:
    """Whether one of these strategies may give a queue to nobody, because its parameters say so."""
    return any("MACHINE_ROOM" in name or name == "CONFIG" for name in strategies)


def name_of(class_name: str, allocation: Allocation) -> str:
    """The strategy's `getName()` for its class; the class itself where it is not one of RocketMQ's."""
    for package in _PACKAGES:
        name = _CLASSES.get(class_name.removeprefix(package)) if class_name.startswith(package) else None
        if name is not None:
            if name == NEARBY:
                return f"{NEARBY}-{allocation.nearby_delegate}"
            return name
    return class_name


@dataclass(frozen=True, slots=True)
class Runs:
    """The strategy that a client runs.

    Attributes:
        name: Its `getName()`, or the class.
        strategy: To compute with; None where it cannot be computed.
        is_sure: A result that differs proves that something else happened: all that matters to it is known.
        why_not: Why it cannot be computed, or why a difference proves nothing; None if it is sure.
    """

    name: str
    strategy: AllocateStrategy | None
    is_sure: bool
    why_not: str | None = None


def runs(member: MemberSeen, allocation: Allocation) -> Runs:
    """The strategy that a member runs, as far as it tells and the configuration says."""
    if member.strategy is None:
        strategy = AllocateStrategy("AVG")
        return Runs("AVG", strategy, False, f"{member.language or 'such'} clients do not tell their strategy")
    name = name_of(member.strategy, allocation)
    missing = missing_of(name, allocation)
    if missing is not None and not name.startswith("CONSISTENT_HASH"):
        return Runs(name, None, False, missing)
    try:
        strategy = AllocateStrategy(name, options_of(allocation))
    except AssignorError:
        return Runs(name, None, False, f"strategy {name[:100]} is not one of RocketMQ's: it cannot be recomputed")
    release = _release(member.version)
    if name.removeprefix(f"{NEARBY}-") == "MACHINE_ROOM" and release < _FIRST_MACHINE_ROOM:
        missing = "MACHINE_ROOM before 4.8.0 is not recomputed"
    if "CONSISTENT_HASH" in name and release < _FIRST_UTF8 and not member.client_id.isascii():
        missing = "CONSISTENT_HASH before 5.0.0 depends on the platform's charset"
    return Runs(name, strategy, missing is None, missing)


def options_of(allocation: Allocation) -> Options:
    """The configured parameters as constructor options; the class's default of 10 virtual nodes where none is."""
    return Options(
        10 if allocation.virtual_node_cnt is None else allocation.virtual_node_cnt,
        allocation.message_queue_list,
        allocation.consumeridcs,
        allocation.room_separator,
    )


def missing_of(name: str, allocation: Allocation) -> str | None:
    """What of the strategy's parameters the configuration does not give; None if nothing."""
    if name.startswith(f"{NEARBY}-") and allocation.room_separator is None:
        return "the rule for rooms of MACHINE_ROOM_NEARBY is not configured"
    name = name.removeprefix(f"{NEARBY}-")
    if name == "CONFIG" and allocation.message_queue_list is None:
        return "the queue list of CONFIG is not configured"
    if name == "MACHINE_ROOM" and allocation.consumeridcs is None:
        return "the rooms of MACHINE_ROOM are not configured"
    if name == "CONSISTENT_HASH" and allocation.virtual_node_cnt is None:
        return "the number of virtual nodes of CONSISTENT_HASH is not configured, and 10 do not give this"
    return None


def _release(version: str | None) -> tuple[int, ...]:
    """A release as numbers; very new where a client tells none that can be read, as all of today are."""
    parts = (version or "").removeprefix("V").replace(".", "_").split("_")
    numbers = [int(part) for part in parts[:3] if part.isascii() and part.isdigit() and len(part) < 4]
    if len(numbers) == 3:
        return tuple(numbers)
    return (99, 0, 0)


Queue = tuple[str, int]
"""A queue of one topic: broker and queue id."""


ClientView = tuple[tuple[Queue, ...], tuple[str, ...]]
"""The topic's readable queues by one name server, and the group's clients by one broker, duplicates kept."""


class Computed:
    """Shares of clients in one topic by each of its views, each computed once."""

    def __init__(self, topic: str, views: Sequence[ClientView]) -> None:
        """Prepare for a topic."""
        self._topic, self._views = topic, views
        # By the view's number: the hash of a view walks over all its queues and clients, and each client asks.
        self._prepared: dict[tuple[str, int], Callable[[str], Queues | None]] = {}
        self._found: dict[tuple[str, int, str], frozenset[Queue] | None] = {}

    def share(self, runs: Runs, client: str, view: int) -> frozenset[Queue] | None:
        """A client's queues in one view; None where its call would fail, so that it keeps what it has.

        Args:
            runs: Its strategy, which can be computed.
            client: Client id.
            view: Number of the view.

        Raises:
            AssignorError: It is not known.
        """
        key = runs.name, view, client
        if key not in self._found:
            self._found[key] = self._compute(runs, client, view)
        return self._found[key]

    def _compute(self, runs: Runs, client: str, view: int) -> frozenset[Queue] | None:
        if runs.strategy is None:
            return None
        allocate = self._prepared.get((runs.name, view))
        if allocate is None:
            queues, clients = self._views[view]
            listed = sorted_queues([MessageQueue(self._topic, broker, number) for broker, number in queues])
            allocate = runs.strategy.prepare(listed, sorted_clients(clients))
            self._prepared[runs.name, view] = allocate
        try:
            given = allocate(client)
        except CallWouldFail:
            return None
        # Null counts as no queues; CONFIG gives the same list for every topic.
        return frozenset((queue.broker, queue.queue) for queue in given or () if queue.topic == self._topic)
