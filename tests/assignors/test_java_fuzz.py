"""The real classes of five Kafka releases and ours: same input, same partitions, 1,000 groups per strategy.

The environment variable CASES sets another number: 20,000 in `make test-all`, a million in `make fuzz`.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from assignors import assign, same
from tests.assignors.random_groups import random_group, random_racks
from tests.examples import ends
from tests.oracle.java_assignors import RELEASES, Case, ask_java
from tests.oracle.java_runner import Thrown

pytestmark = pytest.mark.java

STRATEGIES = ("range", "roundrobin")
CASES_PER_STRATEGY = int(os.environ.get("CASES", "1000"))
# Cases per JVM call: more would not fit into the memory of a small machine.
_AT_ONCE = 20_000
# `roundrobin` ignores racks: one group in this many is enough to verify that.
_ROUNDROBINS = 10


@pytest.mark.parametrize("release", ends(RELEASES))
def test_every_random_group_gets_what_the_real_class_gives(release: str) -> None:
    random = Random(f"java {release}")
    left = len(STRATEGIES) * CASES_PER_STRATEGY // len(RELEASES)
    while left > 0:
        groups = [random_group(random) for _ in range(min(left, _AT_ONCE) // len(STRATEGIES))]
        cases = [Case(strategy, group) for strategy in STRATEGIES for group in groups]
        left -= _AT_ONCE

        answers = ask_java(release, cases)

        wrong = [
            (case, answer)
            for case, answer in zip(cases, answers, strict=True)
            if isinstance(answer, Thrown) or not same(assign(case.strategy, case.group, release), answer)
        ]
        assert wrong == []


@pytest.mark.parametrize("release", ends(RELEASES))
def test_with_racks_every_random_group_gets_what_the_real_class_gives(release: str) -> None:
    random = Random(f"racks {release}")
    left = CASES_PER_STRATEGY // len(RELEASES)
    mattered = compared = 0
    while left > 0:
        groups = [random_group(random, racks=True) for _ in range(min(left, _AT_ONCE))]
        cases = [Case("range", group, random_racks(random, group)) for group in groups]
        cases += [Case("roundrobin", case.group, case.racks) for case in cases[::_ROUNDROBINS]]
        left -= _AT_ONCE

        answers = ask_java(release, cases)

        wrong = []
        for case, answer in zip(cases, answers, strict=True):
            ours = assign(case.strategy, case.group, release, case.racks)
            if isinstance(answer, Thrown) or not same(ours, answer):
                wrong.append((case, answer))
            compared += case.strategy == "range"  # roundrobin ignores racks
            nowhere = {topic: [()] * len(racks) for topic, racks in (case.racks or {}).items()}
            mattered += not same(ours, assign(case.strategy, case.group, release, nowhere))
        assert wrong == []
    assert (mattered > 0.15 * compared) == (release >= "3.5")
