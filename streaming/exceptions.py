"""The root of every exception that Evenkeel raises on purpose.

Each package keeps its own exceptions under this root (`<package>/exceptions.py`), one class per failure that
a caller may want to tell apart. Bad data is no exception: it is a value that ends in a table.
"""

from __future__ import annotations

__all__ = ["SETUP_EXIT_CODE", "EvenkeelError", "SetupError"]

SETUP_EXIT_CODE = 2
"""What a command exits with when a person must do something first (as shells do for wrong usage)."""


class EvenkeelError(Exception):
    """Whatever Evenkeel raises on purpose; its text is one sentence for people."""


class SetupError(EvenkeelError):
    """Something outside the program is missing: Java, network, space, a port, a right.

    A command shows the text without a stack trace and exits with `SETUP_EXIT_CODE`.
    """
