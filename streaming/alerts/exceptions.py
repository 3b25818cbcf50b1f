"""What can go wrong in the alerter."""

from __future__ import annotations

from pathlib import Path

from streaming.exceptions import EvenkeelError, SetupError

__all__ = ["AnotherAlerterError", "RulesError"]


class RulesError(SetupError):
    """A rules file is wrong: file, rule and reason in one sentence."""

    def __init__(self, file: Path, rule: str | None, reason: str) -> None:
        place = f"{file}, rule {rule}" if rule is not None else str(file)
        super().__init__(f"{place}: {reason}. See docs/alerts.md for how to write a rule.")


class AnotherAlerterError(EvenkeelError):
    """Somebody else has decided on alerts of this cluster: what we know of them may be old."""
