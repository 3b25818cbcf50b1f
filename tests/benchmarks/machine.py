"""The size of the machine in one line: figures mean nothing without it."""

from __future__ import annotations

import os
import platform
import sys

import psutil  # type: ignore[import-untyped]  # it ships no types

from streaming.java import find_java, java_release

__all__ = ["load", "machine"]


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
