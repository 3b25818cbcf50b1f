"""Promises of strategy names: what counts as broken, and no library of ours breaks one, nor an algorithm of others."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from assignors import (
    Assignment,
    BrokenPromise,
    CannotTell,
    LeaderWouldFail,
    Library,
    Subscription,
    assign,
    broken_promises,
    strategy_named,
)
from tests.assignors.random_groups import random_group, random_racks
from tests.examples import examples


def members(*ids: str, topics: Sequence[str] = ("t", "u")) -> tuple[Subscription, ...]:
    return tuple(Subscription(member_id, tuple(topics)) for member_id in ids)


def test_range_is_broken_topic_by_topic_with_the_partitions_that_are_too_many() -> None:
    piled = {"a": {"t": range(6), "u": (1,)}, "b": {"u": (0,)}, "c": {"t": (6,)}}

    assert broken_promises("range", members("a", "b", "c"), piled) == (
        BrokenPromise(
            "t",
            fewest=0,
            most=6,
            least_loaded=("b",),
            most_loaded=("a",),
            surplus=(("t", 1), ("t", 2), ("t", 3), ("t", 4), ("t", 5)),
        ),
    )


def test_range_may_give_one_member_more_of_every_topic() -> None:
    assert broken_promises("range", members("a", "b"), {"a": {"t": (0,), "u": (0,)}, "b": {}}) == ()


def test_roundrobin_is_broken_in_total() -> None:
    piled = {"a": {"t": (0, 1), "u": (0, 1)}, "b": {"t": (2,)}}

    assert broken_promises("roundrobin", members("a", "b"), {**piled, "b": {"t": (2,), "u": (2,)}}) == ()
    assert broken_promises("roundrobin", members("a", "b"), piled) == (
        BrokenPromise(None, 1, 4, least_loaded=("b",), most_loaded=("a",), surplus=(("u", 0), ("u", 1))),
    )


def test_roundrobin_that_begins_anew_with_each_topic_keeps_its_promise() -> None:
    assert broken_promises("roundrobin", members("a", "b"), {"a": {"t": (0,), "u": (0,)}}) == ()


@pytest.mark.parametrize(
    "unlike",
    [
        (Subscription("a", ("t",)), Subscription("b", ("u",))),
        (Subscription("a", ("t",)), Subscription("b", ("t", "t"))),
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

    assert broken_promises("sticky", members("a", "b"), piled) == ()
    assert broken_promises("RoundRobinAssigner", members("a", "b"), piled) == ()


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_no_library_breaks_a_promise(strategy: str) -> None:
    random = Random(f"promises {strategy}")
    kept = 0
    for _ in range(examples(3_000)):
        group = random_group(random, different=False, static=random.random() < 0.5, racks=True)
        racks = random.choice((None, random_racks(random, group)))
        for era in strategy_named(strategy).eras:
            try:
                result = assign(strategy, group, Library(era.library, era.since), racks)
            except (CannotTell, LeaderWouldFail):
                continue
            assert broken_promises(strategy, group.members, result) == (), (era, group, racks)
            kept += len(group.members) > 1
    assert kept > 3 * examples(3_000)


def kafka_php(ids: Sequence[str], counts: dict[str, int]) -> Assignment:
    """Assignment::assign of weiboad/kafka-php, under the name "range": all topics in turn."""
    dealt: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in ids}
    turn = 0
    for topic, count in counts.items():
        for partition in range(count):
            dealt[ids[turn % len(ids)]].setdefault(topic, []).append(partition)
            turn += 1
    return {member_id: dict(topics) for member_id, topics in dealt.items()}


def samsa(ids: Sequence[str], counts: dict[str, int]) -> Assignment:
    """assignor.rs of samsa, under the name "roundrobin": the first taker moves on with each topic."""
    dealt: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in ids}
    for position, topic in enumerate(sorted(counts)):
        for partition in range(counts[topic]):
            dealt[ids[(position + partition + 2) % len(ids)]].setdefault(topic, []).append(partition)
    return {member_id: dict(topics) for member_id, topics in dealt.items()}


def sarama_cluster(ids: Sequence[str], counts: dict[str, int]) -> Assignment:
    """balancer.go of sarama-cluster, under the name "roundrobin": each topic from the first member on."""
    return {m: {topic: range(at, n, len(ids)) for topic, n in counts.items()} for at, m in enumerate(sorted(ids))}


@pytest.mark.parametrize(
    ("strategy", "rule"), [("range", kafka_php), ("roundrobin", samsa), ("roundrobin", sarama_cluster)]
)
def test_no_client_with_an_algorithm_of_its_own_breaks_a_promise(strategy: str, rule: object) -> None:
    random = Random(f"promises {rule}")
    for _ in range(examples(3_000)):
        group = random_group(random, different=False, static=False)
        counts = {t: n for t, n in group.partitions_per_topic.items() if t in group.members[0].topics}
        result = rule([member.member_id for member in group.members], counts)  # type: ignore[operator]
        assert broken_promises(strategy, group.members, result) == (), (group, result)
