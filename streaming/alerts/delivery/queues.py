"""Delivery queues: one per target, each in a thread of its own, so that a dead or slow target holds up no other.

A queue takes transitions in the order of the decisions and sends one message at a time, the most severe first; those of
one alert stay in order. It retries with growing pauses until the target accepts them or it is too late. A message that
the target refuses again and again does not block those of other alerts; a target that accepts nothing is tried once per
pause, not once per message. The outcome of each attempt goes to `results`, for the alerter to write: if the process
dies in between, it sends again after a restart, with the same id.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from streaming.alerts.decisions import Decided
from streaming.alerts.delivery.digests import OpenAlerts, chosen, message_for
from streaming.alerts.delivery.messages import Message
from streaming.alerts.delivery.targets import Outcome
from streaming.alerts.exceptions import LostQueueError
from streaming.alerts.firing import FIRING
from streaming.config import Owner
from streaming.lifecycle import room_log

DELIVERED = "delivered"
FAILED = "failed"
GIVEN_UP = "given_up"
SKIPPED = "skipped"

_LOG = room_log(__name__)

_FIRST_PAUSE_S = 1.0


class Sender(Protocol):
    """Sends messages to a target."""

    @property
    def reads(self) -> str:
        """PEOPLE, INCIDENTS or RECORDS."""

    def send(self, message: Message) -> Outcome:
        """Send once; may take a while."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a queue retries.

    Attributes:
        longest_pause_s: Pauses grow up to this.
        give_up_ms: This long after the decision the queue gives up.
    """

    longest_pause_s: float
    give_up_ms: int

    def pause_s(self, failures: int) -> float:
        """Pause after this many failures in a row."""
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
        incident: Key of the incident that it was sent as a part of; None when it was not sent.
    """

    decided: Decided
    target: str
    attempt: int | None
    outcome: str
    reason: str | None
    duration_ms: int | None
    time: int
    incident: str | None = None


class _Item:
    __slots__ = ("attempts", "decided", "due")

    def __init__(self, decided: Decided) -> None:
        self.decided = decided
        self.attempts = 0
        self.due = 0.0


class DeliveryQueue:
    """The delivery queue of one target. Methods may be called from any thread."""

    def __init__(
        self,
        name: str,
        sender: Sender,
        retry: RetryPolicy,
        results: queue.SimpleQueue[Delivery],
        wake: threading.Event,
        digest_above: int,
        owners: Sequence[Owner] = (),
    ) -> None:
        """Prepare; `start` begins to send.

        Args:
            name: Name of the target.
            sender: Sends to it.
            retry: How long to retry.
            results: Where the outcome of each attempt goes.
            wake: Set when there is a new outcome.
            digest_above: Up to this many waiting transitions, each is a message of its own.
            owners: Teams and their groups, for the messages.
        """
        self.name = name
        self._sender = sender
        self._retry = retry
        self._results = results
        self._wake = wake
        self._open = OpenAlerts({})
        self._digest_above = digest_above
        self._owners = owners
        self._items: list[_Item] = []
        self._ended: set[str] = set()
        self._fresh = False
        self._refused: frozenset[_Item] = frozenset()
        self._failures = 0
        self._rests_until = 0.0
        self._stopped = False
        self._lost: Exception | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"alerts to {name}")

    def remember(self, sent: Mapping[str, str]) -> None:
        """Take the occurrences (`alert_id`) whose firing was sent to this target before, with their incidents."""
        with self._changed:
            for alert_id, incident in sent.items():
                self._open.begin(alert_id, incident)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def offer(self, decided: Iterable[Decided], fresh: bool) -> None:
        """Add transitions, in order, and say how new the alerter's knowledge is.

        Args:
            decided: Transitions that were not delivered yet; those that people do not hear of are skipped.
            fresh: The newest round is new: what is firing now is still true. Late transitions wait for this.

        Raises:
            LostQueueError: The queue's thread has ended because of a bug.
        """
        if self._lost is not None:
            raise LostQueueError(self.name, self._lost) from self._lost
        with self._changed:
            for transition in decided:
                if not transition.notifies:
                    continue
                if transition.closes:
                    self._ended.add(transition.alert_id)
                self._items.append(_Item(transition))
            self._fresh = fresh
            self._changed.notify()

    @property
    def idle(self) -> bool:
        """Whether nothing is left that could be sent now."""
        with self._changed:
            return not self._items

    def stop(self) -> None:
        """End after the attempt in progress; the rest is sent after the next start."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def join(self, patience_s: float) -> None:
        """Wait for the end; an attempt that takes longer is abandoned, and repeated after the next start."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, patience_s))

    def _run(self) -> None:
        try:
            self._deliver()
        except Exception as error:  # noqa: BLE001 - of any kind: the next `offer` reports it, and the process ends
            self._lost = error
            self._wake.set()

    def _deliver(self) -> None:
        while (items := self._next()) is not None:
            decided = [item.decided for item in items]
            message = message_for(decided, self._open, self._owners)
            outcome = self._sender.send(message)
            done = outcome.reason is None or outcome.unsent
            with self._changed:
                for item in items:
                    item.attempts += not outcome.unsent
                if done:
                    if not outcome.unsent:
                        self._failures, self._refused = 0, frozenset()
                    self._remove(items)
                    self._keep_open(decided, message)
                else:
                    self._refused = frozenset(items)
                    self._failures += 1
                    pause = self._retry.pause_s(self._failures)
                    now = time.monotonic()
                    self._rests_until = now + pause
                    for item in items:
                        item.due = now + self._retry.pause_s(item.attempts)
            self._log(decided, outcome, 0.0 if done else pause)
            self._report_all(items, message, outcome)

    def _log(self, decided: Sequence[Decided], outcome: Outcome, pause: float) -> None:
        first = decided[0]
        what = f"{first.state} of {first.rule} ({first.transition_id}"
        what += ")" if len(decided) == 1 else f" and {len(decided) - 1:,} more)"
        if outcome.reason is None:
            _LOG.info("%s accepted %s", self.name, what)
        elif outcome.unsent:
            _LOG.info("%s is not notified of %s: %s", self.name, what, outcome.reason)
        else:
            level = logging.WARNING if self._failures == 1 else logging.INFO
            _LOG.log(level, "%s did not accept %s: %s; retrying in %.0f s", self.name, what, outcome.reason, pause)

    def _report_all(self, items: Sequence[_Item], message: Message, outcome: Outcome) -> None:
        """Report the outcome of an attempt: one for a failure, otherwise one for each transition in it."""
        now, reason = _now(), outcome.reason
        result = DELIVERED if reason is None else SKIPPED if outcome.unsent else FAILED
        if result == FAILED and len(items) > 1:
            reason = f"{reason} (a digest of {len(items):,})"
        for item in items[:1] if result == FAILED else items:
            attempt, duration = (None, None) if outcome.unsent else (item.attempts, outcome.duration_ms)
            incident = message.incident if result == DELIVERED else None
            self._report(Delivery(item.decided, self.name, attempt, result, reason, duration, now, incident))

    def _keep_open(self, decided: Sequence[Decided], message: Message) -> None:
        for transition in decided:
            if transition.state == FIRING:
                self._open.begin(transition.alert_id, message.incident or transition.alert_id)
            else:
                self._open.end(transition.alert_id)
                self._ended.discard(transition.alert_id)

    def _next(self) -> list[_Item] | None:
        """Wait for the next message to send and return its items; None when asked to stop."""
        with self._changed:
            while not self._stopped:
                self._drop()
                now = time.monotonic()
                ready = self._ready()
                # The item refused last lets others go first: the message may be wrong, not the target.
                due = [item for item in ready if item.due <= now]
                due = [item for item in due if item not in self._refused] or due
                if due and self._rests_until <= now:
                    waiting = {item.decided.alert_id: item for item in due}
                    found = chosen([item.decided for item in due], self._open, self._sender.reads, self._digest_above)
                    return [waiting[transition.alert_id] for transition in found]
                first = min((max(item.due, self._rests_until) for item in ready), default=None)
                self._changed.wait(None if first is None else first - now)
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
        """Drop items that are not to be sent any more, with the reason."""
        oldest = _now() - self._retry.give_up_ms
        waiting: set[str] = set()
        dropped: list[_Item] = []
        for item in self._items:
            decided = item.decided
            reason, outcome = None, SKIPPED
            if decided.decided < oldest:
                outcome = GIVEN_UP
                reason = f"it could not be delivered within {self._retry.give_up_ms // 1000} s"
            elif decided.state == FIRING and decided.late and decided.alert_id in self._ended:
                reason = "it was found late and is no longer true"
            elif decided.closes and decided.alert_id not in self._open and decided.alert_id not in waiting:
                reason = "its firing was not sent"
            if reason is None:
                waiting.add(decided.alert_id)
                continue
            dropped.append(item)
            if decided.closes:
                self._ended.discard(decided.alert_id)
                self._open.end(decided.alert_id)
            if outcome == GIVEN_UP:
                _LOG.error("gave up notifying %s of %s (%s)", self.name, decided.rule, decided.transition_id)
            self._report(Delivery(decided, self.name, item.attempts or None, outcome, reason, None, _now()))
        if dropped:
            self._remove(dropped)

    def _remove(self, items: Iterable[_Item]) -> None:
        gone = {id(item) for item in items}
        self._items = [item for item in self._items if id(item) not in gone]

    def _report(self, delivery: Delivery) -> None:
        self._results.put(delivery)
        self._wake.set()


def _now() -> int:
    return round(time.time() * 1000)
