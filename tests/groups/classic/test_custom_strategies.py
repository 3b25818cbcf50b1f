"""Groups with a user's own strategy: judged by it, and never harmed by it."""

from __future__ import annotations

import pytest

from assignors import Assignment, CustomStrategies, CustomStrategy, Group, PartitionRacks
from streaming.groups import GroupConfig
from streaming.groups.rows import DriftedPartition, DriftRow
from tests.groups.build import Life, Member, make_member, make_observation, make_record, make_topic
from tests.groups.verdicts import seen_for_long, verdict_of


def first_takes_all(group: Group, _racks: PartitionRacks | None) -> Assignment:
    first = min(member.member_id for member in group.members)
    return {first: {topic: range(count) for topic, count in group.partitions_per_topic.items()}}


def all_but_the_last(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """Leaves each topic's last partition unassigned."""
    first = min(member.member_id for member in group.members)
    return {first: {topic: range(count - 1) for topic, count in group.partitions_per_topic.items()}}


def breaks(_group: Group, _racks: PartitionRacks | None) -> Assignment:
    message = "the weights are not there"
    raise LookupError(message)


def gives_one_twice(_group: Group, _racks: PartitionRacks | None) -> Assignment:
    return {"a": {"x": [0, 0, 1]}, "b": {"x": [2]}}


def cannot_do_four(group: Group, racks: PartitionRacks | None) -> Assignment:
    """Fails on topics of four partitions and more."""
    if max(group.partitions_per_topic.values()) >= 4:
        message = "four"
        raise LookupError(message)
    return first_takes_all(group, racks)


def judged(strategy: str, *members: Member, count: int, deterministic: bool | None = None) -> DriftRow:
    custom = CustomStrategy("house-blend", f"{__name__}:{strategy}", deterministic)
    life = Life(GroupConfig("test", custom=CustomStrategies((custom,))))
    life.take(make_record(5, members, protocol="house-blend"), make_observation(10, make_topic("x", count)))
    return verdict_of(life)


ALL_ON_A = (make_member("a", ("x",), {"x": (0, 1, 2)}), make_member("b", ("x",), {}))
EVEN = (make_member("a", ("x",), {"x": (0, 1)}), make_member("b", ("x",), {"x": (2,)}))


def test_what_the_strategy_gives_is_identical() -> None:
    row = judged("first_takes_all", *ALL_ON_A, count=3)

    assert (row.verdict, row.reason, row.matching_library) == ("identical", None, "custom")


def test_what_it_does_not_give_is_drifted() -> None:
    row = judged("first_takes_all", *EVEN, count=3)

    assert row.verdict == "drifted"
    assert row.drifted_partitions == (DriftedPartition("x", 2, "misplaced", "a", ("b",)),)


def test_a_partition_that_it_leaves_to_nobody_is_no_smaller_topic() -> None:
    assert judged("all_but_the_last", *ALL_ON_A, count=4).verdict == "identical"


def test_another_result_of_one_that_is_not_deterministic_proves_nothing() -> None:
    row = judged("first_takes_all", *EVEN, count=3, deterministic=False)

    assert row.verdict == "unverified"
    assert row.reason == "the strategy is not deterministic: a different result now proves nothing"
    assert judged("first_takes_all", *ALL_ON_A, count=3, deterministic=False).verdict == "identical"


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [
        ("breaks", "custom strategy 'house-blend' raised LookupError: the weights are not there"),
        ("missing", "custom strategy 'house-blend' cannot be loaded: AttributeError"),
        ("gives_one_twice", "custom strategy 'house-blend' raised ValueError: it assigned partition 0 of topic 'x'"),
    ],
)
def test_one_that_fails_is_a_reason_and_the_group_goes_on(strategy: str, reason: str) -> None:
    row = judged(strategy, *EVEN, count=3)

    assert row.verdict == "unverified"
    assert (row.reason or "").startswith(reason)


def test_one_that_fails_with_the_counts_of_today_leaves_open_whether_it_gave_this() -> None:
    custom = CustomStrategy("house-blend", f"{__name__}:cannot_do_four")
    life = Life(GroupConfig("test", custom=CustomStrategies((custom,))))
    seen_for_long(life, ("x", 4))
    # It gives this with three partitions, which no round has seen. With the four that all have seen, it fails.
    life.take(make_record(2000, ALL_ON_A, protocol="house-blend"), make_observation(2005, make_topic("x", 4)))

    row = verdict_of(life)
    assert row.verdict == "unverified"
    assert row.reason == "with the newest partition counts: custom strategy 'house-blend' raised LookupError: four"


def test_invariants_hold_for_a_custom_strategy_too() -> None:
    twice = (make_member("a", ("x",), {"x": (0, 1)}), make_member("b", ("x",), {"x": (1,)}))

    row = judged("breaks", *twice, count=2)
    assert row.verdict == "drifted"
    assert [d.kind for d in row.drifted_partitions] == ["doubly_assigned"]
