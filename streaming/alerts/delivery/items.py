"""What a delivery queue holds, and which of it makes the next message: the most severe first, and many at once as one.

Up to a number, each transition is a message. Above it, people get one message for all alerts that a rule brought into
one state, and an incident tool gets one incident for the rule, which further alerts of the rule join while it is open;
it is closed with the last of them. Programs get each transition. An Alertmanager forgets what it is not sent again, so
all that fires is sent to it again and again (`Resender`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from streaming.alerts.delivery.messages import (
    CLOSES,
    GOES_ON,
    INCIDENTS,
    OPENS,
    PLAIN,
    RECORDS,
    AttemptOutcome,
    Message,
    Wording,
    digest_of,
    message_of,
)
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
        hold: Why it waits; None where it does not.
        refusal: Why the target never gets it.
    """

    decided: Transition
    born: int
    late: bool
    attempts: int = 0
    due: float = 0.0
    hold: str | None = None
    refusal: str | None = None


def resending(target: str, now: int) -> Transition:
    """A stand-in for the transition in the rows of a failure to send what still fires again (`now` in ms)."""
    return Transition(
        alert_id=f"{RESENT}/{target}", cluster="", rule=RESENT, severity="info", state="notice", since=now
    )


def chosen(ready: Sequence[Transition], opened: Mapping[str, str], reads: str, digest_above: int) -> list[Transition]:
    """The transitions to send next, in one message.

    Args:
        ready: At most one per alert, oldest first; at least one.
        opened: The alerts that fire as far as the target knows (`alert_id`), each with the key of its incident.
        reads: The kind of target.
        digest_above: Up to this many are sent one by one.

    Returns:
        Transitions of one rule into one state, oldest first.
    """

    def ends_alone(decided: Transition) -> bool:
        """Whether its own message closes an incident of its own, for which nobody is called."""
        return reads == INCIDENTS and decided.ended and _incident(decided, opened) == decided.alert_id

    first = min(ready, key=_rank)
    if reads == RECORDS or len(ready) <= digest_above or ends_alone(first):
        return [first]
    return [d for d in ready if (d.rule, d.state) == (first.rule, first.state) and not ends_alone(d)]


def message_for(decided: Sequence[Transition], opened: Mapping[str, str], wording: Wording = PLAIN) -> Message:
    """The message for the chosen transitions; `opened` as for `chosen`."""
    first = decided[0]
    # Key of the incident that stands for many alerts of a rule.
    of_rule = id_of(first.cluster, first.rule)
    if first.state == FIRING:
        incident = of_rule if len(decided) > 1 or of_rule in opened.values() else first.alert_id
        act = OPENS
    else:
        keys = {_incident(d, opened) for d in decided}
        incident = keys.pop() if len(keys) == 1 else of_rule
        ended = {d.alert_id for d in decided}
        goes_on = any(key == incident and alert not in ended for alert, key in opened.items())
        act = GOES_ON if goes_on else CLOSES
    if len(decided) == 1:
        return message_of(first, incident, act, wording)
    return digest_of(decided, incident, act, wording)


def _incident(decided: Transition, opened: Mapping[str, str]) -> str:
    """Key of an alert's incident: its own id, unless it was sent in a digest."""
    return opened.get(decided.alert_id, decided.alert_id)


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
