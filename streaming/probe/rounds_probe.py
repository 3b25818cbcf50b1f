"""What both probes share: clients that open with the first round, and close with one that failed."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from kafka.errors import KafkaError

from streaming.config import KafkaSettings, Settings
from streaming.events import RoundClosed
from streaming.lifecycle import room_log
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError, error_text
from streaming.probe.topics import create_missing
from streaming.probe.writer import RoundWriter

_LOG = room_log(__name__)

_RECALL_S: Final = 60.0
"""Limit for reading back the events of a heartbeat before the first round; it is not part of that round's time."""


class RoundsProbe(ABC):
    """Runs rounds against one cluster. A context manager; not for several threads.

    Its clients open with the first round. After a round that failed it discards them and the memory: the next one
    starts as after a restart.

    Attributes:
        LEAST_ROUND_S: A round may take so long, however short the interval is.
        KAFKA: What the Kafka is to this probe, for messages.
    """

    LEAST_ROUND_S: ClassVar[float]
    KAFKA: ClassVar[str]

    def __init__(self, settings: Settings, stop: threading.Event | None = None) -> None:
        """Prepare; nothing is opened yet.

        Args:
            settings: All settings.
            stop: Set by the caller to end a round in progress.
        """
        self._settings = settings
        self._stop = stop or threading.Event()
        self._seconds = max(self.LEAST_ROUND_S, 2 * settings.probe.interval_ms / 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def round(self) -> RoundClosed:
        """Run one round and return its closing record.

        Raises:
            RoundAbandonedError: It did not close.
            SetupError: A person must fix something first.
            StopRequestedError: `stop` was set.
        """
        try:
            return self._round()
        except KafkaError as error:
            self.close()
            message = f"{self.KAFKA} did not answer ({error_text(error)})"
            raise RoundAbandonedError(message) from error
        except BaseException:
            self.close()
            raise

    @property
    @abstractmethod
    def requests(self) -> dict[str, int]:
        """Requests sent since the clients were opened, by the protocol's name."""

    @abstractmethod
    def close(self) -> None:
        """Close the clients; records without an acknowledgement are given up."""

    @abstractmethod
    def _round(self) -> RoundClosed:
        """Open what is not open, and run one round."""

    def _deadline(self) -> Deadline:
        """For one round that begins now."""
        return Deadline.after(self._seconds, self._stop)

    def _recall_deadline(self) -> Deadline:
        """For reading back what the last probe knew."""
        return Deadline.after(max(self._seconds, _RECALL_S), self._stop)

    def _writer_by(self, admin: Any, kafka: KafkaSettings) -> RoundWriter:
        """A writer to the two topics, which are created where they are missing."""
        settings = self._settings
        for topic in create_missing(admin, settings.probe):
            _LOG.info("Created topic %s.", topic)
        return RoundWriter(settings.cluster, settings.probe, kafka)
