"""What a delivery queue holds, and which of it makes the next message: the most severe first, and many at once as one.

Up to a number, each transition is a message. Above it, people get one message for all alerts that a rule brought into
one state, and an incident tool gets one incident for the rule (`rule_incident`), which further alerts of the rule join
while it is open; it is closed with the last of them. A repetition belongs to the incident that its alert opened.
Programs get each transition. An Alertmanager forgets what it is not sent again, so all that fires is sent to it again
and again (`Resending`).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from streaming.alerts.delivery.messages import (
    CLOSES,
    GOES_ON,
    INCIDENTS,
    OPENS,
    RECORDS,
    AttemptOutcome,
    Message,
    digest_of,
    message_of,
)
from streaming.alerts.delivery.wording import PLAIN, Wording
from streaming.alerts.transitions import FIRING, TransitionRow
from streaming.config import SEVERITIES
from streaming.lifecycle import room_log

DELIVERED: Final = "delivered"
FAILED: Final = "failed"
GIVEN_UP: Final = "given_up"
SKIPPED: Final = "skipped"
HELD: Final = "held"

RESENT: Final = "resend"
"""Word in the column `rule` of a failure to send what still fires again."""

_FIRST_PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a queue retries.

    Attributes:
        longest_pause_s: Pauses grow up to this.
        give_up_ms: This long after a message could first be sent the queue gives up.
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
        outcome: delivered, failed, given_up, skipped or held.
        reason: Why it was not delivered; None for delivered.
        duration_ms: None when no attempt was made.
        time: When, ms since the epoch.
        incident: Key of the incident that it was sent as a part of; None when it was not sent.
        repeat: Number of the repetition; None for the first message.
    """

    decided: TransitionRow
    target: str
    attempt: int | None
    outcome: str
    reason: str | None
    duration_ms: int | None
    time: int
    incident: str | None = None
    repeat: int | None = None


@dataclass(frozen=True, slots=True)
class SentAlert:
    """An alert whose firing was sent.

    Attributes:
        decided: The transition.
        at: When it was last sent, ms.
        repeats: How often it was repeated.
    """

    decided: TransitionRow
    at: int
    repeats: int = 0


class Item:
    """A transition that waits, or a repetition."""

    __slots__ = ("asked", "attempts", "born", "decided", "due", "hold", "late", "refusal", "repeat")

    def __init__(
        self,
        decided: TransitionRow,
        born: int,
        repeat: int | None = None,
        *,
        late: bool = False,
    ) -> None:
        """Begin to wait.

        Args:
            decided: The transition.
            born: Since when it could be sent, ms.
            repeat: Number of the repetition.
            late: It comes to this target later than it was decided, as one that was found late does.
        """
        self.decided = decided
        self.born = born
        self.repeat = repeat
        self.late = late or decided.late
        self.attempts = 0
        self.due = 0.0
        self.asked = False
        self.hold: str | None = None
        self.refusal: str | None = None


def resending(target: str, now: int) -> TransitionRow:
    """A stand-in for the transition in the rows of a failure to send what still fires again (`now` in ms)."""
    key = f"{RESENT}/{target}"
    return TransitionRow(
        key, key, "", RESENT, "info", None, None, None, (), "notice", None, now, now, None, False, None, "", now
    )


class OpenAlerts:
    """Alerts whose firing was sent to a target, but not their end; each with the key of its incident."""

    def __init__(self, sent: Mapping[str, str]) -> None:
        """Start with what earlier runs sent: incidents' keys by alert (`alert_id`)."""
        self._keys = dict(sent)
        self._alerts = Counter(self._keys.values())

    def __contains__(self, alert_id: str) -> bool:
        return alert_id in self._keys

    def incident(self, alert_id: str) -> str:
        """Key of an alert's incident: its own id, unless it was sent in a digest."""
        return self._keys.get(alert_id, alert_id)

    def has(self, incident: str) -> bool:
        """Whether an incident is open."""
        return self._alerts[incident] > 0

    def left(self, incident: str, without: Sequence[TransitionRow]) -> int:
        """Number of alerts of an incident that still fire, not counting some."""
        return self._alerts[incident] - sum(self._keys.get(d.alert_id) == incident for d in without)

    def begin(self, alert_id: str, incident: str) -> None:
        """Note that an alert's firing was sent."""
        self.end(alert_id)
        self._keys[alert_id] = incident
        self._alerts[incident] += 1

    def end(self, alert_id: str) -> None:
        """Note that an alert's end was sent, or never will be."""
        incident = self._keys.pop(alert_id, None)
        if incident is not None:
            self._alerts[incident] -= 1


def rule_incident(cluster: str, rule: str) -> str:
    """Key of the incident that stands for many alerts of a rule."""
    return hashlib.sha256(json.dumps([cluster, rule]).encode()).hexdigest()[:32]


def chosen(
    ready: Sequence[TransitionRow], opened: OpenAlerts, reads: str, digest_above: int, *, repeated: bool = False
) -> list[TransitionRow]:
    """The transitions to send next, in one message.

    Args:
        ready: At most one per alert, oldest first; at least one.
        opened: The alerts that fire as far as the target knows.
        reads: The kind of target.
        digest_above: Up to this many are sent one by one.
        repeated: All are sent again, because they still fire.

    Returns:
        Transitions of one rule into one state, oldest first.
    """
    first = min(ready, key=_rank)
    if reads == RECORDS or len(ready) <= digest_above:
        return [first]
    if reads == INCIDENTS and first.closes and opened.incident(first.alert_id) == first.alert_id:
        return [first]  # its own message closes an incident of its own, for which nobody is called
    alike = [d for d in ready if (d.rule, d.state) == (first.rule, first.state)]
    if reads == INCIDENTS and repeated:
        # A message belongs to one incident: in another one's, a repetition would look like news of that one.
        return [d for d in alike if opened.incident(d.alert_id) == opened.incident(first.alert_id)]
    return [d for d in alike if not (reads == INCIDENTS and d.closes and opened.incident(d.alert_id) == d.alert_id)]


def message_for(
    decided: Sequence[TransitionRow], opened: OpenAlerts, wording: Wording = PLAIN, repeat: int | None = None
) -> Message:
    """The message for the chosen transitions; `repeat` numbers a repetition."""
    first = decided[0]
    of_rule = rule_incident(first.cluster, first.rule)
    if first.state == FIRING and not repeat:
        incident = of_rule if len(decided) > 1 or opened.has(of_rule) else first.alert_id
    else:
        keys = {opened.incident(d.alert_id) for d in decided}
        incident = keys.pop() if len(keys) == 1 else of_rule
    act = OPENS if first.state == FIRING else GOES_ON if opened.left(incident, decided) else CLOSES
    if len(decided) == 1:
        return message_of(first, incident, act, wording=wording, repeat=repeat)
    return digest_of(decided, incident, act, wording, repeat=bool(repeat))


def _rank(decided: TransitionRow) -> tuple[int, bool]:
    """The most severe first; of equals those about the whole cluster, such as silence; then the oldest."""
    return -SEVERITIES.index(decided.severity), decided.group_id is not None


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
