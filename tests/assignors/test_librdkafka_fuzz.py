"""librdkafka's own assignors and ours: same input, same partitions, with racks.

500 groups of `range`, 100 of `roundrobin`, which ignores racks, and 300 decisions of `cooperative-sticky`; the
environment variable CASES sets the number of each: 20,000 in `make test-all`, a million in `make fuzz`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import permutations
from random import Random

import pytest

from assignors import Assignment, CannotTell, Group, LeaderWouldFail, Subscription, assign, same
from assignors.clients.sticky.librdkafka import ABORTS
from tests.assignors.random_groups import random_group, random_racks
from tests.assignors.sticky_chains import chain
from tests.oracle.java_assignors import Case
from tests.oracle.librdkafka_leaders import Unanswered, ask_librdkafka

INSTALLED = "librdkafka:2.16"
CASES = int(os.environ.get("CASES", "0"))
_AT_ONCE = 5_000

# A partition that has moved back to its first owner moves on to another member: too rare to occur at random.
MOVES_ON = Group(
    (
        Subscription("m0", ("b", "c")),
        Subscription("m1", ("a", "c"), owned=(("a", (0, 1)), ("c", (*range(1, 10), *range(11, 17)))), generation=3),
        Subscription("m2", ("a", "b")),
    ),
    {"a": 2, "b": 17, "c": 18},
)


def ours(case: Case) -> Assignment | None:
    try:
        return assign(case.strategy, case.group, INSTALLED, case.racks)
    except (CannotTell, LeaderWouldFail):
        return None


def is_before(left: Subscription, right: Subscription) -> bool:
    """By rd_kafka_group_member_cmp of librdkafka 2.15."""
    if left.group_instance_id is not None and right.group_instance_id is not None:
        return left.group_instance_id.encode() < right.group_instance_id.encode()
    return left.member_id.encode() < right.member_id.encode()


def goes_in_circles(members: Sequence[Subscription]) -> bool:
    """Whether some three members are each before the next, in a circle."""
    return any(is_before(a, b) and is_before(b, c) and not is_before(a, c) for a, b, c in permutations(members, 3))


def without_racks(case: Case) -> Assignment | None:
    nowhere = {topic: [()] * len(racks) for topic, racks in (case.racks or {}).items()}
    return ours(Case(case.strategy, case.group, nowhere))


def can_be_asked(case: Case) -> bool:
    """Whether it has no empty name, and has a topic: a leader without topics never assigns."""
    names = {member.member_id for member in case.group.members} | {t for m in case.group.members for t in m.topics}
    return any(member.topics for member in case.group.members) and "" not in names


@pytest.mark.timeout(0 if CASES > _AT_ONCE else 300)
@pytest.mark.parametrize(("strategy", "share"), [("range", 10), ("roundrobin", 0)])
def test_groups_in_racks_get_what_librdkafka_s_own_assignor_gives(strategy: str, share: int) -> None:
    random = Random(f"librdkafka {strategy}")
    asked = CASES or (500 if share else 100)
    told = mattered = silent = 0
    for done in range(0, asked, _AT_ONCE):
        groups = [random_group(random, racks=True) for _ in range(min(asked - done, _AT_ONCE))]
        cases = [Case(strategy, group, random_racks(random, group)) for group in groups]
        computed = [(case, ours(case)) for case in cases if can_be_asked(case)]
        # Only its comparison of static with dynamic members can be cyclic, and only in these cases.
        open_ = [case for case, result in computed if result is None]
        assert all(goes_in_circles(case.group.members) for case in open_)
        expected = [(case, result) for case, result in computed if result is not None]
        answers = ask_librdkafka(strategy, [case for case, _ in expected])
        for (case, result), theirs in zip(expected, answers, strict=True):
            if theirs is Unanswered.SILENT:
                silent += 1
                continue
            assert theirs is not Unanswered.CRASHED, case
            assert same(result, theirs), case
            told += 1
            mattered += not same(result, without_racks(case) or {})
    assert told > asked * 0.5
    assert mattered >= told * share / 100
    assert silent < told * 0.05


@pytest.mark.timeout(0 if CASES > _AT_ONCE else 300)
def test_decisions_in_racks_are_those_of_librdkafka_s_own_cooperative_sticky() -> None:
    random = Random("librdkafka cooperative-sticky")
    left = CASES or 300
    told = mattered = silent = 0
    while left > 0:
        cases: list[Case] = []
        while len(cases) < min(left, _AT_ONCE):
            cases += [case for case in _chain(random) if can_be_asked(case) and ours(case) is not None]
        left -= _AT_ONCE
        for case, theirs in zip(cases, ask_librdkafka("cooperative-sticky", cases), strict=True):
            expected = ours(case)
            assert expected is not None
            if theirs is Unanswered.SILENT:
                silent += 1
                continue
            assert theirs is not Unanswered.CRASHED, case
            assert same(expected, theirs), case
            told += 1
            plain = without_racks(case)
            mattered += plain is None or not same(expected, plain)
    assert mattered > told * 0.2
    assert silent < told * 0.02


@pytest.mark.timeout(0 if CASES > _AT_ONCE else 300)
def test_claims_of_several_generations_are_decided_as_by_librdkafka_s_own_cooperative_sticky_or_not_told() -> None:
    random = Random("librdkafka claims")
    asked = CASES or 300
    told = 0
    for done in range(0, asked, _AT_ONCE):
        cases = [Case("cooperative-sticky", _claiming(random)) for _ in range(min(asked - done, _AT_ONCE))]
        expected = [(case, result) for case in cases if (result := ours(case)) is not None]
        answers = ask_librdkafka("cooperative-sticky", [case for case, _ in expected])
        for (case, result), theirs in zip(expected, answers, strict=True):
            assert not isinstance(theirs, Unanswered), case
            assert same(result, theirs), case
        told += len(expected)
    assert told > asked * 0.5


def _claiming(random: Random) -> Group:
    """Members that claim any partitions of their topics, from up to four generations."""
    topics = {topic: random.randint(1, 4) for topic in "xyz"[: random.randint(1, 3)]}
    members = []
    for number in range(random.randint(2, 4)):
        wanted = sorted(random.sample(sorted(topics), random.randint(1, len(topics))))
        claims = ((t, sorted(random.sample(range(topics[t]), random.randint(0, topics[t])))) for t in wanted)
        owned = tuple((topic, tuple(numbers)) for topic, numbers in claims if numbers)
        members.append(Subscription(f"m{number}", tuple(wanted), owned=owned, generation=random.randint(1, 4)))
    random.shuffle(members)
    return Group(tuple(members), topics)


def test_the_rack_of_a_member_counts_whose_topic_does_not_exist() -> None:
    members = (
        Subscription("m0", ("gone",), rack="r1"),
        Subscription("m1", ("a",), rack="r2"),
        Subscription("m2", ("a",)),
    )
    case = Case("cooperative-sticky", Group(members, {"a": 3}), {"a": [(), (), ("r1",)]})

    (theirs,) = ask_librdkafka(case.strategy, [case])
    assert not isinstance(theirs, Unanswered)
    assert same(theirs, {"m1": {"a": (0,)}, "m2": {"a": (1, 2)}})
    assert same(theirs, ours(case) or {})


def _chain(random: Random) -> list[Case]:
    """Decisions of one group without any mishap."""
    return list(chain(random, "cooperative-sticky", ours, racks=True, tidy=True))


@pytest.mark.nightly
def test_librdkafka_s_own_cooperative_sticky_aborts_where_ours_says_so() -> None:
    random = Random("librdkafka aborts")
    cases = [Case("cooperative-sticky", MOVES_ON)]
    assert _aborts(cases[0])
    while len(cases) < 24:
        case = Case("cooperative-sticky", _lopsided(random))
        if _aborts(case):
            cases.append(case)

    answers = ask_librdkafka("cooperative-sticky", cases)
    assert not [case for case, theirs in zip(cases, answers, strict=True) if not isinstance(theirs, Unanswered)]
    assert answers.count(Unanswered.CRASHED) > len(cases) * 0.9


def _aborts(case: Case) -> bool:
    try:
        assign(case.strategy, case.group, INSTALLED)
    except CannotTell as error:
        return error.reason == ABORTS
    return False


def _lopsided(random: Random) -> Group:
    """Different subscriptions, and some members with far more than others: partitions move back and forth."""
    counts = {topic: random.randint(2, 25) for topic in "abcd"[: random.randint(1, 4)]}
    wanted = [tuple(topic for topic in counts if random.random() < 0.6) or ("a",) for _ in range(random.randint(3, 9))]
    owned: list[dict[str, list[int]]] = [{} for _ in wanted]
    for topic, count in counts.items():
        owners = [number for number, topics in enumerate(wanted) if topic in topics and random.random() < 0.6]
        shares = [random.random() ** 4 for _ in owners]
        for partition in range(count if owners else 0):
            owned[random.choices(owners, shares)[0]].setdefault(topic, []).append(partition)
    members = (
        Subscription(f"m{number}", topics, owned=tuple((topic, tuple(of)) for topic, of in had.items()), generation=3)
        for number, (topics, had) in enumerate(zip(wanted, owned, strict=True))
    )
    return Group(tuple(members), counts)
