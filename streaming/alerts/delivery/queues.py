"""Delivery queues: one per target, each in a thread of its own, so that a dead or slow target holds up no other.

A queue takes transitions in the order of the decisions and sends one message at a time, the most severe first; those of
one alert stay in order. It retries with growing pauses until the target accepts them or it is too late. A message that
the target refuses again and again does not block those of other alerts; a target that accepts nothing is tried once per
pause, not once per message. The outcome of each attempt goes to `results`, for the alerter to write: if the process
dies in between, it sends again after a restart, with the same id.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from streaming.alerts.delivery.items import (
    DELIVERED,
    FAILED,
    GIVEN_UP,
    HELD,
    SKIPPED,
    Delivery,
    Item,
    Resender,
    RetryPolicy,
    Sender,
    chosen,
    message_for,
    resending,
)
from streaming.alerts.delivery.messages import PLAIN, AttemptOutcome, Message, Wording, message_of
from streaming.alerts.routes import Routing
from streaming.alerts.transitions import FIRING, Transition
from streaming.lifecycle import room_log

_LOG = room_log(__name__)


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
        wording: Wording = PLAIN,
        routing: Routing | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; `start` begins to send.

        Args:
            name: Name of the target.
            sender: Sends to it.
            retry: How long to retry.
            results: Where the outcome of each attempt goes.
            wake: Set when there is a new outcome.
            digest_above: Up to this many waiting transitions, each is a message of its own.
            wording: What messages are made with.
            routing: What the target gets, and when; None for everything, at once.
            clock: Seconds since the epoch.
        """
        self.name = name
        self._sender = sender
        self._retry = retry
        self._results = results
        self._wake = wake
        self._digest_above = digest_above
        self._wording = wording
        self._routing = routing
        self._clock = clock
        self._items: list[Item] = []
        # By alert what was sent of its firing, but not its end: the key of its incident, and the transition itself.
        self._open: dict[str, str] = {}
        self._told: dict[str, Transition] = {}
        self._fresh = False
        self._refused: frozenset[Item] = frozenset()
        self._failures = 0
        self._rests_until = 0.0
        self._stopped = False
        self._changed = threading.Condition()
        self._resender = sender if isinstance(sender, Resender) else None
        self._resend_s = 0.0 if self._resender is None else self._resender.resend_ms / 1000
        self._resend_at = time.monotonic() + self._resend_s if self._resender else math.inf
        self._judged_at = -math.inf
        self._in_vain = 0
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"alerts to {name}")

    def remember(self, sent: Mapping[str, str], decided: Iterable[Transition]) -> None:
        """Take the occurrences (`alert_id`) whose firing was sent to this target before, but not their end.

        Args:
            sent: Keys of their incidents.
            decided: Transitions, among which are those that were sent.
        """
        with self._changed:
            self._open |= sent
            self._told |= {one.alert_id: one for one in decided if one.state == FIRING and one.alert_id in sent}
            if self._resender is not None:
                # What an earlier run sent may end in a moment.
                self._resend_at = time.monotonic()
            self._changed.notify()

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def offer(self, decided: Iterable[Transition], fresh: bool, *, late: bool = False) -> None:
        """Add transitions, in order, and say how new the alerter's knowledge is.

        Args:
            decided: Transitions that were not delivered yet; those that people do not hear of are skipped.
            fresh: The newest round is new: what is firing now is still true. Late transitions wait for this.
            late: They are late for this target, whenever they were found.
        """
        with self._changed:
            now = self._now()
            self._items += [Item(one, now, late or one.late) for one in decided if one.notifies]
            # Each poll of the alerter comes here: a mute that begins or ends is seen then.
            for item in self._items:
                self._ask_routing(item, now)
            self._fresh = fresh
            self._changed.notify()

    def judged(self) -> None:
        """Note that the alerter has judged something."""
        self._judged_at = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether nothing is left that could be sent now."""
        with self._changed:
            self._drop()
            return all(item.hold is not None for item in self._items)

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
        while not self._stopped:
            try:
                self._deliver()
            except Exception as error:  # noqa: BLE001 - of any kind: a bug must not end all deliveries in silence
                # Only the error's type: its text could contain a part of the target's URL.
                _LOG.error("deliveries to %s fail (%s): trying again", self.name, type(error).__name__)
                self._rests_until = time.monotonic() + self._retry.longest_pause_s

    def _deliver(self) -> None:
        while (items := self._next()) is not None:
            if not items:
                self._resend()
                continue
            message = message_for([item.decided for item in items], self._open, self._wording)
            outcome = self._sender.send(message)
            with self._changed:
                if outcome.reason is None or outcome.unsent:
                    self._take_success(items, message, outcome)
                else:
                    self._take_failure(items, outcome)

    def _take_success(self, items: Sequence[Item], message: Message, outcome: AttemptOutcome) -> None:
        """Note that transitions were sent, or that the target is never sent such."""
        if outcome.unsent:
            _LOG.info("%s is not notified of %s: %s", self.name, _named(items), outcome.reason)
        else:
            _LOG.info("%s accepted %s", self.name, _named(items))
            self._failures, self._refused = 0, frozenset()
        self._remove(items)
        for item in items:
            self._keep_open(item.decided, message)
            if outcome.unsent:
                self._report(item, SKIPPED, outcome.reason)
            else:
                item.attempts += 1
                self._report(item, DELIVERED, None, outcome.duration_ms, message.incident)

    def _take_failure(self, items: Sequence[Item], outcome: AttemptOutcome) -> None:
        """Let the target rest, and the transitions of the message it refused; one row tells of all of them."""
        self._refused = frozenset(items)
        self._failures += 1
        pause, now = self._retry.pause_s(self._failures), time.monotonic()
        self._rests_until = now + pause
        for item in items:
            item.attempts += 1
            item.due = now + self._retry.pause_s(item.attempts)
        level = logging.WARNING if self._failures == 1 else logging.INFO
        what = "%s did not accept %s: %s; retrying in %.0f s"
        _LOG.log(level, what, self.name, _named(items), outcome.reason, pause)
        reason = outcome.reason if len(items) == 1 else f"{outcome.reason} (a digest of {len(items):,})"
        self._report(items[0], FAILED, reason, outcome.duration_ms)

    def _resend(self) -> None:
        """Send all that fires again, to a target that would end it otherwise."""
        assert self._resender is not None  # noqa: S101 - `_next` asked
        with self._changed:
            # What is over would begin again there: its end waits for the target as well.
            ended = self._ended()
            told = [one for one in self._told.values() if one.alert_id not in ended]
        began = time.monotonic()
        self._resend_at = began + self._resend_s
        messages = [message_of(one, wording=self._wording) for one in told]
        outcome = self._resender.resend(messages, judged=began - self._judged_at <= 2 * self._resend_s)
        if outcome.unsent:
            return  # it says nothing of whether the target takes anything
        if outcome.reason is None:
            if self._in_vain:
                _LOG.info("%s takes firing alerts again", self.name)
            self._in_vain = 0
            return
        self._in_vain += 1
        if self._in_vain == 1:
            _LOG.warning("%s did not take what still fires: %s", self.name, outcome.reason)
        # The rule `undelivered` goes by the number of the attempt.
        now = self._now()
        stand_in = Item(resending(self.name, now), now, late=False, attempts=self._in_vain)
        reason = f"{outcome.reason} ({len(messages):,} that still fire)"
        self._report(stand_in, FAILED, reason, outcome.duration_ms)

    def _keep_open(self, decided: Transition, message: Message | None = None) -> None:
        """Keep what was sent of an alert's firing; forget it when its end was sent, or never will be."""
        if decided.state == FIRING and message is not None:
            self._open[decided.alert_id] = message.incident or decided.alert_id
            self._told[decided.alert_id] = decided
        elif decided.ended:
            self._open.pop(decided.alert_id, None)
            self._told.pop(decided.alert_id, None)

    def _ended(self) -> set[str]:
        """Alerts whose end waits."""
        return {item.decided.alert_id for item in self._items if item.decided.ended}

    def _next(self) -> list[Item] | None:
        """Wait for the next message to send and return its items.

        Returns:
            None when asked to stop; nothing when all that fires is to be sent again.
        """
        with self._changed:
            while not self._stopped:
                self._drop()
                now = time.monotonic()
                if self._resend_at <= now:
                    return []
                ready = self._ready()
                # The item refused last lets others go first: the message may be wrong, not the target.
                due = [item for item in ready if item.due <= now]
                due = [item for item in due if item not in self._refused] or due
                if due and self._rests_until <= now:
                    return self._chosen(due)
                # Holds need no timer: each poll of the alerter wakes the queue.
                first = min([self._resend_at, *(max(item.due, self._rests_until) for item in ready)])
                self._changed.wait(None if first == math.inf else first - now)
            return None

    def _chosen(self, due: Sequence[Item]) -> list[Item]:
        """Those of the items that make the next message."""
        waiting = {item.decided.alert_id: item for item in due}
        decided = [item.decided for item in waiting.values()]
        found = chosen(decided, self._open, self._sender.reads, self._digest_above)
        return [waiting[transition.alert_id] for transition in found]

    def _ask_routing(self, item: Item, now: int) -> None:
        """Ask whether the target gets an item, and what holds it back."""
        # An end is neither refused nor held: no incident must stay open.
        if self._routing is None or item.decided.state != FIRING:
            return
        item.refusal = self._routing.refusal(self.name, item.decided)
        if item.refusal is not None:
            return
        held = self._routing.hold(item.decided, now)
        if held is not None and item.hold != held:
            self._report(item, HELD, held)
        if held is None and item.hold is not None:
            item.born = now
        item.hold = held

    def _ready(self) -> list[Item]:
        """The oldest item of each occurrence, unless it is held, or waits for newer rounds."""
        seen: set[str] = set()
        ready = []
        for item in self._items:
            decided = item.decided
            if decided.alert_id in seen:
                continue
            seen.add(decided.alert_id)
            if item.hold is None and (not (item.late and decided.state == FIRING) or self._fresh):
                ready.append(item)
        return ready

    def _drop(self) -> None:
        """Drop items that are not to be sent any more, with the reason."""
        oldest = self._now() - self._retry.give_up_ms
        ended, waiting = self._ended(), set[str]()
        dropped: list[Item] = []
        for item in self._items:
            decided = item.decided
            found = self._needless(item, decided.alert_id in ended, decided.alert_id in waiting, oldest)
            if found is None:
                waiting.add(decided.alert_id)
                continue
            outcome, reason = found
            dropped.append(item)
            self._keep_open(decided)
            if outcome == GIVEN_UP:
                _LOG.error("gave up notifying %s of %s (%s)", self.name, decided.rule, decided.transition_id)
            self._report(item, outcome, reason)
        if dropped:
            self._remove(dropped)

    def _needless(self, item: Item, has_ended: bool, is_waiting: bool, oldest: int) -> tuple[str, str] | None:
        """Outcome and reason of an item that is not to be sent; None for one that is.

        Args:
            item: The item.
            has_ended: The end of its alert waits as well.
            is_waiting: So does something earlier of its alert.
            oldest: What could be sent before this time, ms, is given up.
        """
        decided = item.decided
        is_over = decided.state == FIRING and has_ended
        if item.hold is None and max(decided.decided_time, item.born) < oldest:
            return GIVEN_UP, f"it could not be delivered within {self._retry.give_up_ms // 1000} s"
        if is_over and item.late:
            return SKIPPED, "it was found late and is no longer true" if decided.late else "it is no longer true"
        if is_over and item.hold is not None and not item.attempts:
            return SKIPPED, f"it was over before it could be sent ({item.hold})"
        if decided.alert_id in self._open:
            return None
        if decided.ended and not is_waiting:
            return SKIPPED, "its firing was not sent"
        if item.refusal is None:
            return None
        return (SKIPPED, item.refusal)

    def _remove(self, items: Iterable[Item]) -> None:
        gone = set(items)
        self._items = [item for item in self._items if item not in gone]

    def _report(
        self, item: Item, outcome: str, reason: str | None, duration_ms: int | None = None, incident: str | None = None
    ) -> None:
        attempt = None if outcome == HELD else item.attempts or None
        self._results.put(
            Delivery(item.decided, self.name, attempt, outcome, reason, duration_ms, self._now(), incident)
        )
        self._wake.set()

    def _now(self) -> int:
        return round(self._clock() * 1000)


def _named(items: Sequence[Item]) -> str:
    """The transitions of a message, for the log."""
    first = items[0].decided
    more = f" and {len(items) - 1:,} more" if len(items) > 1 else ""
    return f"{first.state} of {first.rule} ({first.transition_id}{more})"
