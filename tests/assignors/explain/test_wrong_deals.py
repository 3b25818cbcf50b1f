"""A step that is wrong in just one way is refused, with the reason: orders, blocks, racks, turns and the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assignors.explain.ledger import Facts
from assignors.explain.rocketmq import Fails, Pool
from assignors.explain.steps import CutIntoBlocks, DealtInRacks, DealtInTurn, Ordered, Result
from tests.assignors.explain.wrong_steps import Case, check, entered, group, has

THREE = group({"t": 5, "u": 5, "v": 4, "w": 5}, a="t u v", b="t u v", c="t u v w")
NOT_IN_ORDER = "the members are not in the order "


def members(**instances: str | None) -> Facts:
    """Members "a" to "z" of nothing with their `group.instance.id`."""
    return Facts({member: frozenset() for member in instances}, {}, instances=instances)


# "\U0001f600" is after "\uff00" in UTF-8, and before it in UTF-16, as Java compares strings.
STATIC = members(a=None, b=None, c="\uff00", d="\U0001f600")
ORDERS = {
    "java": (("d", "c", "a", "b"), [("c", "d", "a", "b"), ("a", "b", "d", "c"), ("d", "c", "b", "a")]),
    "java_member_id": (("a", "b", "c", "d"), [("d", "c", "a", "b")]),
    "franz-go": (("c", "d", "a", "b"), [("d", "c", "a", "b"), ("a", "b", "c", "d")]),
    "kafka-python": (("c", "d", "a", "b"), [("d", "c", "a", "b"), ("c", "d", "b", "a")]),
    "member_id": (("a", "b", "c", "d"), [("c", "d", "a", "b")]),
}


@pytest.mark.parametrize("rule", ORDERS)
def test_members_are_in_the_order_of_the_rule(rule: str) -> None:
    right, wrong = ORDERS[rule]
    check(
        Case(
            STATIC, (), Ordered(rule, right),
            (
                *(({"members": listed}, NOT_IN_ORDER + rule) for listed in wrong),
                ({"members": right[1:]}, "the order does not have each member once"),
                ({"members": (*right, right[-1])}, "the order does not have each member once"),
                ({"left_out": right[:1]}, "the order does not have each member once"),
            ),
        )
    )  # fmt: skip
    assert entered(Case(STATIC, (), Ordered(rule, right))).order == right
    check(Case(STATIC, (), Ordered(rule, right[1:], right[:1])))


@pytest.mark.parametrize(
    ("rule", "right"), [("java_member_id", ("\U0001f600", "\uff00")), ("member_id", ("\uff00", "\U0001f600"))]
)
def test_member_ids_are_compared_as_the_library_compares_strings(rule: str, right: tuple[str, str]) -> None:
    facts = members(**dict.fromkeys(right))
    check(Case(facts, (), Ordered(rule, right), (({"members": right[::-1]}, NOT_IN_ORDER + rule),)))


def test_librdkafka_compares_two_static_members_by_their_instances_and_others_by_their_ids() -> None:
    said = "the members are not in librdkafka's order"
    static = Ordered("librdkafka", ("b", "a"))
    check(Case(members(a="2", b="1"), (), static, (({"members": ("a", "b")}, said),)))
    for facts in (members(a="2", b=None), members(a=None, b="1"), members(a=None, b=None)):
        check(Case(facts, (), Ordered("librdkafka", ("a", "b")), (({"members": ("b", "a")}, said),)))


BLOCKS = CutIntoBlocks(("t", "u"), 5, ("a", "b", "c"), (("a", 0, 1), ("b", 2, 3), ("c", 4, 4)))


def test_a_topic_is_cut_into_one_block_per_subscriber() -> None:
    check(
        Case(
            THREE, (), BLOCKS,
            (
                ({"blocks": (("a", 0, 2), ("b", 3, 4))}, "'a' has another block"),
                ({"blocks": (("a", 0, 1), ("b", 2, 3))}, "'c' has another block"),
                ({"blocks": (("a", 0, 0), ("b", 1, 2), ("c", 3, 4))}, "'a' has another block"),
                ({"topics": ("t", "v")}, "'v' has another partition count"),
                ({"topics": ("w",)}, "'w' has other subscribers"),
                ({"left_out": ("d",)}, "'t' has other subscribers"),
            ),
        )
    )  # fmt: skip
    order = Ordered("member_id", ("a", "b", "c"))
    turned: dict[str, Any] = {"takers": ("b", "a", "c"), "blocks": (("b", 0, 1), ("a", 2, 3), ("c", 4, 4))}
    check(Case(THREE, (order,), BLOCKS, ((turned, "the takers are not in the order of the members"),)))
    check(Case(THREE, (), replace(BLOCKS, **turned)))
    assert entered(Case(THREE, (), BLOCKS)).owned["c"] == {("t", 4): None, ("u", 4): None}


def test_blocks_of_fewer_partitions_than_subscribers_leave_the_last_ones_nothing() -> None:
    facts = group({"t": 1}, a="t", b="t", c="t")
    one = CutIntoBlocks(("t",), 1, ("b", "a"), (("b", 0, 0),), ("c",))
    wrong = ({"blocks": (("a", 0, 0),)}, "'b' has another block")
    check(Case(facts, (), one, (wrong, ({"blocks": ()}, "'b' has another block"))))


def test_a_member_that_lists_a_topic_twice_has_both_blocks_or_the_later_one() -> None:
    facts = group({"t": 6}, a="t", b="t")
    joined = CutIntoBlocks(("t",), 6, ("a", "a", "b"), (("a", 0, 3), ("b", 4, 5)))
    check(Case(facts, (), joined, (({"blocks": (("a", 0, 1), ("b", 4, 5))}, "'a' has another block"),)))
    check(Case(facts, (), replace(joined, blocks=(("a", 2, 3), ("b", 4, 5)))))


RACKS = dict.fromkeys("tu", (("r",), ("r",), ("s",), ("s",), ("s",)))
IN_RACKS = Facts(
    {m: frozenset("tu") for m in "abc"}, {"t": 5, "u": 5, "v": 5}, racks={"a": "r", "b": "s"}, replicas=RACKS
)
BY_RACKS = DealtInRacks(("t", "u"), 5, ("a", "b", "c"), (("a", 0), ("a", 1), ("b", 2), ("b", 3)), (("c", 4),))


def test_topics_are_dealt_by_racks_within_equal_shares() -> None:
    check(
        Case(
            IN_RACKS, (), BY_RACKS,
            (
                ({"rest": ()}, "not every partition is dealt once"),
                ({"rest": (("c", 4), ("c", 4))}, "not every partition is dealt once"),
                ({"rest": (("b", 4),)}, "a member gets more than its share"),
                (
                    {"in_racks": (("a", 0), ("a", 1), ("b", 2)), "rest": (("c", 3), ("a", 4))},
                    "a member gets more than its share",
                ),
                ({"in_racks": (("b", 0), ("a", 1), ("b", 2), ("a", 3))}, "'b' has no rack of 't' 0"),
                ({"in_racks": (("a", 0), ("a", 2), ("b", 1), ("b", 3))}, "'a' has no rack of 't' 2"),
                ({"topics": ("t", "w")}, "'w' has another partition count"),
                ({"topics": ("v",)}, "'v' has other subscribers"),
                ({"takers": ("a", "b", "c", "d")}, "too many members get one more"),
            ),
        )
    )  # fmt: skip
    assert entered(Case(IN_RACKS, (), BY_RACKS)).owned["a"] == dict.fromkeys([("t", 0), ("t", 1), ("u", 0), ("u", 1)])


def test_no_more_members_get_one_more_than_are_left_over() -> None:
    facts = group({"t": 5}, a="t", b="t", c="t", d="t")
    right = DealtInRacks(("t",), 5, ("a", "b", "c", "d"), (), (("a", 0), ("b", 1), ("c", 2), ("d", 3), ("a", 4)))
    uneven = {"rest": (("a", 0), ("b", 1), ("c", 2), ("b", 3), ("a", 4))}
    check(Case(facts, (), right, ((uneven, "too many members get one more"),)))
    even = group({"t": 4}, a="t", b="t")
    two = DealtInRacks(("t",), 4, ("a", "b"), (), (("a", 0), ("a", 1), ("b", 2), ("b", 3)))
    check(Case(group({"t": 0}, a="t"), (), DealtInRacks(("t",), 0, ("a",), (), ())))
    three = {"rest": (("a", 0), ("a", 1), ("a", 2), ("b", 3))}
    check(Case(even, (), two, ((three, "a member gets more than its share"),)))


TURNS = group({"t": 3, "u": 2, "v": 1}, a="t u", b="t", c="t u")
ORDER = Ordered("member_id", ("a", "b", "c"))


def test_partitions_are_dealt_in_turn_and_pass_over_who_does_not_subscribe() -> None:
    of_u = DealtInTurn((("u", 0, "a"), ("u", 1, "c")))
    check(
        Case(
            TURNS, (ORDER,), of_u,
            (
                ({"dealt": (("u", 0, "a"), ("u", 1, "b"))}, "the turn is not at 'b'"),
                ({"dealt": (("u", 0, "c"), ("u", 1, "a"))}, "the turn is not at 'c'"),
                ({"dealt": (("u", 0, "a"), ("v", 0, "c"))}, "nobody may have 'v'"),
                ({"dealt": (("u", 0, "a"),)}, "not the topic's numbers"),
                ({"dealt": (("u", 1, "a"), ("u", 0, "c"))}, "not the topic's numbers"),
            ),
        )
    )  # fmt: skip
    ledger = entered(Case(TURNS, (ORDER,), of_u))
    assert (ledger.turn, ledger.owned) == (0, {"a": {("u", 0): None}, "b": {}, "c": {("u", 1): None}})
    # The next topic goes on where the last one ended, and around.
    of_t = DealtInTurn((("t", 0, "b"), ("t", 1, "c"), ("t", 2, "a")))
    one = DealtInTurn((("u", 0, "a"),), mixed=True)
    check(Case(TURNS, (ORDER, one), of_t, (({"dealt": (("t", 0, "a"),)}, "the turn is not at 'a'"),)))
    assert entered(Case(TURNS, (ORDER, one), of_t)).turn == 1
    check(Case(TURNS, (ORDER,), DealtInTurn((("u", 1, "a"), ("t", 0, "b"), ("u", 0, "c")), mixed=True)))


def test_the_last_member_in_the_order_may_be_the_only_subscriber() -> None:
    facts = group({"t": 2}, a="", b="", c="t")
    check(Case(facts, (ORDER,), DealtInTurn((("t", 0, "c"), ("t", 1, "c")))))


def test_the_result_has_the_sizes_of_all_members_and_their_sum() -> None:
    check(
        Case(
            THREE, (has("a", "t", 0, 1), has("b", "u", 0)), Result({"a": 2, "b": 1, "c": 0}, 3),
            (
                ({"sizes": {"a": 2, "b": 1}}, "members have other numbers"),
                ({"sizes": {"a": 1, "b": 2, "c": 0}}, "members have other numbers"),
                ({"assigned": 4}, "the sum is another"),
            ),
        )
    )  # fmt: skip


QUEUES = tuple(("q", number) for number in range(5))
CLIENTS = Facts({client: frozenset() for client in ("c1", "c2", "c3", "C4")}, {})


def pool(rule: str, *given: str, clients: tuple[str, ...] = ("c1", "c2", "c3"), in_order: bool = True) -> Pool:
    """Queues 0 to 4; of each client its numbers."""
    pairs = tuple((("q", int(n)), client) for client, mine in zip(clients, given, strict=True) for n in mine)
    return Pool(rule, "", QUEUES, clients, pairs, in_order)


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ("AVG", ("01", "23", "4"), ("0", "12", "34")),
        ("AVG_BY_CIRCLE", ("03", "14", "2"), ("01", "23", "4")),
        ("MACHINE_ROOM", ("03", "14", "2"), ("01", "23", "4")),
        ("CONFIG", ("01234", "01234", "01234"), ("01234", "01234", "0123")),
    ],
)
def test_a_pool_of_queues_is_dealt_by_its_rule(rule: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    said = f"{rule} gives something else"
    case = Case(CLIENTS, (), pool(rule, *right), (({"given": pool(rule, *wrong).given}, said),))
    check(case)
    assert entered(case).owned["c1"] == dict.fromkeys(("q", int(number)) for number in right[0])


def test_queues_that_divide_evenly_give_nobody_one_more() -> None:
    even = replace(pool("AVG", "01", "23", clients=("c1", "c2")), queues=QUEUES[:4])
    wrong = ({"given": pool("AVG", "012", "3", clients=("c1", "c2")).given}, "AVG gives something else")
    check(Case(CLIENTS, (), even, (wrong,)))


def test_a_pool_s_clients_are_in_order_where_the_clients_sort_them() -> None:
    of = ("c2", "C4")
    unsorted = pool("AVG", "012", "34", clients=of, in_order=False)
    check(Case(CLIENTS, (), unsorted, (({"in_order": True}, "the clients are not in order"),)))


def test_calls_fail_of_clients_of_the_group() -> None:
    fails = Fails(("c1", "C4"), "ArrayIndexOutOfBoundsException")
    check(Case(CLIENTS, (), fails, (({"clients": ("c1", "c5")}, "it names a stranger"),)))
    check(Case(CLIENTS, (), replace(fails, clients=("c1", "c2", "c3", "C4"))))
