"""The results of a measurement, and the line of progress that it shows meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Figure", "Say"]

Say = Callable[[str], None]
"""Shows the current step of a measurement in a few words."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    Attributes:
        name: The measured thing; a part of the figure above it is indented by two spaces.
        value: The figure with its unit.
        aim: The target; "" without one.
        note: Sample size and method.
    """

    name: str
    value: str
    aim: str = ""
    note: str = ""
