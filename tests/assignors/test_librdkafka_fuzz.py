"""librdkafka's own assignors, and ours: same input, same partitions, with racks.

2,000 groups of `range`, and 1,000 decisions of `cooperative-sticky`; the environment variable CASES asks for as many of
each (`make fuzz`).
"""

from __future__ import annotations

import os
from random import Random

import pytest
from oracle.java_assignors import Case
from oracle.librdkafka_leaders import ask_librdkafka
from random_groups import random_group, random_racks
from sticky_chains import chain

from assignors import Assignment, CannotTell, LeaderWouldFail, assign, same

INSTALLED = "librdkafka:2.16"
CASES = int(os.environ.get("CASES", "0"))
_AT_ONCE = 2_000


def ours(case: Case) -> Assignment | None:
    try:
        return assign(case.strategy, case.group, INSTALLED, case.racks)
    except (CannotTell, LeaderWouldFail):
        return None


def without_racks(case: Case) -> Assignment | None:
    nowhere = {topic: [()] * len(racks) for topic, racks in (case.racks or {}).items()}
    return ours(Case(case.strategy, case.group, nowhere))


def can_be_asked(case: Case) -> bool:
    """Without an empty name, and with a topic: a leader of nothing never assigns."""
    names = {member.member_id for member in case.group.members} | {t for m in case.group.members for t in m.topics}
    return any(member.topics for member in case.group.members) and "" not in names


@pytest.mark.timeout(0 if CASES > _AT_ONCE else 300)
@pytest.mark.parametrize(("strategy", "share"), [("range", 10), ("roundrobin", 0)])
def test_groups_in_racks_get_what_librdkafka_s_own_assignor_gives(strategy: str, share: int) -> None:
    random = Random(f"librdkafka {strategy}")
    left = CASES or (2_000 if share else 500)
    told = mattered = silent = 0
    while left > 0:
        groups = [random_group(random, racks=True) for _ in range(min(left, _AT_ONCE))]
        cases = [Case(strategy, group, random_racks(random, group)) for group in groups]
        cases = [case for case in cases if can_be_asked(case) and ours(case) is not None]
        left -= _AT_ONCE
        for case, theirs in zip(cases, ask_librdkafka(strategy, cases), strict=True):
            expected = ours(case)
            assert expected is not None
            if theirs is None:
                silent += 1
                continue
            assert same(expected, theirs), case
            told += 1
            mattered += not same(expected, without_racks(case) or {})
    assert mattered >= told * share / 100
    assert silent < told * 0.05


@pytest.mark.timeout(0 if CASES > _AT_ONCE else 300)
def test_decisions_in_racks_are_those_of_librdkafka_s_own_cooperative_sticky() -> None:
    random = Random("librdkafka cooperative-sticky")
    left = CASES or 1_000
    told = mattered = silent = 0
    while left > 0:
        cases: list[Case] = []
        while len(cases) < min(left, _AT_ONCE):
            cases += [case for case in _chain(random) if can_be_asked(case) and ours(case) is not None]
        left -= _AT_ONCE
        for case, theirs in zip(cases, ask_librdkafka("cooperative-sticky", cases), strict=True):
            expected = ours(case)
            assert expected is not None
            if theirs is None:
                silent += 1
                continue
            assert same(expected, theirs), case
            told += 1
            plain = without_racks(case)
            mattered += plain is None or not same(expected, plain)
    assert mattered > told * 0.2
    assert silent < told * 0.02


def _chain(random: Random) -> list[Case]:
    """Decisions of one group to which nothing bad happens."""
    return list(chain(random, "cooperative-sticky", ours, racks=True, tidy=True))
