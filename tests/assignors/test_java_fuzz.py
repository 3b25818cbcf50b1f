"""The real classes of five Kafka releases, and ours: same input, same partitions, 20,000 groups a strategy."""

from __future__ import annotations

from random import Random

import pytest
from oracle.java_assignors import RELEASES, Case, Thrown, ask_java
from random_groups import random_group, random_racks

from assignors import CannotTell, assign, same

pytestmark = pytest.mark.java

STRATEGIES = ("range", "roundrobin")
CASES_PER_STRATEGY = 20_000


@pytest.mark.parametrize("release", RELEASES)
def test_every_random_group_gets_what_the_real_class_gives(release: str) -> None:
    random = Random(f"java {release}")
    share = CASES_PER_STRATEGY // len(RELEASES)
    cases = [Case(strategy, random_group(random)) for strategy in STRATEGIES for _ in range(share)]

    answers = ask_java(release, cases)

    wrong = [
        (case, answer)
        for case, answer in zip(cases, answers, strict=True)
        if isinstance(answer, Thrown) or not same(assign(case.strategy, case.group, release), answer)
    ]
    assert wrong == []


@pytest.mark.parametrize("release", RELEASES)
def test_with_racks_ours_is_the_real_classes_answer_or_cannot_tell(release: str) -> None:
    random = Random(f"racks {release}")
    cases = []
    for _ in range(1_000):
        group = random_group(random, racks=True)
        cases.append(Case("range", group, random_racks(random, group)))

    answers = ask_java(release, cases)

    told = 0
    for case, answer in zip(cases, answers, strict=True):
        try:
            ours = assign(case.strategy, case.group, release, case.racks)
        except CannotTell:
            continue
        told += 1
        assert not isinstance(answer, Thrown)
        assert same(ours, answer), case
    assert told > 500, "most groups have racks that do not matter"
