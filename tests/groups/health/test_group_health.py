"""Findings: those that hold at a round, and their beginnings."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streaming.groups import GroupConfig
from streaming.records import GroupInput
from tests.groups.build import (
    LOG_PARTITION,
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_cooperative,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)
from tests.groups.health.findings import detail, found

GRACE = 600


def seen(second: int, count: int | None, **changes: Any) -> GroupInput:
    return make_observation(second, make_topic("x", count), **changes)


GROWN = [make_record(5, even("x", 2, "a", "b")), seen(10, 2), seen(50, 4)]
"""A group of two whose topic got two more partitions, first seen at 50."""

HANDOVER = [make_cooperative(5, 1, a=(0, 1, 2)), seen(10, 3), make_cooperative(15, 2, a=(0,), b=()), seen(20, 3)]
"""A cooperative rebalance has taken two partitions from a at 15."""

BLOCKED = {"held_since": START + 12 * SECOND}


def holes(strategy: str, generation: int = 8) -> GroupInput:
    members = (make_member("a", ("x",), {"x": (0, 2)}), make_member("b", ("x",), {}))
    return make_record(5, members, generation=generation, protocol=strategy)


STALE = ("stale_metadata", 50)
PENDING = ("partitions_pending_handover", 15)
HELD = ("offsets_blocked", 12)

FOUND: dict[str, list[tuple[list[GroupInput], list[tuple[str, int]]]]] = {
    "new partitions are stale metadata since the round that showed them": [
        (GROWN[:2], []),
        (GROWN[2:], [STALE]),
        ([seen(70, 4)], [STALE]),
    ],
    "stale metadata becomes unassigned after the grace": [
        ([*GROWN, seen(50 + GRACE - 1, 4)], [STALE]),
        ([seen(50 + GRACE, 4)], [("unassigned", 50)]),
    ],
    "the grace begins when a topic first grows and not anew when it grows again": [
        ([*GROWN, seen(50 + GRACE - 1, 6)], [STALE]),
        ([seen(50 + GRACE, 6)], [("unassigned", 50)]),
    ],
    "it is gone when the leader sees the partitions": [
        ([*GROWN, make_record(80, even("x", 4, "a", "b"), generation=2), seen(90, 4)], []),
    ],
    "a new decision begins the grace anew": [
        ([*GROWN, make_record(500, even("x", 2, "a", "b"), generation=2), seen(800, 4)], [STALE]),
    ],
    "partitions that were there before the group was first seen get the grace too": [
        ([make_record(5, even("x", 2, "a", "b")), seen(2000, 4)], [("stale_metadata", 2000)]),
    ],
    "a subscribed topic that no round shows is not visible": [
        ([make_record(5, (make_member("a", ("x", "y"), {"x": (0,)}),)), seen(10, 1)], [("topic_not_visible", 10)]),
        ([make_observation(20, make_topic("x", 1), make_topic("y", None))], [("topic_not_visible", 10)]),
        ([make_observation(30, make_topic("x", 1), make_topic("y", 1))], [("stale_metadata", 30)]),
    ],
    "a blocked log is told since the probe saw it": [
        ([make_commit(5, 1, topic="x"), seen(10, 1, held_since=START + 3 * SECOND)], [("offsets_blocked", 3)]),
        ([seen(20, 1)], []),
    ],
    # The record that nobody could read: the group had rebalanced long ago.
    "while the log is blocked nothing new is found about a membership that may have changed": [
        (
            [
                *GROWN[:2],
                make_observation(20, make_topic("x", 4), make_topic("y", 1), **BLOCKED),
                seen(2_000, 4, **BLOCKED),
            ],
            [HELD],
        ),
        ([make_record(30, even("x", 4, "a", "b"), generation=2), seen(2_010, 4)], []),
    ],
    "what was found before the log was blocked stays as it was": [
        ([*GROWN, seen(2_000, 4, **BLOCKED)], [HELD, STALE]),
        ([seen(2_010, 4)], [("unassigned", 50)]),
        ([seen(2_020, 4, **BLOCKED)], [HELD, ("unassigned", 50)]),
    ],
    "a handover does not become a lack of owners while the log is blocked": [
        ([*HANDOVER, seen(15 + 400, 3, **BLOCKED)], [HELD, PENDING]),
        ([seen(15 + 410, 3)], [("unassigned", 15)]),
    ],
    "a handover ends with the next generation": [
        (HANDOVER, [PENDING]),
        ([make_cooperative(25, 3, a=(0,), b=(1, 2)), seen(30, 3)], []),
    ],
    "a handover longer than the rebalance timeout is a lack of owners": [
        ([*HANDOVER, seen(15 + 300, 3)], [PENDING]),
        ([seen(15 + 301, 3)], [("unassigned", 15)]),
    ],
    "a handover of partitions that no longer exist is over": [([*HANDOVER, seen(400, 1)], [("idle_members", 15)])],
    "so is that of a deleted topic": [([*HANDOVER, seen(400, None)], [("topic_not_visible", 400)])],
    **{
        f"holes of a group first seen in the middle of a handover are none: {strategy}": [
            ([holes(strategy), seen(10, 3)], [])
        ]
        for strategy in ("cooperative-sticky", "stream")
    },
    "holes that stay longer than the rebalance timeout": [
        ([holes("house-blend"), seen(10, 3), seen(306, 3)], [("unassigned", 5)]),
    ],
    "holes under an eager strategy": [
        ([make_record(5, (make_member("a", ("x",), {"x": (0, 2)}),)), seen(10, 3)], [("unassigned", 5)]),
    ],
    "members that cannot be decoded": [
        (
            [
                make_record(
                    5,
                    (make_member("a", ("x",), {"x": (0,)}), make_member("b", ("x",), None, undecodable="it is cut")),
                ),
                *(seen(3000, 3), seen(9000, 3)),
            ],
            [],
        ),
    ],
    "a group that has ended": [([*GROWN, make_tombstone(60), seen(70, 4)], [])],
}


@pytest.mark.parametrize("case", FOUND)
def test_a_finding_holds_as_long_as_rounds_show_it_since_it_began(case: str) -> None:
    life = Life()
    for inputs, expected in FOUND[case]:
        life.take(*inputs)
        assert found(life) == expected


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (GROWN, "new partitions that the leader has not seen: x (2 to 4 partitions)"),
        ([*GROWN, seen(50 + GRACE, 6)], "partitions without an owner: x (2 to 6 partitions)"),
        (HANDOVER, "2 partitions given up by one member and not yet given to the next"),
        ([holes("house-blend"), seen(10, 3), seen(306, 3)], "partitions without an owner: x (1 partition)"),
        (
            [make_commit(5, 1, topic="x"), seen(10, 1, held_since=START)],
            f"lag is unknown, a transaction is open: no progress on partition {LOG_PARTITION} of the offsets log",
        ),
        # It names three and counts the others.
        (
            [make_record(5, (make_member("a", ("t1", "t2", "t3", "t4", "t5"), {}),)), make_observation(10)],
            "subscribed, but not visible: t1, t2, t3 and 2 more",
        ),
    ],
)
def test_a_finding_says_where(inputs: list[GroupInput], text: str) -> None:
    assert detail(Life.after(*inputs)) == text


def test_a_topic_outside_the_filters_is_not_called_unseen() -> None:
    life = Life(GroupConfig(cluster="test", watches_topic=lambda topic: topic != "y"))
    life.take(make_record(5, (make_member("a", ("x", "y"), {"x": (0,)}),)), seen(10, 1))
    assert found(life) == []


DAY_S = 86_400


@pytest.mark.parametrize("ahead", [0, DAY_S])
def test_partitions_without_an_owner_are_found_also_where_the_coordinators_clock_is_a_day_ahead(ahead: int) -> None:
    life = Life.after(
        make_record(5, even("x", 2, "a", "b"), time=START + (5 + ahead) * SECOND),
        make_observation(10, make_topic("x", 2)),
    )
    for at in (20, 30, 1_000):
        life.take(make_observation(at, make_topic("x", 4)))
    assert found(life) == [("unassigned", 20)]


@pytest.mark.parametrize(("ahead", "since"), [(0, 15), (DAY_S, 20)])
def test_a_handover_that_never_ends_is_found_also_where_the_coordinators_clock_is_a_day_ahead(
    ahead: int, since: int
) -> None:
    life = Life.after(make_cooperative(5, 1, a=(0, 1, 2)), make_observation(10, make_topic("x", 3)))
    second = msgspec.structs.replace(make_cooperative(15, 2, a=(0,), b=()), record_time=START + (15 + ahead) * SECOND)
    life.take(second, make_observation(20, make_topic("x", 3)))
    assert found(life) == [("partitions_pending_handover", since)]
    life.take(make_observation(30, make_topic("x", 3)), make_observation(1_000, make_topic("x", 3)))
    assert found(life) == [("unassigned", since)]
