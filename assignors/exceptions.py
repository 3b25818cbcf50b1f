"""What can go wrong when an assignment is recomputed: one class per failure that a caller may tell apart."""

from __future__ import annotations

from assignors.assignment import Assignment

__all__ = [
    "AssignorError",
    "BadGroup",
    "BadPartitionCount",
    "BadStrategy",
    "CannotTell",
    "DuplicateMember",
    "LeaderWouldFail",
    "TooMuchWork",
    "UnknownLibrary",
    "UnknownStrategy",
]


class AssignorError(Exception):
    """Base of every error of this package."""


class UnknownStrategy(AssignorError):
    """No strategy of that name is registered."""


class BadStrategy(AssignorError):
    """A custom strategy cannot be listed: its name is taken, or its path is none."""


class UnknownLibrary(AssignorError):
    """A library's name or release cannot be read."""


class BadGroup(AssignorError):
    """The input is not a group that a leader could have seen."""


class DuplicateMember(BadGroup):
    """The same member id stands twice in one group."""


class BadPartitionCount(BadGroup):
    """A partition count is no number that Kafka can hold."""


class CannotTell(AssignorError):
    """The assignment cannot be recomputed exactly from what is known; `reason` says why.

    Not a fault of the input: the caller reports `unverified` with the reason, never drift.

    Attributes:
        reason: One sentence without names of members or topics, fit for a table column.
        possible: Where only one of these can have been it, all of them: what a group has may be compared with each.
            Empty where they are too many, or not known.
    """

    def __init__(self, reason: str, possible: tuple[Assignment, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.possible = possible


class TooMuchWork(CannotTell):
    """It would take more units of work than the caller allows (`assignors.work`)."""


class LeaderWouldFail(AssignorError):
    """This library would have thrown on this very input, so it cannot have led the group.

    Attributes:
        reason: What its code does.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
