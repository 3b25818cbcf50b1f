"""What is configured for Connect groups, from the topics that the settings name for them (`connect_config_topics`).

No record of a group shows its topic, which is a setting of the workers (`config.storage.topic`). A round reads on where
the one before has ended. Where it cannot be read, it is not known what is configured.

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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from streaming.lifecycle import room_log
from streaming.offsets_log import LogRecord
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.look import EMPTY, ListedGroup
from streaming.probe.kafka.requests import OffsetKind, Requests
from streaming.probe.kafka.topic_tail import TopicTail
from streaming.record_batches import RangeReader
from streaming.records import CONNECT, TASKS_UNKNOWN, Connector, SeenConnectors
from streaming.terminal import visible

_LOG = room_log(__name__)

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


_ASK_S: Final = 2.0
"""What is configured is worth a moment, and no round."""

_FAILED: Final = 3
"""Rounds in a row without the topic that are worth a warning: while a broker restarts, one or two go by."""


class ConfigTail(TopicTail):
    """Follows a configuration topic, which has one partition. Not for several threads.

    Attributes:
        configs: What it tells.
        broken: Why a part of it cannot be decoded; None where all can.
    """

    ENDS_AT = OffsetKind.STABLE  # workers read no open transaction

    def __init__(self, topic: str, connect: Callable[[], RangeReader]) -> None:
        """Read through a reader that is opened when there is something to read."""
        super().__init__(topic, connect)
        self.configs = ConnectConfigs()
        self.broken: str | None = None

    def read_to(self, ends: Mapping[int, int], topic_id: str | None, deadline: Deadline) -> str | None:
        """As in every tail."""
        if len(ends) != 1:
            return f"it has {len(ends)} partitions, and Connect's has one"
        return super().read_to(ends, topic_id, deadline) or self.broken

    def _forget(self) -> None:
        self.configs, self.broken = ConnectConfigs(), None

    def _apply_record(self, partition: int, record: LogRecord) -> None:  # noqa: ARG002
        self.configs.apply(record.key, record.value)

    def _reject(self, partition: int, record: LogRecord, reason: str) -> None:  # noqa: ARG002
        self.broken = reason


class ConnectGroups:
    """The configured Connect groups of one cluster: call `observe` once a round. Not for several threads."""

    def __init__(self, requests: Requests, tails: Mapping[str, ConfigTail]) -> None:
        """Ask by these requests; the tails follow the configuration, by group."""
        self._requests = requests
        self._tails = tails
        self._failed: Counter[str] = Counter()

    def observe(self, listed: Iterable[ListedGroup], deadline: Deadline) -> dict[str, SeenConnectors]:
        """What is configured now, by group; groups of which that is not known are missing.

        Raises:
            StopRequestedError: The probe is to stop.
        """
        brief = deadline.at_most(_ASK_S)
        found = {}
        for one in listed:
            group, tail = one.group, self._tails.get(one.group)
            if tail is None or tail.is_refused or one.protocol_type != CONNECT or one.state == EMPTY:
                continue
            why = tail.follow(self._requests, brief, deadline)
            if why is None:
                found[group] = SeenConnectors(tail.topic, tail.configs.connectors)
                self._failed.pop(group, None)
                continue
            self._failed[group] += 1
            if tail.is_refused or self._failed[group] == _FAILED:
                _LOG.warning(
                    "What is configured for Connect group %s cannot be read from topic %s (%s): connectors and tasks "
                    "that never ran are not missed.",
                    visible(group),
                    visible(tail.topic),
                    why,
                )
        return found
