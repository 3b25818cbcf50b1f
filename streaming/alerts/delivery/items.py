"""What a delivery queue holds, and which of it makes the next message: the most severe first, and many at once as one.

Up to a number, each transition is a message. Above it, people get one message for all alerts that a rule brought into
one state, and an incident tool gets one incident for the rule, which further alerts of the rule join while it is open;
it is closed with the last of them. Programs get each transition. An Alertmanager forgets what it is not sent again, so
all that fires is sent to it again and again (`Resender`).
"""

from __future__ import annotations

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
from streaming.alerts.transitions import FIRING, Transition, id_of
from streaming.config import SEVERITIES

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
    """

    decided: Transition
    target: str
    attempt: int | None
    outcome: str
    reason: str | None
    duration_ms: int | None
    time: int
    incident: str | None = None


@dataclass(slots=True, eq=False)
class Item:
    """A transition that waits.

    Attributes:
        decided: The transition.
        born: Since when it could be sent, ms.
        late: It comes to this target later than it was decided, as one that was found late does.
        attempts: How often it was tried.
        due: When it may be tried again, steady seconds.
        asked: Refusal and hold are known.
        hold: Why it waits; None where it does not.
        refusal: Why the target never gets it.
    """

    decided: Transition
    born: int
    late: bool
    attempts: int = 0
    due: float = 0.0
    asked: bool = False
    hold: str | None = None
    refusal: str | None = None


def resending(target: str, now: int) -> Transition:
    """A stand-in for the transition in the rows of a failure to send what still fires again (`now` in ms)."""
    return Transition(
        alert_id=f"{RESENT}/{target}", cluster="", rule=RESENT, severity="info", state="notice", since=now
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

    def left(self, incident: str, without: Sequence[Transition]) -> int:
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


def chosen(ready: Sequence[Transition], opened: OpenAlerts, reads: str, digest_above: int) -> list[Transition]:
    """The transitions to send next, in one message.

    Args:
        ready: At most one per alert, oldest first; at least one.
        opened: The alerts that fire as far as the target knows.
        reads: The kind of target.
        digest_above: Up to this many are sent one by one.

    Returns:
        Transitions of one rule into one state, oldest first.
    """
    first = min(ready, key=_rank)
    if reads == RECORDS or len(ready) <= digest_above:
        return [first]
    if reads == INCIDENTS and first.ended and opened.incident(first.alert_id) == first.alert_id:
        return [first]  # its own message closes an incident of its own, for which nobody is called
    alike = [d for d in ready if (d.rule, d.state) == (first.rule, first.state)]
    return [d for d in alike if not (reads == INCIDENTS and d.ended and opened.incident(d.alert_id) == d.alert_id)]


def message_for(decided: Sequence[Transition], opened: OpenAlerts, wording: Wording = PLAIN) -> Message:
    """The message for the chosen transitions."""
    first = decided[0]
    # Key of the incident that stands for many alerts of a rule.
    of_rule = id_of(first.cluster, first.rule)
    if first.state == FIRING:
        incident = of_rule if len(decided) > 1 or opened.has(of_rule) else first.alert_id
    else:
        keys = {opened.incident(d.alert_id) for d in decided}
        incident = keys.pop() if len(keys) == 1 else of_rule
    act = OPENS if first.state == FIRING else GOES_ON if opened.left(incident, decided) else CLOSES
    if len(decided) == 1:
        return message_of(first, incident, act, wording)
    return digest_of(decided, incident, act, wording)


def _rank(decided: Transition) -> tuple[int, bool]:
    """The most severe first; of equals those about the whole cluster, such as silence; then the oldest."""
    return -SEVERITIES.index(decided.severity), decided.group_id is not None


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
