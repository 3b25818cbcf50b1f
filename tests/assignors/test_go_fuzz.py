"""The balancers of kafka-go, sarama and franz-go themselves, and ours: same input, same partitions.

1,000 groups for each; the environment variable CASES sets another number (20,000 in `make test-all`).
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from assignors import Assignment, CannotTell, assign, broken_promises, same
from tests.assignors.random_groups import random_group
from tests.assignors.sticky_chains import chain
from tests.oracle.go_assignors import GO, ask_go
from tests.oracle.java_assignors import Case

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(GO is None, reason="Go is not installed.")]

CASES = int(os.environ.get("CASES", "1000"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("library", ["kafka-go", "sarama", "sarama:1.27", "franz-go"])
@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_every_random_group_gets_what_the_client_s_own_balancer_gives(library: str, strategy: str) -> None:
    random = Random(f"{library} {strategy}")
    cases = [Case(strategy, random_group(random)) for _ in range(CASES)]
    told = 0
    for case, theirs in zip(cases, ask_go(library, cases), strict=True):
        if isinstance(theirs, str):
            # sarama refuses a group whose topics do not exist.
            assert not any(case.group.partitions_per_topic.get(t) for m in case.group.members for t in m.topics)
            continue
        told += 1
        assert same(assign(strategy, case.group, library), theirs), case
        assert broken_promises(strategy, case.group.members, theirs) == (), case
    assert told > 0.8 * CASES


@pytest.mark.timeout(900)
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_every_decision_in_a_chain_is_possible_for_franz_go(strategy: str) -> None:
    random = Random(f"franz-go {strategy}")
    done: Counter[str] = Counter()

    def decide(case: Case) -> Assignment:
        (theirs,) = ask_go("franz-go", [case])
        assert not isinstance(theirs, str), case
        done[compared(case, theirs)] += 1
        return theirs

    while done.total() < CASES:
        for _ in chain(random, strategy, decide, tidy=random.random() < 0.7, large=random.random() < 0.05):
            pass
    # The others have different subscriptions, or claims in conflict.
    assert done["computed"] > 0.2 * done.total()
    assert done["recognised"] > 0.03 * done.total()


def compared(case: Case, theirs: Assignment) -> str:
    """How our result compares with franz-go's; fails if it is another one."""
    try:
        ours = assign(case.strategy, case.group, "franz-go")
    except CannotTell as error:
        cannot = error
    else:
        assert same(ours, theirs), case
        return "computed"
    if "random order" not in cannot.reason:
        return "not told"
    assert cannot.admits(theirs), case
    assert not cannot.possible or any(same(one, theirs) for one in cannot.possible), case
    first, *others = sorted(theirs)
    assert not any(theirs[other] for other in others) or not cannot.admits({first: theirs[first]}), case
    return "recognised"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("library", ["sarama", "sarama:1.27", "franz-go"])
def test_sticky_keeps_its_promise(library: str) -> None:
    random = Random(f"{library} promises")
    done: Counter[bool] = Counter()

    def decide(case: Case) -> Assignment | None:
        (theirs,) = ask_go(library, [case])
        # sarama's leader refuses user data that it cannot read.
        done[isinstance(theirs, str)] += 1
        if isinstance(theirs, str):
            return None
        assert broken_promises("sticky", case.group.members, theirs) == (), case
        return theirs

    while done.total() < CASES:
        for _ in chain(random, "sticky", decide, tidy=random.random() < 0.5):
            pass
    assert done[False] > 0.5 * CASES
