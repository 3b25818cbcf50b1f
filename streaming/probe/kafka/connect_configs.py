"""Which connectors and tasks should exist: the records of a Connect group's configuration topic, in their order.

    key                     value, JSON
    connector-NAME          {"properties": {...}}; null deletes the connector
    task-NAME-NUMBER        {"properties": {...}}; counts with the next commit
    commit-NAME             {"tasks": number of tasks}
    target-state-NAME       {"state": state, "state.v2": state}, the second from 3.5 on; null stands for STARTED

Other keys (session-key, tasks-fencing-NAME, restart-connector-NAME, logger-cluster-NAMESPACE) say nothing about that.
Properties may be secrets: they are not decoded, and nothing of them is kept.

Source: `KafkaConfigBackingStore` and `ClusterConfigState` of connect-runtime 3.4.1, 3.7.1 and 4.3.1. What cannot be
decoded is ignored, as there. In one case they differ: before 3.6 a commit counts whose connector has no record yet,
later it does not. Both happen where compaction has removed the connector's older records, so the number is unknown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from streaming.records import TASKS_UNKNOWN, Connector

_STARTED: Final = "STARTED"

_STATES: Final = frozenset({_STARTED, "PAUSED", "STOPPED"})


class _Properties(msgspec.Struct):
    properties: msgspec.Raw

    @property
    def are_there(self) -> bool:
        return bytes(self.properties).startswith(b"{")


class _Commit(msgspec.Struct):
    tasks: int


class _TargetState(msgspec.Struct):
    state: str | None = None
    state_v2: str | None = msgspec.field(name="state.v2", default=None)


_PROPERTIES = msgspec.json.Decoder(_Properties | None)
_COMMIT = msgspec.json.Decoder(_Commit)
_TARGET_STATE = msgspec.json.Decoder(_TargetState | None)


class ConnectConfigs:
    """What the topic says so far. Not for several threads."""

    def __init__(self) -> None:
        """Know nothing."""
        self._connectors: set[str] = set()
        self._tasks: dict[str, int] = {}
        self._uncommitted: dict[str, set[int]] = {}
        self._states: dict[str, str] = {}
        self._kinds: Mapping[str, Callable[[str, bytes | None], None]] = {
            "connector-": self._connector,
            "task-": self._task,
            "commit-": self._commit,
            "target-state-": self._target_state,
        }

    @property
    def connectors(self) -> tuple[Connector, ...]:
        """The connectors that are configured, by name."""
        return tuple(
            [
                Connector(name, self._tasks.get(name, 0), self._states.get(name, _STARTED))
                for name in sorted(self._connectors)
            ]
        )

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Apply the next record of the topic. Never raises."""
        text = (key or b"").decode("utf-8", "replace")
        for prefix, apply in self._kinds.items():
            if text.startswith(prefix):
                with contextlib.suppress(msgspec.MsgspecError, ValueError):
                    apply(text.removeprefix(prefix), value)

    def _connector(self, name: str, value: bytes | None) -> None:
        told = None if value is None else _PROPERTIES.decode(value)
        if told is None:
            self._connectors.discard(name)
            self._tasks.pop(name, None)
            self._uncommitted.pop(name, None)
        elif told.are_there:
            self._connectors.add(name)

    def _task(self, name: str, value: bytes | None) -> None:
        connector, _, number = name.rpartition("-")
        told = None if value is None else _PROPERTIES.decode(value)
        if connector and number.isascii() and number.isdecimal() and told is not None and told.are_there:
            self._uncommitted.setdefault(connector, set()).add(int(number))

    def _commit(self, name: str, value: bytes | None) -> None:
        if value is None:
            return
        tasks = _COMMIT.decode(value).tasks
        written = self._uncommitted.pop(name, set())
        is_whole = name in self._connectors and 0 <= tasks <= len(written) and written.issuperset(range(tasks))
        self._tasks[name] = tasks if is_whole else TASKS_UNKNOWN

    def _target_state(self, name: str, value: bytes | None) -> None:
        told = None if value is None else _TARGET_STATE.decode(value)
        if told is None:
            self._states.pop(name, None)
            return
        state = told.state if told.state_v2 is None else told.state_v2
        if state in _STATES:
            self._states[name] = state
