"""Runs aiokafka's consumers as `member_program.py` says, in one event loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.real_groups.member_program import serve

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class _Consumer:
    """One consumer, called from a thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, settings: Mapping[str, str]) -> None:
        self._loop = loop
        self._settings = settings
        self._consumer: AIOKafkaConsumer | None = None

    def subscribe(self, topics: list[str]) -> None:
        self._do(self._subscribe(topics))

    def poll(self) -> None:
        self._do(self._poll())

    def close(self) -> None:
        self._do(self._close())

    def _do(self, step: Any) -> None:
        asyncio.run_coroutine_threadsafe(step, self._loop).result()

    async def _subscribe(self, topics: list[str]) -> None:
        if self._consumer is not None:
            self._consumer.subscribe(topics)
            return
        settings = self._settings
        strategy = settings.get("partition.assignment.strategy")
        own: dict[str, Any] = {"partition_assignment_strategy": (_ASSIGNORS[strategy],)} if strategy else {}
        self._consumer = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=settings["bootstrap.servers"],
            group_id=settings["group.id"],
            group_instance_id=settings.get("group.instance.id"),
            session_timeout_ms=int(settings["session.timeout.ms"]),
            rebalance_timeout_ms=int(settings["max.poll.interval.ms"]),
            heartbeat_interval_ms=int(settings["heartbeat.interval.ms"]),
            metadata_max_age_ms=int(settings["metadata.max.age.ms"]),
            auto_commit_interval_ms=int(settings["auto.commit.interval.ms"]),
            **own,
        )
        await self._consumer.start()

    async def _poll(self) -> None:
        await self._consumer.getmany(timeout_ms=100)

    async def _close(self) -> None:
        if self._consumer is not None:
            await self._consumer.stop()


if __name__ == "__main__":
    shared = asyncio.new_event_loop()
    threading.Thread(target=shared.run_forever, daemon=True).start()
    serve(
        lambda settings: _Consumer(shared, settings),
        lambda consumer, topics, _: consumer.subscribe(topics),
        lambda consumer: consumer.poll(),
    )
    sys.exit()
