"""Mutants are what they say: one change each, and the rest of the module as it was."""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase

import pytest

from tests.mutants import run
from tests.mutants.executions import Executions, merged
from tests.mutants.mutations import mutated, mutations_of
from tests.mutants.run import Equivalent, equivalent, sample

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
    assert {mutation.function for mutation in mutations_of(_SOURCE)} == {"MOST", "pick"}


def test_a_line_with_two_such_places_tells_them_apart() -> None:
    found = mutations_of("def pick(a, b):\n    return a < 1 or b < 1\n")
    assert [(mutation.change, mutation.code) for mutation in found if mutation.change.startswith("1 to 2")] == [
        ("1 to 2", "return a < 1 or b < 1"),
        ("1 to 2, 2nd", "return a < 1 or b < 1"),
    ]


def test_what_only_people_and_type_checkers_read_is_left_alone() -> None:
    source = """
class Reading:
    def __str__(self) -> str:
        return self.text[1:]

def check(reading, values):
    message = "more than " + str(1)
    assert len(values) > 1
    if values:
        raise ValueError(1)
    return list(zip(reading, values, strict=True))
"""
    assert mutations_of(source) == []


@pytest.mark.nightly
def test_the_same_seed_draws_the_same_mutants() -> None:
    drawn = sample(50, "1")
    assert drawn == sample(50, "1") != sample(50, "2")
    assert {m.path.split("/")[2] for m in sample(20, "1", ["streaming/groups"])} & {"classic", "lag", "modern"}


@pytest.mark.nightly
def test_a_sample_stays_what_it_was_where_other_code_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = sample(60, "1")
    changed = drawn[0].path
    others = [mutant for mutant in run._all() if mutant.path != changed]
    monkeypatch.setattr(run, "_all", lambda: others)

    assert sample(40, "1") == [mutant for mutant in drawn if mutant.path != changed][:40]


def test_a_mutant_gets_the_tests_that_execute_its_line_the_cheapest_first() -> None:
    source = "LEAST = 2\n\ndef pick(a):\n    if a > LEAST:\n        return a + 1\n    return 0\n"
    of_constant, of_head, of_sum, of_one, of_zero = mutations_of(source)
    imported = {1: ["import"], 3: ["import"]}
    more, less = "test_pick.py::test_more", "test_pick.py::test_less"
    with_fixture, third = "test_other.py::test_with_a_fixture", "test_third.py::test_third"
    # Two processes have recorded them.
    executions = merged(
        [
            Executions(
                lines={"pick.py": imported | {4: [more], 5: [more]}, "other.py": {2: ["test_other.py"]}},
                seconds={more: 1.0, with_fixture: 3.0},
                processor_seconds={more: 2.0, with_fixture: 0.5},
                modules=[],
            ),
            Executions(
                lines={"pick.py": imported | {4: [less], 6: [less]}, "third.py": {2: [third]}},
                seconds={less: 1.0, third: 3.0},
                processor_seconds={less: 1.0, third: 0.1},
                modules=[],
            ),
        ]
    )
    texts = {"pick.py": source, "other.py": "from pick import LEAST\n", "third.py": "AT_LEAST = 3\n"}
    both = [less, more]
    assert executions.tests_of("pick.py", of_head, texts) == both
    assert executions.tests_of("pick.py", of_sum, texts) == executions.tests_of("pick.py", of_one, texts) == both[1:]
    assert executions.tests_of("pick.py", of_zero, texts) == both[:1]
    assert executions.tests_of("pick.py", of_constant, texts) == [with_fixture, *both]


def test_what_is_listed_without_effect_is_a_change_of_the_code_as_it_is() -> None:
    mutations = [mutant.mutation for mutant in sample(1_000_000, "1")]
    listed = equivalent()
    assert set(listed.single) <= {(mutation.function, mutation.change, mutation.code) for mutation in mutations}
    for code in listed.families:
        assert any(fnmatchcase(mutation.code, code) for mutation in mutations), code


def test_a_family_has_every_change_of_a_statement_of_its_form_and_no_other() -> None:
    source = "def count(left, budget):\n    spend(2 * len(left))\n    if budget > 2:\n        spend(1)\n"
    listed = Equivalent({("count", "2 to 3", "if budget > 2:"): "by itself"}, {"spend(*)": "no result depends on it"})
    told = [(found.code, found.change, listed.reason(found)) for found in mutations_of(source)]
    assert told == [
        ("spend(2 * len(left))", "2 to 3", "no result depends on it"),
        ("spend(2 * len(left))", "Mult to FloorDiv", "no result depends on it"),
        ("spend(2 * len(left))", "left out", "no result depends on it"),
        ("if budget > 2:", "2 to 3", "by itself"),
        ("if budget > 2:", "Gt to GtE", None),
        ("spend(1)", "1 to 2", "no result depends on it"),
        ("spend(1)", "left out", "no result depends on it"),
    ]
