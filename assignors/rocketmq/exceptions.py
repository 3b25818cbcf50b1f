"""What can go wrong when a RocketMQ allocation is recomputed."""

from __future__ import annotations

from assignors.exceptions import AssignorError, BadGroup

__all__ = ["ILLEGAL_ARGUMENT", "NULL_POINTER", "BadOption", "BadQueue", "CallWouldFail"]

# Java's exceptions, by their simple names.
ILLEGAL_ARGUMENT = "IllegalArgumentException"
NULL_POINTER = "NullPointerException"


class BadQueue(BadGroup):
    """A queue is none that a broker could have."""


class BadOption(BadGroup):
    """An option with which the strategy's class cannot be made, or is not what a class takes."""


class CallWouldFail(AssignorError):
    """The class throws when this client calls it: `RebalanceImpl` then leaves the client's queues as they are.

    Attributes:
        exception: Simple name of Java's exception.
        reason: Its message, or what its code did.
    """

    def __init__(self, exception: str, reason: str) -> None:
        super().__init__(f"{exception}: {reason}")
        self.exception = exception
        self.reason = reason
