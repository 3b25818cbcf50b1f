"""Sending what fires again and again, to a target that forgets what it is not sent again (an Alertmanager)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from streaming.alerts.delivery.messages import Message
from streaming.alerts.delivery.outcome import AttemptOutcome
from streaming.lifecycle import room_log

_LOG = room_log(__name__)


class Sender(Protocol):
    """Sends messages to a target."""

    @property
    def reads(self) -> str:
        """PEOPLE, INCIDENTS or RECORDS."""

    def send(self, message: Message) -> AttemptOutcome:
        """Send once; may take a while."""


@runtime_checkable
class Resender(Sender, Protocol):
    """Sends to a target that forgets what it is not sent again."""

    @property
    def resend_ms(self) -> int:
        """How often all that fires is to be sent again."""

    def resend(self, messages: Sequence[Message], *, judged: bool) -> AttemptOutcome:
        """Send all that fires again; `judged`: the alerter has judged something lately."""


@dataclass(frozen=True, slots=True)
class InVain:
    """A failure to send what fires again.

    Attributes:
        attempt: How many failed in a row, with this one.
        reason: Why.
        duration_ms: How long it took.
    """

    attempt: int
    reason: str
    duration_ms: int


class Resending:
    """When a target is to be sent everything again, and whether it takes it. Steady time in seconds."""

    def __init__(self, name: str, sender: Resender) -> None:
        """Prepare.

        Args:
            name: Name of the target.
            sender: Sends to it.
        """
        self._name, self._sender = name, sender
        self._every_s = sender.resend_ms / 1000
        self._in_vain = 0
        self._judged_at: float | None = None
        self.at = time.monotonic() + self._every_s
        """When it is due."""

    def now(self) -> None:
        """Make it due: what an earlier run sent may end in a moment."""
        self.at = time.monotonic()

    def judged(self) -> None:
        """Note that the alerter has judged something."""
        self._judged_at = time.monotonic()

    def send(self, messages: Sequence[Message]) -> InVain | None:
        """Send all that fires; a failure is logged once, and returned each time."""
        began = time.monotonic()
        judged = self._judged_at is not None and began - self._judged_at <= 2 * self._every_s
        outcome = self._sender.resend(messages, judged=judged)
        self.at = began + self._every_s
        if outcome.unsent:
            return None  # it says nothing of whether the target takes anything
        if outcome.reason is None:
            if self._in_vain:
                _LOG.info("%s takes firing alerts again", self._name)
            self._in_vain = 0
            return None
        self._in_vain += 1
        if self._in_vain == 1:
            _LOG.warning("%s did not take what still fires: %s", self._name, outcome.reason)
        return InVain(self._in_vain, f"{outcome.reason} ({len(messages):,} that still fire)", outcome.duration_ms)
