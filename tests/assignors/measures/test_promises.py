"""Promises of strategy names: what counts as broken, and no library of ours breaks one, nor an algorithm of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from assignors import (
    Assignment,
    BrokenPromise,
    CannotTell,
    Group,
    LeaderWouldFail,
    Library,
    PartitionRacks,
    Subscription,
    assign,
    broken_promises,
    strategy_named,
)
from tests.assignors.random_groups import random_group, random_racks
from tests.assignors.sticky_chains import chain
from tests.examples import examples
from tests.oracle.java_assignors import Case


def members(*ids: str, topics: Sequence[str] = ("t", "u")) -> tuple[Subscription, ...]:
    return tuple(Subscription(member_id, tuple(topics)) for member_id in ids)


PILED: Assignment = {"a": {"t": (0, 1), "u": (0, 1)}, "b": {"t": (2,)}}
OF_TWO: Assignment = {"a": {"t": (0,), "u": (0,)}, "b": {}}

# Strategy, members, what they have, and what of the promise is broken.
PROMISES: dict[str, tuple[str, str, Assignment, list[BrokenPromise]]] = {
    "range is broken topic by topic with the partitions that are too many": (
        "range",
        "abc",
        {"a": {"t": range(6), "u": (1,)}, "b": {"u": (0,)}, "c": {"t": (6,)}},
        [
            BrokenPromise(
                "t",
                fewest=0,
                most=6,
                least_loaded=("b",),
                most_loaded=("a",),
                surplus=(("t", 1), ("t", 2), ("t", 3), ("t", 4), ("t", 5)),
            )
        ],
    ),
    "range may give one member more of every topic": ("range", "ab", OF_TWO, []),
    "roundrobin is broken in total": (
        "roundrobin",
        "ab",
        PILED,
        [BrokenPromise(None, 1, 4, least_loaded=("b",), most_loaded=("a",), surplus=(("u", 0), ("u", 1)))],
    ),
    "roundrobin may differ by two": ("roundrobin", "ab", {**PILED, "b": {"t": (2,), "u": (2,)}}, []),
    "roundrobin that begins anew with each topic keeps its promise": ("roundrobin", "ab", OF_TWO, []),
    "sticky is broken in total even if each topic is even": (
        "sticky",
        "ab",
        OF_TWO,
        [BrokenPromise(None, 0, 2, least_loaded=("b",), most_loaded=("a",), surplus=(("u", 0),))],
    ),
}


@pytest.mark.parametrize("case", PROMISES)
def test_what_of_a_strategy_s_promise_is_broken_is_named(case: str) -> None:
    strategy, ids, given, broken = PROMISES[case]
    assert broken_promises(strategy, members(*ids), given) == tuple(broken)


@pytest.mark.parametrize(
    "unlike",
    [
        (Subscription("a", ("t",)), Subscription("b", ("u",))),
        (Subscription("a", ("t",)), Subscription("b", ("t", "t"))),
        (Subscription("a", ("t", "u")), Subscription("b", ("t", "t"))),
        (Subscription("a", ("t",)), Subscription("b", ("t",), group_instance_id="i")),
        members("a", "b", topics=("^t",)),
        members("a", "b", topics=()),
        (),
    ],
)
def test_unlike_members_are_promised_nothing(unlike: Sequence[Subscription]) -> None:
    piled = {"a": {"t": range(9), "^t": range(9)}}

    assert broken_promises("range", unlike, piled) == broken_promises("roundrobin", unlike, piled) == ()


def test_a_strategy_of_another_name_promises_nothing() -> None:
    piled = {"a": {"t": range(9)}}

    assert broken_promises("cooperative-sticky", members("a", "b"), piled) == ()
    assert broken_promises("RoundRobinAssigner", members("a", "b"), piled) == ()


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_no_library_breaks_a_promise(strategy: str) -> None:
    random = Random(f"promises {strategy}")
    kept = 0
    for _ in range(examples(3_000)):
        group = random_group(random, different=False, static=random.random() < 0.5, racks=True)
        group = replace(group, leader=random.choice(group.members).member_id)
        racks = random.choice((None, random_racks(random, group)))
        for era in strategy_named(strategy).eras:
            for result in results(strategy, group, Library(era.library, era.since), racks):
                assert broken_promises(strategy, group.members, result) == (), (era, group, racks)
                kept += len(group.members) > 1
    assert kept > 5 * examples(3_000)


@pytest.mark.nightly
def test_no_library_s_sticky_breaks_its_promise() -> None:
    random = Random("promises sticky")
    kept = 0
    for era in strategy_named("sticky").eras:
        library = Library(era.library, era.since)

        def decide(case: Case, library: Library = library) -> Assignment | None:
            nonlocal kept
            possible = results("sticky", case.group, library, case.racks)
            for result in possible:
                assert broken_promises("sticky", case.group.members, result) == (), (library, case)
                kept += len(case.group.members) > 1
            return possible[0] if possible else None

        for _ in range(examples(200)):
            racks, tidy = random.random() < 0.3, random.random() < 0.3
            of = era.library == "kafka-python"
            for _ in chain(random, "sticky", decide, racks=racks, tidy=tidy, kafka_python=of):
                pass
    assert kept > 10 * examples(200)


def results(strategy: str, group: Group, library: Library, racks: PartitionRacks | None) -> Sequence[Assignment]:
    """All results that a leader of this library may give, as far as they can be told."""
    try:
        return (assign(strategy, group, library, racks),)
    except CannotTell as error:
        return error.possible
    except LeaderWouldFail:
        return ()


def samsa(ids: Sequence[str], counts: dict[str, int]) -> Assignment:
    """assignor.rs of samsa 0.1.8, under the name "roundrobin": the first taker moves on with each topic."""
    dealt: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in ids}
    for position, topic in enumerate(sorted(counts)):
        for partition in range(counts[topic]):
            dealt[ids[(position + partition + 2) % len(ids)]].setdefault(topic, []).append(partition)
    return {member_id: dict(topics) for member_id, topics in dealt.items()}


def test_samsa_s_roundrobin_keeps_the_promise() -> None:
    random = Random("promises samsa")
    for _ in range(examples(3_000)):
        group = random_group(random, different=False, static=False)
        counts = {t: n for t, n in group.partitions_per_topic.items() if t in group.members[0].topics}
        result = samsa([member.member_id for member in group.members], counts)
        assert broken_promises("roundrobin", group.members, result) == (), (group, result)
