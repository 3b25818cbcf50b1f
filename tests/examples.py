"""How many examples the larger property tests draw: a tenth of them, or all where the variable `CASES` is set."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["examples"]

# A pull request waits for these tests, so it gets a tenth. `make test-all` and `make mutants` set CASES.
_SHARE: Final = 1 if "CASES" in os.environ else 10

# A property test with fewer examples than this hardly leaves the simplest ones. Where there are only a few in all, each
# is expensive: a third of them.
_FEW: Final = 12


def examples(number: int) -> int:
    """The number of examples to draw out of this many."""
    if _SHARE == 1:
        return number
    return number // 3 if number <= _FEW else max(number // _SHARE, _FEW // 3)
