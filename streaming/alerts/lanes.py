"""Deliveries: one lane per target, each in a thread of its own, so that a dead or slow target holds back nobody else.

A lane takes transitions in the order of the decisions, sends them one at a time, and tries again with growing pauses
until the target takes them or it is too late. A message that the target refuses again and again does not block those
of other alerts; a target that takes nothing is asked once per pause, not once per message. What came of each attempt
goes to `results`, for the alerter to write down: whoever dies in between sends again after a restart, with the same id.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streaming.alerts.decisions import Decided
from streaming.alerts.firing import FIRING
from streaming.alerts.targets import Message, Outcome, message_of

__all__ = ["DELIVERED", "FAILED", "GIVEN_UP", "SKIPPED", "Delivery", "Lane", "Patience"]

DELIVERED = "delivered"
FAILED = "failed"
GIVEN_UP = "given_up"
SKIPPED = "skipped"

_LOG = logging.getLogger("streaming.alerts")

_FIRST_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a lane tries.

    Attributes:
        longest_pause_s: Pauses grow to this.
        give_up_ms: After this time since the decision nothing is tried any more.
    """

    longest_pause_s: float
    give_up_ms: int

    def pause_s(self, failures: int) -> float:
        """Pause after so many failures in a row."""
        return min(_FIRST_PAUSE_S * 2.0 ** min(failures - 1, 30), self.longest_pause_s)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt, or one reason not to make any.

    Attributes:
        decided: The transition.
        target: Name of the target.
        attempt: Number of the attempt, from 1; None when none was made.
        outcome: delivered, failed, given_up or skipped.
        reason: Why it was not delivered; None for delivered.
        duration_ms: None when no attempt was made.
        time: When, ms since the epoch.
    """

    decided: Decided
    target: str
    attempt: int | None
    outcome: str
    reason: str | None
    duration_ms: int | None
    time: int


class _Item:
    __slots__ = ("attempts", "decided", "due")

    def __init__(self, decided: Decided) -> None:
        self.decided = decided
        self.attempts = 0
        self.due = 0.0


class Lane:
    """The way to one target. Methods may be called from any thread."""

    def __init__(
        self,
        name: str,
        send: Callable[[Message], Outcome],
        patience: Patience,
        results: queue.SimpleQueue[Delivery],
        wake: threading.Event,
    ) -> None:
        """Prepare; `start` begins.

        Args:
            name: Name of the target.
            send: Sends one message, once; may take its time.
            patience: How long to try.
            results: Where each attempt is told.
            wake: Set when something was told.
        """
        self.name = name
        self._send = send
        self._patience = patience
        self._results = results
        self._wake = wake
        self._sent: set[str] = set()
        self._items: list[_Item] = []
        self._ended: set[str] = set()
        self._fresh = False
        self._failures = 0
        self._rests_until = 0.0
        self._stopped = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"alerts to {name}")

    def remember(self, sent: Iterable[str]) -> None:
        """Take the occurrences (`alert_id`) whose firing this target had been sent before."""
        with self._changed:
            self._sent |= set(sent)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def offer(self, decided: Iterable[Decided], fresh: bool) -> None:
        """Add transitions, in order, and say how new the alerter's knowledge is.

        Args:
            decided: Transitions that were not delivered yet; those that are not for people are passed over.
            fresh: The newest round is new: what is firing now is still true. Late ones wait for this.
        """
        with self._changed:
            for transition in decided:
                if not transition.told:
                    continue
                if transition.closes:
                    self._ended.add(transition.alert_id)
                self._items.append(_Item(transition))
            self._fresh = fresh
            self._changed.notify()

    @property
    def idle(self) -> bool:
        """Nothing is left that could be sent now."""
        with self._changed:
            return not self._items

    def stop(self) -> None:
        """End after the attempt in progress; what is left is sent after the next start."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def join(self, patience_s: float) -> None:
        """Wait for the end; an attempt that takes longer is left alone, and made again after the next start."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, patience_s))

    def _run(self) -> None:
        while (item := self._next()) is not None:
            decided = item.decided
            outcome = self._send(message_of(decided))
            item.attempts += 1
            with self._changed:
                if outcome.reason is None:
                    self._failures, self._rests_until = 0, 0.0
                    self._items.remove(item)
                    self._keep_sent(decided)
                else:
                    self._failures += 1
                    pause = self._patience.pause_s(self._failures)
                    self._rests_until = time.monotonic() + pause
                    item.due = time.monotonic() + self._patience.pause_s(item.attempts)
            if outcome.reason is None:
                _LOG.info("%s took %s of %s (%s)", self.name, decided.state, decided.rule, decided.transition_id)
            else:
                level = logging.WARNING if self._failures == 1 else logging.INFO
                _LOG.log(
                    level,
                    "%s did not take %s of %s (%s): %s; again in %.0f s",
                    self.name,
                    decided.state,
                    decided.rule,
                    decided.transition_id,
                    outcome.reason,
                    pause,
                )
            result = DELIVERED if outcome.reason is None else FAILED
            self._tell(Delivery(decided, self.name, item.attempts, result, outcome.reason, outcome.duration_ms, _now()))

    def _keep_sent(self, decided: Decided) -> None:
        if decided.state == FIRING:
            self._sent.add(decided.alert_id)
        else:
            self._sent.discard(decided.alert_id)
            self._ended.discard(decided.alert_id)

    def _next(self) -> _Item | None:
        """Wait for what is to be sent next; None when told to stop."""
        with self._changed:
            while not self._stopped:
                self._drop()
                now = time.monotonic()
                due = [(max(item.due, self._rests_until), item) for item in self._ready()]
                first = min(due, key=lambda pair: pair[0], default=None)
                if first is not None and first[0] <= now:
                    return first[1]
                self._changed.wait(None if first is None else first[0] - now)
            return None

    def _ready(self) -> list[_Item]:
        """The oldest item of each occurrence, unless it waits for newer rounds."""
        seen: set[str] = set()
        ready = []
        for item in self._items:
            decided = item.decided
            if decided.alert_id in seen:
                continue
            seen.add(decided.alert_id)
            if not (decided.late and decided.state == FIRING) or self._fresh:
                ready.append(item)
        return ready

    def _drop(self) -> None:
        """Drop what is not to be sent any more, and say why."""
        oldest = _now() - self._patience.give_up_ms
        waiting: set[str] = set()
        for item in list(self._items):
            decided = item.decided
            reason, outcome = None, SKIPPED
            if decided.decided < oldest:
                outcome = GIVEN_UP
                reason = f"it could not be delivered within {self._patience.give_up_ms // 1000} s"
            elif decided.state == FIRING and decided.late and decided.alert_id in self._ended:
                reason = "it was found late and is no longer true"
            elif decided.closes and decided.alert_id not in self._sent and decided.alert_id not in waiting:
                reason = "its firing was not sent"
            if reason is None:
                waiting.add(decided.alert_id)
                continue
            self._items.remove(item)
            if decided.closes:
                self._ended.discard(decided.alert_id)
            if outcome == GIVEN_UP:
                _LOG.error("gave up telling %s of %s (%s)", self.name, decided.rule, decided.transition_id)
            self._tell(Delivery(decided, self.name, item.attempts or None, outcome, reason, None, _now()))

    def _tell(self, delivery: Delivery) -> None:
        self._results.put(delivery)
        self._wake.set()


def _now() -> int:
    return round(time.time() * 1000)
