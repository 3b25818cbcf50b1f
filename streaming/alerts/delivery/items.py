"""What a delivery queue holds, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streaming.alerts.decisions import TransitionRow

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
