"""Errors of the recomputation of a RocketMQ allocation."""

from __future__ import annotations

from assignors.exceptions import AssignorError, BadGroup

__all__ = ["ILLEGAL_ARGUMENT", "NULL_POINTER", "BadOption", "BadQueue", "CallWouldFail"]

# Java's exceptions, by their simple names.
ILLEGAL_ARGUMENT = "IllegalArgumentException"
NULL_POINTER = "NullPointerException"


class BadQueue(BadGroup):
    """A queue that no broker could have."""


class BadOption(BadGroup):
    """An option with which the strategy's class cannot be constructed, or that it does not accept."""


class CallWouldFail(AssignorError):
    """The class throws when this client calls it: `RebalanceImpl` then keeps the client's queues.

    Attributes:
        exception: Simple name of Java's exception.
        reason: Its message, or what its code did.
    """

    def __init__(self, exception: str, reason: str) -> None:
        super().__init__(f"{exception}: {reason}")
        self.exception = exception
        self.reason = reason
