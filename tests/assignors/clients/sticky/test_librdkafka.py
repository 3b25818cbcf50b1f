"""librdkafka's cooperative-sticky. Results are those of librdkafka 2.16 itself, unless a test says otherwise."""

from __future__ import annotations

import pytest

from assignors import (
    CannotTell,
    Group,
    LeaderWouldFail,
    Subscription,
    assign,
    counts,
    same,
)
from tests.assignors.clients.sticky.members import owning


def test_librdkafka_moves_another_partition_than_the_one_that_was_to_go_back() -> None:
    """Seen in a real group: b-0, which moved from "s1" to "r2", should move back, but b-1 moves."""
    everything = ("a", "b", "c-10", "c-2")

    def member(member_id: str, topics: tuple[str, ...], **owned: tuple[int, ...]) -> Subscription:
        had = tuple((topic.replace("_", "-"), partitions) for topic, partitions in owned.items())
        return Subscription(member_id, topics, had, 71 if owned else None, None, None, b"")

    group = Group(
        (
            member("s0", ("a",), a=(0, 1, 2, 3, 4)),
            member("r2", everything),
            member("s1", everything, b=(0, 1, 2, 3, 4), c_10=(0, 1, 2), c_2=(0, 1, 2, 3, 4, 5, 6, 7)),
            member("r9", ("a", "c-10")),
        ),
        {"a": 5, "b": 5, "c-10": 3, "c-2": 8},
    )
    result = assign("cooperative-sticky", group, "librdkafka:2.16")
    assert same(result, {"s0": {"a": (1, 2, 3, 4)}, "s1": {"b": (1,), "c-2": (3, 4, 5, 6, 7)}})


def test_librdkafka_s_decision_is_told_where_it_frees_a_record_that_it_does_not_read_again() -> None:
    # x-0, x-1 and x-2 return to a. Then x-0, whose record is the key of these three moves, goes on to c.
    members = owning("a", "x", 1, x=(0, 1, 2)), owning("b", "x", x=(0, 1, 2, 3, 4, 5)), owning("c", "x")
    result = assign("cooperative-sticky", Group(members, {"x": 6}), "librdkafka:2.16")
    assert same(result, {"b": {"x": (4, 5)}})


def test_librdkafka_s_decision_is_not_told_where_it_reads_a_record_that_it_has_freed() -> None:
    # After x-0 another of the moves to a goes on, which is looked for by the freed key. (librdkafka 2.16 crashes here.)
    members = owning("a", "x", 1, x=(0, 1, 2, 3)), owning("b", "x", x=(0, 1, 2, 3, 4, 5, 6, 7))
    group = Group((*members, owning("c", "x"), owning("d", "x")), {"x": 8})
    with pytest.raises(CannotTell, match="freed memory"):
        assign("cooperative-sticky", group, "librdkafka:2.16")


def test_librdkafka_s_decision_is_told_where_no_other_move_has_the_record_that_it_frees() -> None:
    # x-0 moves from e to c, then on to d. Then x-1, which has moved from e to a, goes on to c.
    others = owning("b", "y"), owning("c", "x y"), owning("d", "x"), owning("e", "x y", x=(0, 1, 2), y=(1, 3, 4, 5))
    members = owning("a", "y", 1, x=(1, 2), y=(1,)), *others
    result = assign("cooperative-sticky", Group(members, {"x": 3, "y": 6}), "librdkafka:2.16")
    assert same(result, {"b": {"y": (0, 2)}, "e": {"y": (4, 5)}})


def test_a_partition_that_moves_on_has_moved_from_its_first_owner_for_librdkafka() -> None:
    # x-0 and x-5 move from b to c, and x-0 on to d. Then x-3, which has moved from b to a, goes on to c. (librdkafka
    # 2.16 crashes here.)
    b = owning("b", "x y z", x=(0, 3, 4, 5), y=(1, 2, 4, 6), z=(0, 1, 2, 3, 4))
    members = owning("a", "y z", 1, x=(3,)), b, owning("c", "x y z"), owning("d", "x")
    with pytest.raises(CannotTell, match="freed memory"):
        assign("cooperative-sticky", Group(members, {"x": 6, "y": 7, "z": 7}), "librdkafka:2.16")


def test_librdkafka_moves_a_partition_to_an_earlier_owner_while_two_members_differ_by_one() -> None:
    # a has one more of x than b. So x-0 moves to e, which had it before, and a gives it up first.
    members = owning("e", "y", 2, x=(0,)), owning("a", "x", x=(0, 1, 2)), owning("b", "x", x=(3, 4))
    result = assign(
        "cooperative-sticky", Group((*members, owning("c", "y", y=(0,))), {"x": 5, "y": 1}), "librdkafka:2.16"
    )
    assert same(result, {"a": {"x": (1, 2)}, "b": {"x": (3, 4)}, "c": {"y": (0,)}})


def test_librdkafka_before_2_6_1_considers_members_that_differ_by_one_balanced() -> None:
    # (Otherwise it would look at y-0, whose previous owner, a, takes no part. 2.6.0 by its source.)
    members = owning("a", "x", 1, y=(0,)), owning("b", "y", y=(0, 1)), owning("c", "y", y=(2,))
    for release in ("2.6.0", "2.16"):
        result = assign("cooperative-sticky", Group(members, {"x": 1, "y": 3}), f"librdkafka:{release}")
        assert same(result, {"a": {"x": (0,)}, "b": {"y": (0, 1)}, "c": {"y": (2,)}})


def test_librdkafka_before_2_6_1_never_ends_where_its_check_for_balance_returns_to_a_member() -> None:
    # By its source: after a member that could have two partitions it goes on with the fourth member, which could have
    # two as well.
    t, u = (owning("a", "t", t=(0,)), owning("b", "t", t=(1,))), (owning("c", "u", u=(0,)), owning("d", "u", u=(1,)))
    group = Group((*t, *u, owning("e", "w", w=(0, 1, 2)), owning("f", "w", w=(3, 4, 5))), {"t": 2, "u": 2, "w": 6})
    with pytest.raises(LeaderWouldFail, match="forever"):
        assign("cooperative-sticky", group, "librdkafka:2.6.0")
    assert counts(assign("cooperative-sticky", group, "librdkafka:2.6.1")) == {
        "a": 1, "b": 1, "c": 1, "d": 1, "e": 3, "f": 3,
    }  # fmt: skip


def test_librdkafka_before_2_6_1_ends_its_check_for_balance_behind_the_last_member() -> None:
    # By its source: after a, which could have two partitions, it goes on with the fourth member, and there are three.
    members = owning("a", "u", u=(0,)), owning("b", "u", u=(1,)), owning("c", "t u", t=(0, 1, 2))
    result = assign("cooperative-sticky", Group(members, {"t": 3, "u": 2}), "librdkafka:2.6.0")
    assert same(result, {"a": {"u": (0,)}, "b": {"u": (1,)}, "c": {"t": (0, 1, 2)}})


def test_librdkafka_before_2_6_1_looks_at_the_member_after_one_that_has_all_it_could_have() -> None:
    # a could not have more than x-0. So the next one, b, is compared with c: y-3 moves, and c gives it up first. (2.6.0
    # by its source.)
    members = owning("a", "x", x=(0,)), owning("b", "x y", y=(0, 1, 2)), owning("c", "y", y=(3, 4, 5, 6, 7))
    for release in ("2.6.0", "2.6.1"):
        result = assign("cooperative-sticky", Group(members, {"x": 1, "y": 8}), f"librdkafka:{release}")
        assert same(result, {"a": {"x": (0,)}, "b": {"y": (0, 1, 2)}, "c": {"y": (4, 5, 6, 7)}})


def test_what_librdkafka_deals_to_a_subscription_by_pattern_is_not_told() -> None:
    # (The pattern is matched by rules of its own.)
    for release in ("2.6.0", "2.16"):
        with pytest.raises(CannotTell, match="pattern"):
            assign("cooperative-sticky", Group((Subscription("a", ("^t.*", "t")),), {"t": 2}), f"librdkafka:{release}")


def test_where_librdkafka_confuses_the_owners_of_a_partition_its_decision_is_not_told() -> None:
    newest = Subscription("a", ("x",), owned=(("x", (0, 1)),), generation=3)
    older = Subscription("b", ("x",), owned=(("x", (1,)),), generation=2)
    # (librdkafka 2.16 gives nothing to either here.)
    with pytest.raises(CannotTell, match="an older claim of a partition is listed after the newest one"):
        assign("cooperative-sticky", Group((newest, older), {"x": 2}), "librdkafka:2.16")
    told = assign("cooperative-sticky", Group((older, newest), {"x": 2}), "librdkafka:2.16")
    assert same(told, {"a": {"x": (0,)}, "b": {}})
