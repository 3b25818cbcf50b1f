"""Exact recomputation of RocketMQ's allocation strategies, following the classes of 5.5.0.

from assignors.rocketmq import MessageQueue, allocate_all

queues = [MessageQueue("t", "broker-a", number) for number in range(3)]
allocate_all("AVG", queues, ["10.0.0.1@1", "10.0.0.2@1"])  # two queues for the first, one for the second

Every client computes its own share from its own view of the group; these functions take one view.
"""

from __future__ import annotations

from assignors.exceptions import BadGroup, CallWouldFail
from assignors.rocketmq.strategies import AllocateStrategy, Options, allocate_all, known_allocate_strategies
from assignors.rocketmq.strategy import MessageQueue, Queues, sorted_clients, sorted_queues

__all__ = [
    "AllocateStrategy",
    "BadGroup",
    "CallWouldFail",
    "MessageQueue",
    "Options",
    "Queues",
    "allocate_all",
    "known_allocate_strategies",
    "sorted_clients",
    "sorted_queues",
]
