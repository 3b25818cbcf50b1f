"""Groups with a user's own strategy: judged by it, and never harmed by it."""

from __future__ import annotations

import pytest

from assignors import Assignment, CustomStrategies, CustomStrategy, Group, PartitionRacks
from streaming.groups import GroupConfig
from streaming.groups.rows import DriftedPartition, DriftRow
from tests.groups.build import Life, Member, make_member, make_observation, make_record, make_topic
from tests.groups.verdicts import first_takes_all, seen_for_long, verdict_of


def all_but_the_last(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """Leaves each topic's last partition unassigned."""
    first = min(member.member_id for member in group.members)
    return {first: {topic: range(count - 1) for topic, count in group.partitions_per_topic.items()}}


def breaks(_group: Group, _racks: PartitionRacks | None) -> Assignment:
    message = "the weights are not there"
    raise LookupError(message)


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


TWICE = (make_member("a", ("x",), {"x": (0, 1)}), make_member("b", ("x",), {"x": (1,)}))
MISPLACED = (DriftedPartition("x", 2, "misplaced", "a", ("b",)),)
TWO_OWNERS = (DriftedPartition("x", 1, "doubly_assigned", None, ("a", "b")),)

Judged = tuple[str, tuple[Member, ...], int, bool | None, tuple[str, str, tuple[DriftedPartition, ...]]]
# The strategy, members, a partition count, whether it says that it is deterministic; then the verdict, the beginning of
# its reason, and what drifted.
VERDICTS: dict[str, Judged] = {
    "what the strategy gives": ("first_takes_all", ALL_ON_A, 3, None, ("identical", "", ())),
    "what it does not give": (
        "first_takes_all",
        EVEN,
        3,
        None,
        ("drifted", "the strategy gives another assignment", MISPLACED),
    ),
    "a partition that it leaves to nobody is no smaller topic": (
        "all_but_the_last",
        ALL_ON_A,
        4,
        None,
        ("identical", "", ()),
    ),
    "another result of one that is not deterministic proves nothing": (
        "first_takes_all",
        EVEN,
        3,
        False,
        ("unverified", "the strategy is not deterministic: a different result now proves nothing", ()),
    ),
    "the same result does": ("first_takes_all", ALL_ON_A, 3, False, ("identical", "", ())),
    "one that raises": (
        "breaks",
        EVEN,
        3,
        None,
        ("unverified", "custom strategy 'house-blend' raised LookupError: the weights are not there", ()),
    ),
    "one that is missing": (
        "missing",
        EVEN,
        3,
        None,
        ("unverified", "custom strategy 'house-blend' cannot be loaded: AttributeError", ()),
    ),
    "invariants hold for a custom strategy too": ("breaks", TWICE, 2, None, ("drifted", "", TWO_OWNERS)),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_a_decision_is_judged_by_what_the_custom_strategy_gives(case: str) -> None:
    strategy, members, count, deterministic, (verdict, reason, drifted) = VERDICTS[case]
    row = judged(strategy, *members, count=count, deterministic=deterministic)
    assert (row.verdict, row.drifted_partitions) == (verdict, drifted)
    assert (row.reason or "").startswith(reason)
    assert row.matching_library == ("custom" if verdict == "identical" else None)


def test_one_that_fails_with_the_counts_of_today_leaves_open_whether_it_gave_this() -> None:
    custom = CustomStrategy("house-blend", f"{__name__}:cannot_do_four")
    life = Life(GroupConfig("test", custom=CustomStrategies((custom,))))
    seen_for_long(life, ("x", 4))
    # It gives this with three partitions, which no round has seen. With the four that all have seen, it fails.
    life.take(make_record(2000, ALL_ON_A, protocol="house-blend"), make_observation(2005, make_topic("x", 4)))

    row = verdict_of(life)
    assert row.verdict == "unverified"
    assert row.reason == "with the newest partition counts: custom strategy 'house-blend' raised LookupError: four"
