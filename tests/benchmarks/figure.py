"""The results of a measurement, the line of progress that it shows meanwhile, and the machine in one line."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]  # it ships no types

from streaming.jars import find_java, java_release

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


def machine() -> str:
    """Cores, memory, system, Python and Java.

    Raises:
        SetupError: There is no usable Java.
    """
    gigabytes = psutil.virtual_memory().total / 2**30
    python = ".".join(map(str, sys.version_info[:3]))
    return (
        f"{psutil.cpu_count()} cores, {gigabytes:.0f} GB, {platform.system()} {platform.machine()}, "
        f"Python {python}, Java {java_release(find_java())}"
    )


def load() -> float:
    """Average number of processes that wanted a core in the last minute; if above the cores, others interfered."""
    return os.getloadavg()[0]
