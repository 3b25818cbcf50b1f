"""A group of a real cluster, followed through the probe's events and the core, with rounds as far apart as a test says.

What a round sees is real; when it was is the test's. A look that shows a settled group can stand for many rounds, so a
test need not wait until something has lasted for a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

import msgspec

from streaming.config import Filters
from streaming.events import RocketMQGroupEvent, decode_event, encode
from streaming.groups import GroupConfig, Rows, advance
from streaming.groups.rows import Cause, DriftRow, Finding
from streaming.groups.state import GroupState
from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.observe import RocketMQLook, RocketMQMemory, round_of_groups
from streaming.records import RocketMQObservation, decode_inputs, encode_inputs
from streaming.rocketmq import Client

__all__ = ["INTERVAL_MS", "Followed"]

INTERVAL_MS: Final = 10_000
"""The probe's default."""

_START: Final = 1_795_582_476_897
_LIMIT_S = 60.0
_PAUSE_S = 0.1
_HEARTBEAT_MS = 600_000


class Followed:
    """One group. A context manager: it holds the client that asks.

    Attributes:
        rows: Rows of all rounds.
        findings: The findings that hold after the newest round, by name.
        said: Names of all findings that any round has shown.
    """

    def __init__(self, name_servers: Sequence[str], group: str, request_s: float = 3.0) -> None:
        """Follow a group, from before its first round.

        Args:
            name_servers: Addresses that are asked.
            group: The group.
            request_s: How long a server may take to answer.
        """
        self._group = group
        self._filters = Filters(groups=(group,))
        self._client = Client()
        self._cluster = RocketMQCluster(self._client, tuple(name_servers), self._filters, request_s)
        self._memory = RocketMQMemory()
        self._number, self._time = 0, _START
        self._state: GroupState | None = None
        self.rows = Rows()
        self.findings: dict[str, Finding] = {}
        self.said: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def look(self) -> RocketMQLook:
        """Ask the cluster; no round yet."""
        return self._cluster.observe_groups([self._group], frozenset(), self._time, Deadline.after(30))

    def look_until(self, holds: Callable[[RocketMQObservation], bool]) -> RocketMQLook:
        """Ask again and again until the group is as wanted, for a minute at most."""
        limit = time.monotonic() + _LIMIT_S
        while True:
            look = self.look()
            if self._group in look.groups and holds(look.groups[self._group]):
                return look
            assert time.monotonic() < limit, look.groups.get(self._group)
            time.sleep(_PAUSE_S)

    def round(self, look: RocketMQLook, times: int = 1, step_ms: int = INTERVAL_MS) -> None:
        """Let rounds see the same."""
        for _ in range(times):
            self._number, self._time = self._number + 1, self._time + step_ms
            told = round_of_groups(
                *("test", self._number, self._time, look, self._memory, self._filters),
                *(_HEARTBEAT_MS, INTERVAL_MS),
            )
            self._memory = told.memory
            for event in told.events:
                decoded = decode_event(encode(event))
                assert isinstance(decoded, RocketMQGroupEvent)
                self._advance(decoded.saw)

    def _advance(self, saw: RocketMQObservation) -> None:
        seen = msgspec.structs.replace(saw, elapsed=saw.time - _START, closed=saw.time + 500)
        inputs = decode_inputs(encode_inputs([seen]))
        self._state, rows = advance(self._state, self._group, inputs, GroupConfig("test"))
        for table in rows.__struct_fields__:
            getattr(self.rows, table).extend(getattr(rows, table))
        if rows.group_health:
            self.findings = {found.finding: found for found in rows.group_health[-1].findings}
            self.said |= self.findings.keys()

    def causes(self) -> list[Cause]:
        """The causes of the newest decision."""
        return list(self.rows.rebalance_churn[-1].causes or ())

    def verdict(self, topic: str) -> DriftRow:
        """The newest verdict on a topic."""
        return [row for row in self.rows.drift if row.topic == topic][-1]
