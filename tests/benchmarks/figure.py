"""What a measurement hands over: figures, and the line of progress that it shows meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Figure", "Say"]

Say = Callable[[str], None]
"""Shows what a measurement is doing now; a few words."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    Attributes:
        name: What was measured; a part of the figure above it is indented by two spaces.
        value: The figure with its unit.
        aim: What we mean to reach; "" where nothing was promised.
        note: Of how many, and how it was measured.
    """

    name: str
    value: str
    aim: str = ""
    note: str = ""
