"""What can go wrong in the alerter."""

from __future__ import annotations

from pathlib import Path

from streaming.exceptions import EvenkeelError, SetupError

__all__ = ["AnotherAlerterError", "LostLaneError", "RulesError"]


class RulesError(SetupError):
    """A rules file is wrong: file, rule and reason in one sentence."""

    def __init__(self, file: Path, rule: str | None, reason: str) -> None:
        place = f"{file}, rule {rule}" if rule is not None else str(file)
        super().__init__(f"{place}: {reason}. See docs/alerts.md for how to write a rule.")


class AnotherAlerterError(EvenkeelError):
    """Somebody else has decided on alerts of this cluster: what we know of them may be old."""


class LostLaneError(EvenkeelError):
    """The thread that delivers to a target has ended, by a mistake of ours: nothing would be told there any more."""

    def __init__(self, target: str, error: Exception) -> None:
        # (Its type only: its text could hold a part of the target's URL.)
        kind = type(error).__name__
        super().__init__(f"Nothing is delivered to {target} any more ({kind}): the alerter ends, to be started again.")
