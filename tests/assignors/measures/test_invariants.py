from __future__ import annotations

from assignors import (
    BEYOND_COUNT,
    DOUBLY_ASSIGNED,
    NOT_SUBSCRIBED,
    Assignment,
    Violation,
    violations,
)

SUBSCRIBED = {"a": ("t",), "b": ("t", "u")}
COUNTS = {"t": 3, "u": 1}


def test_a_sound_assignment_violates_nothing() -> None:
    assert violations({"a": {"t": (0, 1)}, "b": {"t": (2,), "u": range(1)}}, SUBSCRIBED, COUNTS) == ()


def test_a_partition_of_two_members_is_doubly_assigned_by_each_after_the_first() -> None:
    found = violations({"a": {"t": (0, 1)}, "b": {"t": (1, 2)}, "c": {"t": (1,)}}, SUBSCRIBED, COUNTS)

    assert found == (
        Violation(DOUBLY_ASSIGNED, "t", 1, "b"),
        Violation(DOUBLY_ASSIGNED, "t", 1, "c"),
    )


def test_a_partition_twice_in_one_list_is_doubly_assigned() -> None:
    assert violations({"a": {"t": (2, 2)}}, SUBSCRIBED, COUNTS) == (Violation(DOUBLY_ASSIGNED, "t", 2, "a"),)


def test_a_topic_that_was_not_asked_for_is_not_subscribed() -> None:
    assert violations({"a": {"u": (0,)}}, SUBSCRIBED, COUNTS) == (Violation(NOT_SUBSCRIBED, "u", 0, "a"),)


def test_a_partition_that_does_not_exist_is_beyond_the_count() -> None:
    found = violations({"a": {"t": (0, 2, 3, -1)}}, SUBSCRIBED, COUNTS)

    assert found == (Violation(BEYOND_COUNT, "t", 3, "a"), Violation(BEYOND_COUNT, "t", -1, "a"))


def test_a_topic_that_does_not_exist_has_no_partitions() -> None:
    assert violations({"a": {"t": (0,)}}, SUBSCRIBED, {"t": 0}) == (Violation(BEYOND_COUNT, "t", 0, "a"),)


def test_what_is_not_known_is_not_judged() -> None:
    assert violations({"stranger": {"v": (7,)}, "a": {"t": (9,)}}, SUBSCRIBED, {}) == ()


def test_one_partition_can_have_several_violations() -> None:
    assignment: Assignment = {"b": {"u": (5,)}, "a": {"u": (5,)}}

    assert [(v.kind, v.member) for v in violations(assignment, SUBSCRIBED, COUNTS)] == [
        (BEYOND_COUNT, "b"),
        (NOT_SUBSCRIBED, "a"),
        (BEYOND_COUNT, "a"),
        (DOUBLY_ASSIGNED, "a"),
    ]
