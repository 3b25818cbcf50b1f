"""What a target reads, and the outcome of sending to it."""

from __future__ import annotations

from dataclasses import dataclass

PEOPLE = "people"
"""Reads messages: chat, mail, telephone."""

INCIDENTS = "incidents"
"""Opens and closes incidents by the key of a message."""

RECORDS = "records"
"""Takes fields, as programs do: each transition, and names unchanged."""


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The outcome of an attempt.

    Attributes:
        reason: Why it failed, without secrets, or why nothing was sent; None when the target accepted it.
        duration_ms: How long it took.
        unsent: Nothing was sent, and nothing is to be sent.
    """

    reason: str | None
    duration_ms: int
    unsent: bool = False
