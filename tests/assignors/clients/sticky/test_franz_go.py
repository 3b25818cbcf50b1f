"""franz-go's sticky strategies by hand; tests/assignors/test_go_fuzz.py asks franz-go itself."""

from __future__ import annotations

import pytest

from assignors import Assignment, CannotTell, Group, Subscription, assign
from assignors.clients.sticky import write_sticky

FIRST_JOIN = bytes(4)


def claiming(member_id: str, *numbers: int, generation: int = 1, topics: tuple[str, ...] = ("t",)) -> Subscription:
    owned = (("t", numbers),) if numbers else ()
    return Subscription(
        member_id, topics, owned=owned, generation=generation, user_data=write_sticky(owned, generation)
    )


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_free_partitions_go_to_the_top_of_a_heap(strategy: str) -> None:
    # The heap is a b c, b a c, c a b after the first three; then nobody has fewer than c.
    group = Group(tuple(Subscription(m, ("t",), user_data=FIRST_JOIN) for m in "abc"), {"t": 4})

    assert assign(strategy, group, "franz-go") == {"a": {"t": (0,)}, "b": {"t": (1,)}, "c": {"t": (2, 3)}}


def test_the_fullest_member_gives_its_last_partition() -> None:
    members = (claiming("a", 0), claiming("b", 1), claiming("c", 2, 3), Subscription("d", ("t",), user_data=FIRST_JOIN))

    assert assign("sticky", Group(members, {"t": 4}), "franz-go")["d"] == {"t": (3,)}
    assert assign("cooperative-sticky", Group(members, {"t": 4}), "franz-go") == {
        "a": {"t": (0,)},
        "b": {"t": (1,)},
        "c": {"t": (2,)},
        "d": {},
    }


TWO_TOPICS = Group(tuple(Subscription(m, ("t", "u"), user_data=FIRST_JOIN) for m in "ab"), {"t": 3, "u": 1})


def test_the_order_of_topics_leaves_two_results() -> None:
    with pytest.raises(CannotTell, match="random order") as caught:
        assign("sticky", TWO_TOPICS, "franz-go")

    # The turns are a b b a.
    t_first: Assignment = {"a": {"t": (0,), "u": (0,)}, "b": {"t": (1, 2)}}
    u_first: Assignment = {"a": {"t": (2,), "u": (0,)}, "b": {"t": (0, 1)}}
    assert list(caught.value.possible) == [t_first, u_first]


def test_a_result_of_more_topics_than_can_be_listed_is_recognised() -> None:
    # The turns of two members are a b b a, then the same again; each topic has one partition.
    topics = tuple(f"t{number}" for number in range(8))
    members = tuple(Subscription(m, topics, user_data=FIRST_JOIN) for m in "ab")
    with pytest.raises(CannotTell) as caught:
        assign("sticky", Group(members, dict.fromkeys(topics, 1)), "franz-go")

    half = {m: dict.fromkeys(topics[place::2], (0,)) for place, m in enumerate("ab")}
    assert caught.value.possible == ()
    assert caught.value.admits(half)
    assert not caught.value.admits({"a": dict.fromkeys(topics, (0,)), "b": {}})


@pytest.mark.parametrize(
    "members",
    [
        (claiming("a", 0), claiming("b", 0, generation=2)),
        (claiming("a", topics=("t", "u")), claiming("b")),
        (claiming("a", topics=("t", "t")), claiming("b")),
    ],
)
def test_conflicts_and_different_subscriptions_cannot_be_told(members: tuple[Subscription, ...]) -> None:
    with pytest.raises(CannotTell):
        assign("sticky", Group(members, {"t": 2, "u": 1}), "franz-go")


def test_racks_that_match_cannot_be_told_from_1_21_on() -> None:
    members = (Subscription("a", ("t",), rack="r1"), Subscription("b", ("t",), rack="r2"))
    group, racks = Group(members, {"t": 2}), {"t": [("r1",), ("r2",)]}

    with pytest.raises(CannotTell, match="rack of each partition's leader"):
        assign("sticky", group, "franz-go:1.21", racks)
    assert assign("sticky", group, "franz-go:1.20", racks)["a"] == {"t": (0,)}
