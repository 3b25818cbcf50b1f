"""The base class of every exception that Evenkeel raises on purpose.

Each package has its own exceptions below it (`<package>/exceptions.py`), one class per failure that a caller may want
to tell apart. Bad data is no exception: it is a value that ends in a table.
"""

from __future__ import annotations

SETUP_EXIT_CODE = 2
"""Exit code of a command when a person must act first (shells use it for wrong usage)."""


class EvenkeelError(Exception):
    """Anything Evenkeel raises on purpose; its text is one sentence for people."""


class SetupError(EvenkeelError):
    """Something outside the program is missing: Java, network, space, a port, a right.

    A command shows the text without a stack trace and exits with `SETUP_EXIT_CODE`.
    """
