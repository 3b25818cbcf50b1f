"""Mutants are what they say: one change each, and the rest of the module as it was."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.mutations import mutated, mutations_of
from tests.mutants.run import ROOMS, sample

_SOURCE = '''"""A module."""

MOST: Final = 8


def pick(values: list[int], known: set[int]) -> int | None:
    """Pick one."""
    found = None
    for value in values:
        if value in known and not value < MOST:
            continue
        known.add(value)
        found = min(value, MOST + 1)
    return found
'''


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ("8 to 9", "MOST: Final = 8", "MOST: Final = 9"),
        ("In to NotIn", "value in known", "value not in known"),
        ("and to or", "known and not", "known or not"),
        ("not left out", "not value < MOST", "value < MOST"),
        ("Lt to LtE", "value < MOST", "value <= MOST"),
        ("continue to break", "continue", "break"),
        ("left out", "known.add(value)", "pass"),
        ("min to max", "min(", "max("),
        ("Add to Sub", "MOST + 1", "MOST - 1"),
        ("1 to 2", "MOST + 1", "MOST + 2"),
    ],
)
def test_a_mutant_differs_in_one_place(change: str, before: str, after: str) -> None:
    (mutation,) = [found for found in mutations_of(_SOURCE) if found.change == change]
    assert before in _SOURCE
    changed = ast.unparse(ast.parse(_SOURCE.replace(before, after)))
    assert mutated(_SOURCE, mutation.number) == changed


def test_these_are_all_changes_of_the_module() -> None:
    assert len(mutations_of(_SOURCE)) == 10
    assert {mutation.function for mutation in mutations_of(_SOURCE)} == {"", "pick"}


def test_the_same_seed_draws_the_same_mutants_and_each_has_tests() -> None:
    drawn = sample(50, "1")
    assert drawn == sample(50, "1") != sample(50, "2")
    assert {mutant.tests for mutant in drawn} <= set(ROOMS.values())
    assert {m.path.split("/")[2] for m in sample(20, "1", ["streaming/groups"])} & {"classic", "lag", "modern"}
