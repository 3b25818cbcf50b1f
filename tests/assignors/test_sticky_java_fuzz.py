"""The real sticky assignors of ten Kafka releases and ours: same input, same partitions, or both fail.

1,000 decisions per strategy, in chains of ten; the environment variable CASES sets another number: 20,000 in
`make test-all`, a million in `make fuzz`.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from assignors import Assignment, CannotTell, LeaderWouldFail, assign, same
from assignors.clients.sticky.balance import NEVER_ENDS
from tests.assignors.random_groups import random_group
from tests.assignors.sticky_chains import chain
from tests.examples import ends
from tests.oracle.java_assignors import STICKY_RELEASES, Case, ask_java
from tests.oracle.java_runner import Thrown

pytestmark = pytest.mark.java

STRATEGIES = ("sticky", "cooperative-sticky")
CASES_PER_STRATEGY = int(os.environ.get("CASES", "1000"))
# Decisions per JVM call: more would not fit into the memory of a small machine.
_AT_ONCE = 20_000
# Share of decisions in groups with racks, in releases that use racks.
_WITH_RACKS = 0.4


@pytest.mark.timeout(0 if CASES_PER_STRATEGY > 20_000 else 300)
@pytest.mark.parametrize("release", ends(STICKY_RELEASES))
def test_every_decision_in_a_chain_is_that_of_the_real_class(release: str) -> None:
    random = Random(f"sticky {release} {CASES_PER_STRATEGY}")
    wanted = len(STRATEGIES) * CASES_PER_STRATEGY // len(STICKY_RELEASES)
    done = told = 0
    while done < wanted:
        asked = _chains(random, release, min(_AT_ONCE, wanted - done))
        for (case, ours), theirs in zip(asked, ask_java(release, [case for case, _ in asked]), strict=True):
            if isinstance(ours, CannotTell):
                assert "bucket" in ours.reason or "large" in ours.reason, case
                continue
            assert isinstance(ours, LeaderWouldFail) == isinstance(theirs, Thrown), case
            if not isinstance(ours, Exception) and not isinstance(theirs, Thrown):
                assert same(ours, theirs), case
                told += 1
        done += len(asked)
    assert told > done * 0.95


def _chains(random: Random, release: str, count: int) -> list[tuple[Case, Assignment | Exception]]:
    """Our decisions, each group's output being the next one's input."""
    asked: list[tuple[Case, Assignment | Exception]] = []

    def decide(case: Case) -> Assignment | None:
        ours = decided(case, release)
        if str(ours) == NEVER_ENDS:
            return None  # the real class would not end
        asked.append((case, ours))
        return None if isinstance(ours, Exception) else ours

    while len(asked) < count:
        if random.random() < 0.02:
            decide(Case(random.choice(STRATEGIES), random_group(random)))
        racks = release >= "3.5" and random.random() < _WITH_RACKS
        tidy, large = random.random() < 0.2, random.random() < 0.03
        for _ in chain(random, random.choice(STRATEGIES), decide, racks=racks, tidy=tidy, large=large):
            pass
    return asked


def decided(case: Case, release: str) -> Assignment | Exception:
    try:
        return assign(case.strategy, case.group, release, case.racks)
    except (CannotTell, LeaderWouldFail) as error:
        return error
