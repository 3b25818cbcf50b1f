"""Failures of the alerter."""

from __future__ import annotations

from pathlib import Path

from streaming.exceptions import EvenkeelError, SetupError


class RulesError(SetupError):
    """A rules file is wrong: file, rule and reason in one sentence."""

    def __init__(self, file: Path, rule: str | None, reason: str) -> None:
        place = f"{file}, rule {rule}" if rule is not None else str(file)
        super().__init__(f"{place}: {reason}. See docs/alerts.md for how to write a rule.")


class AnotherAlerterError(EvenkeelError):
    """Another alerter has decided on this cluster's alerts: our knowledge of them may be old."""
