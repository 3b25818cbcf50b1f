"""The classes of kafka-python and aiokafka, and the plain rules of librdkafka, franz-go and sarama, compared with ours.

1,000 groups for each class of `range` and `roundrobin` and each rule, 1,000 decisions for each sticky class; the
environment variable CASES sets another number for the classes (20,000 in `make test-all`, a million in `make fuzz`),
and 3,000 for the rules.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from assignors import Assignment, CannotTell, Group, LeaderWouldFail, assign, same
from assignors.clients.sticky.balance import NEVER_ENDS
from tests.assignors.random_groups import random_group
from tests.assignors.sticky_chains import chain
from tests.examples import by_day, examples
from tests.oracle.java_assignors import Case
from tests.oracle.python_assignors import NeverEnds, ask_aiokafka, ask_kafka_python

CASES = int(os.environ.get("CASES", "1000"))
DECISIONS = int(os.environ.get("CASES", "1000"))
KAFKA_PYTHON = "kafka-python:3.0.12"


def ours_or_failure(strategy: str, group: Group, library: str) -> Assignment | LeaderWouldFail:
    try:
        return assign(strategy, group, library)
    except LeaderWouldFail as failure:
        return failure


@pytest.mark.timeout(0 if CASES > 20_000 else 300)
@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_every_random_group_gets_what_kafka_pythons_own_class_gives(strategy: str) -> None:
    random = Random(f"kafka-python {strategy}")
    threw = 0
    for _ in range(CASES):
        group = random_group(random)
        theirs, ours = ask_kafka_python(strategy, group), ours_or_failure(strategy, group, KAFKA_PYTHON)
        if isinstance(ours, Exception) or isinstance(theirs, Exception):
            assert isinstance(ours, LeaderWouldFail), group
            assert isinstance(theirs, KeyError), group
            threw += 1
        else:
            assert same(ours, theirs), group
    assert (threw > CASES // 10) == (strategy == "roundrobin")


def agreed(ours: Assignment | LeaderWouldFail, theirs: Assignment | Exception, group: Group) -> Assignment | None:
    """The common result; None if both fail in the same way."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert isinstance(ours, LeaderWouldFail), group
        assert isinstance(theirs, NeverEnds if NEVER_ENDS in str(ours) else KeyError), group
        return None
    assert same(ours, theirs), group
    return ours


@pytest.mark.timeout(0 if CASES > 20_000 else 300)
@pytest.mark.parametrize("library", by_day(["kafka-python:3.0.11", KAFKA_PYTHON], [KAFKA_PYTHON]))
@pytest.mark.parametrize("strategy", by_day(["sticky", "cooperative-sticky"], ["cooperative-sticky"]))
def test_every_decision_in_a_chain_is_that_of_kafka_pythons_own_class(strategy: str, library: str) -> None:
    def ask(group: Group) -> Assignment | None:
        theirs = ask_kafka_python(strategy, group, before_3_0_12=library != KAFKA_PYTHON)
        return agreed(ours_or_failure(strategy, group, library), theirs, group)

    _decide(ask, strategy, kafka_python=True)


@pytest.mark.nightly
def test_every_decision_in_a_chain_is_that_of_aiokafkas_own_class() -> None:
    sticky = pytest.importorskip("aiokafka.coordinator.assignors.sticky.sticky_assignor")

    def ask(group: Group) -> Assignment | None:
        return agreed(ours_or_failure("sticky", group, "aiokafka:0.14"), ask_aiokafka(sticky, group), group)

    _decide(ask, "sticky", kafka_python=False)


def _decide(ask: Callable[[Group], Assignment | None], strategy: str, *, kafka_python: bool) -> None:
    """Decisions in chains, most of which can be told."""
    random = Random(f"{kafka_python} {strategy}")
    done = told = 0

    def decide(case: Case) -> Assignment | None:
        nonlocal done, told
        done += 1
        try:
            result = ask(case.group)
        except CannotTell:
            return None
        told += result is not None
        return result

    while done < DECISIONS:
        for _ in chain(random, strategy, decide, tidy=random.random() < 0.3, kafka_python=kafka_python):
            pass
    assert told > done * 0.8


def test_topics_that_nobody_subscribes_to_change_the_order_of_kafka_python() -> None:
    random = Random("other topics")
    told = 0

    def decide(case: Case) -> Assignment | None:
        nonlocal told
        group = Group(case.group.members, case.group.partitions_per_topic, other_topics_known=True)
        try:
            ours = assign("sticky", group, KAFKA_PYTHON)
        except (CannotTell, LeaderWouldFail):
            return None
        theirs = ask_kafka_python("sticky", case.group, others=("foreign",))
        assert not isinstance(theirs, Exception)
        assert same(ours, theirs), case
        told += 1
        return ours

    chains = examples(120)
    for _ in range(chains):
        for _ in chain(random, "sticky", decide, tidy=True, kafka_python=True):
            pass
    assert told > 5 * chains
