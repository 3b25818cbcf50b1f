"""Steps that are right in a small group, and the same steps with one thing wrong, made by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from assignors.explain.ledger import Facts, Ledger, WrongStepError
from assignors.explain.steps import Kept, Step


class Case(NamedTuple):
    """A right step, and wrong ones.

    Attributes:
        facts: The group.
        before: Right steps before it.
        right: The step.
        wrong: Fields with other values, and what is said of each such step.
    """

    facts: Facts
    before: tuple[Step, ...]
    right: Step
    wrong: tuple[tuple[dict[str, Any], str], ...] = ()


def group(counts: dict[str, int], /, racks: dict[str, str | None] | None = None, **topics: str) -> Facts:
    """A group by its members' topics, in which everybody claims every partition of its topics and of "gone"."""
    subscribed = {member: frozenset(listed.split()) for member, listed in topics.items()}
    claims = {
        member: frozenset((topic, number) for topic in (*listed, "gone") for number in range(counts.get(topic, 1)))
        for member, listed in subscribed.items()
    }
    return Facts(subscribed, counts, racks=racks or {}, claims=claims)


def has(member: str, topic: str, *numbers: int) -> Kept:
    """A member that keeps these partitions, so that it has some."""
    return Kept(member, tuple((topic, number) for number in numbers), len(numbers))


def entered(case: Case) -> Ledger:
    """The books after the right step."""
    ledger = Ledger(case.facts)
    for step in (*case.before, case.right):
        step.enter(ledger)
    return ledger


def check(case: Case) -> None:
    """The right step is entered, and each of the wrong ones is refused with its own reason."""
    entered(case)
    for changes, said in case.wrong:
        wrong = case._replace(right=replace(case.right, **changes))  # type: ignore[type-var]  # each is a dataclass
        with pytest.raises(WrongStepError, match=f"^{re.escape(said)}$"):
            entered(wrong)
