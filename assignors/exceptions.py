"""Errors of the recomputation of assignments: one class per failure that a caller may distinguish."""

from __future__ import annotations

from collections.abc import Callable

from assignors.assignment import Assignment, same

# Java's exceptions, by their simple names.
ILLEGAL_ARGUMENT = "IllegalArgumentException"
NULL_POINTER = "NullPointerException"


class AssignorError(Exception):
    """Base of every error of this package."""


class UnknownStrategy(AssignorError):
    """No strategy of that name is registered."""


class BadStrategy(AssignorError):
    """A custom strategy cannot be listed: its name is taken, or its path is invalid."""


class UnknownLibrary(AssignorError):
    """A library's name or release cannot be parsed."""


class BadGroup(AssignorError):
    """The input is not one that a leader, a broker or a client could have had; the text says what is wrong with it."""


class CannotTell(AssignorError):
    """The assignment cannot be recomputed exactly from the known inputs; `reason` says why.

    The input is not at fault: the caller reports `unverified` with the reason, never drift.

    Attributes:
        reason: One sentence without names of members or topics, usable in a table column.
        possible: All possible assignments, if they are few: an actual assignment may be compared with each. Empty if
            they are too many, or unknown.
    """

    def __init__(
        self,
        reason: str,
        possible: tuple[Assignment, ...] = (),
        recognises: Callable[[Assignment], bool] | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.possible = possible
        self._recognises = recognises

    def admits(self, actual: Assignment) -> bool:
        """Whether an assignment is one of the possible results, also where these are too many to list.

        False says nothing if the possible results are unknown. It may cost work (`assignors.context`).
        """
        return any(same(possible, actual) for possible in self.possible) or (
            self._recognises is not None and self._recognises(actual)
        )


class TooMuchWork(CannotTell):
    """The computation would take more units of work than the caller allows (`assignors.context`)."""


class LeaderWouldFail(AssignorError):
    """This library would have thrown on this input, so it cannot have led the group.

    Attributes:
        reason: What its code does.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


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
