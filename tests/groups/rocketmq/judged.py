"""A RocketMQ group that was judged: its verdicts by topic, and the details of its findings."""

from __future__ import annotations

from streaming.groups import GroupConfig
from streaming.groups.context import Allocation
from tests.groups.rocketmq.world import A, B, C, Client, World

__all__ = ["group", "text", "verdicts"]


def group(*clients: Client, allocation: Allocation | None = None) -> World:
    world = World(GroupConfig("test", allocation=lambda _: allocation or Allocation()))
    world.join(*(clients or (Client(A), Client(B), Client(C))))
    world.rebalance()
    return world


def verdicts(world: World, rounds: int = 2) -> dict[str | None, tuple[str, str | None]]:
    """Verdict and reason by topic, of the newest decision."""
    world.round(rounds)
    newest = max((row.decision for row in world.rows.drift), default=0)
    return {row.topic: (row.verdict, row.reason) for row in world.rows.drift if row.decision == newest}


def text(world: World, finding: str) -> str:
    return world.findings[finding].detail
