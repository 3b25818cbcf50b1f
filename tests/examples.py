"""How much of the larger tests a pull request tries: a tenth of the examples, some of the parameters.

The night tries all: `make test-all` sets the variable `CASES`, and runs the tests that are marked nightly.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any, Final

import pytest

BY_NIGHT: Final = "CASES" in os.environ
"""Whether everything is tried: `make test-all` and `make mutants` set CASES."""

_SHARE: Final = 1 if BY_NIGHT else 10

# A property test with fewer examples than this hardly leaves the simplest ones. Where there are only a few in all, each
# is expensive: a third of them.
_FEW: Final = 12


def examples(number: int) -> int:
    """The number of examples to draw out of this many."""
    if BY_NIGHT:
        return number
    return number // 3 if number <= _FEW else max(number // _SHARE, _FEW // 3)


def by_day(values: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """Values of a parameter, of which those that are not among `kept` are marked nightly."""
    return [value if value in kept else _by_night(value) for value in values]


def _by_night(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.nightly)


def ends(values: Iterable[Any]) -> list[Any]:
    """By day the first and the last, the oldest and the newest of releases; by night all."""
    values = list(values)
    return by_day(values, values[:: max(len(values) - 1, 1)])
