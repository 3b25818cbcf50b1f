"""How many examples the larger property tests draw: a third of them, or all where the variable `CASES` is set."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["examples"]

# A pull request waits for these tests, so it gets a third. `make test-all` and `make mutants` set CASES.
_SHARE: Final = 1 if "CASES" in os.environ else 3


def examples(number: int) -> int:
    """The number of examples to draw out of this many."""
    return number // _SHARE
