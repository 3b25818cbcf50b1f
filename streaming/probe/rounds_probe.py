"""What both probes share: clients that open with the first round, and close with one that failed; whose turn it is."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from kafka.errors import KafkaError

from streaming.config import GroupRules, Settings
from streaming.events import Event
from streaming.exceptions import EvenkeelError
from streaming.lifecycle import room_log
from streaming.probe.bus import open_appender
from streaming.probe.deadline import Deadline, RoundAbandonedError, StopRequestedError, error_text
from streaming.probe.standby.others import Identity
from streaming.probe.standby.turn import Tail, Turn
from streaming.probe.writer import Opened, RoundInterval, RoundWriter
from streaming.records import Configured, RoundClosed

_MOST_REMEMBERED = 200_000
"""Groups whose rules are remembered, because patterns are slow and each round asks for every group that it reports:
twice the groups of the largest clusters that we know of."""


def configured_by(rules: GroupRules) -> Callable[[str], Configured | None]:
    """What the settings say of a group's strategy and clients, by its id; None where they say nothing."""
    version = rules.version

    @lru_cache(_MOST_REMEMBERED)
    def of(group: str) -> Configured | None:
        says = rules.of(group)
        if says is None:
            return None
        return Configured(version, *says)

    return of


_LOG = room_log(__name__)

_END_S: Final = 3.0
"""Limit for the last record of a probe that is to stop: its supervisor waits a few times longer."""

_RECALL_S: Final = 60.0
"""Limit for reading back the events of a heartbeat before the first round; it is not part of that round's time."""


_Memory = TypeVar("_Memory")


@dataclass(frozen=True, slots=True)
class ObservedRound(Generic[_Memory]):
    """What one round saw.

    Attributes:
        events: What it tells.
        memory: For the next round, once this one has closed.
        closing: The fields of its closing record that its writer does not know.
    """

    events: Sequence[Event]
    memory: _Memory
    closing: Mapping[str, Any]


class RoundsProbe(ABC, Generic[_Memory]):
    """Runs rounds against one cluster. A context manager; not for several threads.

    Its clients open with the first round. After a round that failed it discards them and the memory: the next one
    starts as after a restart. Where another probe makes the rounds of the cluster, `round` refuses, and `stand_by`
    waits for its end (`standby/`).

    Attributes:
        LEAST_ROUND_S: A round waits so long for an answer, however short the interval is.
    """

    LEAST_ROUND_S: ClassVar[float]

    def __init__(self, settings: Settings, stop: threading.Event | None = None, who: Identity | None = None) -> None:
        """Prepare; nothing is opened yet.

        Args:
            settings: All settings.
            stop: Set by the caller to end a round in progress.
            who: Who this probe is; None for this process, supervised as its environment says.
        """
        self._settings = settings
        self._stop = stop or threading.Event()
        self._seconds = max(self.LEAST_ROUND_S, 2 * settings.probe.interval_ms / 1000)
        self._who = who or Identity()
        self._tail = Tail(settings)
        self._pace = RoundInterval(settings.probe.interval_ms)
        self._turn = Turn(settings.cluster, self._who, self._tail, self._pace, self.LEAST_ROUND_S)
        self._writer: RoundWriter | None = None
        self._memory: _Memory | None = None
        self._configured = configured_by(settings.group_rules)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tell_end()
        self.close()

    def round(self) -> RoundClosed:
        """Run one round and return its closing record.

        It opens with a record whose offset is its number, and whose append time is its time. Then the cluster is asked,
        the events are written and acknowledged, and the closing record follows. Any failure on the way ends the round;
        it is never continued.

        Raises:
            RoundAbandonedError: It did not close, as far as we know.
            AnotherProbeError: Another probe makes the rounds: call `stand_by`.
            SetupError: A person must fix something first.
            StopRequestedError: `stop` was set.
        """
        if self._turn.paused:
            self.close()
        try:
            closed = self._round()
        except (KafkaError, OSError) as error:
            # OSError: a certificate that is being replaced does not fit its key yet.
            self.close()
            message = f"the cluster did not answer ({error_text(error)})"
            raise RoundAbandonedError(message) from error
        except StopRequestedError:
            self._tell_end()
            self.close()
            raise
        except BaseException:
            self.close()
            raise
        if news := self._pace.change_in_words():
            _LOG.warning("%s", news)
        return closed

    def _round(self) -> RoundClosed:
        if self._writer is None:
            self._writer = self._open_writer()
        if self._memory is None:
            recall_s = max(self._seconds, _RECALL_S)
            self._turn.begin(self._writer, Deadline.after(recall_s, self._stop))
            self._memory = self._remember(Deadline.after(recall_s, self._stop))
        deadline = Deadline.after(self._seconds, self._stop)
        self._prepare(self._memory, deadline)
        opened = self._turn.open(self._writer, deadline)
        saw = self._observe(opened, self._memory, deadline)
        written = self._writer.write(opened, saw.events, deadline)
        closed = self._writer.close_round(opened, written, deadline, **saw.closing)
        self._memory = saw.memory
        self._follow_up(deadline)
        return closed

    @abstractmethod
    def _remember(self, deadline: Deadline) -> _Memory:
        """What is known of the last closed round, by its records."""

    @abstractmethod
    def _prepare(self, memory: _Memory, deadline: Deadline) -> None:
        """Open the clients that are not open, and look whether there can be a round."""

    @abstractmethod
    def _observe(self, opened: Opened, memory: _Memory, deadline: Deadline) -> ObservedRound[_Memory]:
        """Ask the cluster, in an open round."""

    def _follow_up(self, deadline: Deadline) -> None:
        """Ask what later rounds tell, after a round has closed."""

    @abstractmethod
    def _close(self) -> None:
        """Close the clients."""

    def stand_by(self, followed: Callable[[], None] = lambda: None) -> float:
        """Wait until it is this probe's turn, while another one makes the rounds.

        Args:
            followed: Called after each look at the other one's rounds.

        Returns:
            When the next round is due, on the monotonic clock, s.

        Raises:
            RoundAbandonedError: The rounds could not be followed; call it again.
            StopRequestedError: `stop` was set.
        """
        try:
            return self._turn.stand_by(self._stop, followed)
        except (KafkaError, OSError) as error:
            message = f"the rounds could not be followed ({error_text(error)})"
            raise RoundAbandonedError(message) from error

    def close(self) -> None:
        """Close the clients; records without an acknowledgement are given up."""
        self._turn.over()
        writer, self._writer, self._memory = self._writer, None, None
        with ExitStack() as closes:
            closes.callback(self._tail.close)
            closes.callback(self._close)
            if writer is not None:
                closes.callback(writer.close)

    def _open_writer(self) -> RoundWriter:
        """A writer to the bus, where what is missing is created."""
        bus, who = open_appender(self._settings), self._who
        return RoundWriter(self._settings.cluster, self._settings.probe, bus, who.probe, who.supervisor, self._pace)

    def _tell_end(self) -> None:
        """Say in the topic that this probe makes no further round, so that another one need not wait."""
        if self._writer is None:
            return
        try:
            self._turn.end(self._writer, Deadline.after(_END_S))
        except (KafkaError, EvenkeelError) as error:
            _LOG.warning("The end of this probe could not be written: another one takes over later. (%s)", error)
