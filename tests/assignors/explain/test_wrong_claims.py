"""A step that is wrong in just one way is refused, with the reason: shares, claims, and what is kept of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignors.assignment import Assignment
from assignors.explain.ledger import Facts, Ledger, WrongStepError
from assignors.explain.steps import Generations, GivenUp, Kept, NotBelieved, Shares
from tests.assignors.explain.wrong_steps import Case, check, entered, group, has

TWO = group({"t": 4, "u": 2, "nobodys": 3}, a="t", b="t u")
OF_T = group({"t": 4}, a="t", b="t")
GENERATIONS = Generations({"a": 7, "b": 5})


def test_shares_are_of_all_partitions_and_members() -> None:
    right = Shares(6, 2, ("a",))
    check(
        Case(
            TWO, (), right,
            (
                ({"members": 3}, "the group has another number of members"),
                ({"partitions": 7}, "the topics have another number of partitions"),
                ({"unlike": ()}, "'a' subscribes to other topics"),
                ({"unlike": ("b",)}, "'a' subscribes to other topics"),
            ),
        )
    )  # fmt: skip
    assert entered(Case(TWO, (), right)).shares == (3, 3)
    assert entered(Case(group({"t": 5}, a="t", b="t"), (), Shares(5, 2))).shares == (2, 3)
    assert entered(Case(group({"t": 5}, a="t gone", b="t gone"), (), Shares(5, 2))).shares == (2, 3)


NOT_BELIEVED = {
    "a topic that is gone, or that nobody subscribes to": Case(
        Facts(TWO.topics, TWO.counts, claims={"a": frozenset({("gone", 0), ("nobodys", 0), ("t", 0)})}),
        (), NotBelieved("a", (("gone", 0), ("nobodys", 0)), "gone"),
        (
            ({"claimed": (("t", 0),)}, "'t' exists"),
            ({"claimed": (("gone", 1),)}, "'a' does not claim ('gone', 1)"),
        ),
    ),
    "a topic that does not exist, although the member subscribes to it": Case(
        Facts({"a": frozenset("tx")}, {"t": 1}, claims={"a": frozenset({("x", 0)})}),
        (), NotBelieved("a", (("x", 0),), "gone"),
        (({"why": "beyond"}, "('x', 0) exists"),),
    ),
    "a topic without partitions": Case(
        Facts({"a": frozenset({"t"})}, {"t": 0}, claims={"a": frozenset({("t", 0)})}),
        (), NotBelieved("a", (("t", 0),), "gone"),
        (({"why": "beyond"}, "('t', 0) exists"),),
    ),
    "a topic of one partition that exists": Case(
        Facts({"a": frozenset({"t"})}, {"t": 1}, claims={"a": frozenset({("t", 0), ("t", 1)})}),
        (), NotBelieved("a", (("t", 1),), "beyond"),
        (({"claimed": (("t", 0),), "why": "gone"}, "'t' exists"),),
    ),
    "a partition beyond the topic": Case(
        Facts(TWO.topics, TWO.counts, claims={"a": frozenset({("t", 3), ("t", 4), ("gone", 0), ("nobodys", 9)})}),
        (), NotBelieved("a", (("t", 4),), "beyond"),
        (
            ({"claimed": (("t", 3),)}, "('t', 3) exists"),
            ({"claimed": (("gone", 0),)}, "('gone', 0) exists"),
            ({"claimed": (("nobodys", 9),)}, "('nobodys', 9) exists"),
        ),
    ),
    "a partition that two claim": Case(
        TWO, (), NotBelieved("b", (("t", 0),), "twice"), (({"claimed": (("u", 0),)}, "('u', 0) is claimed once"),)
    ),
    "a partition that another claims in a newer generation": Case(
        TWO, (GENERATIONS,), NotBelieved("b", (("t", 0),), "newer", "a", 5, 7),
        (
            ({"claimed": (("u", 0),)}, "'a' does not claim ('u', 0)"),
            ({"mine": 6}, "the generations are others"),
            ({"theirs": 8}, "the generations are others"),
            ({"member": "a", "other": "b", "mine": 7, "theirs": 5}, "the generations are others"),
            ({"other": "b", "theirs": 5}, "the generations are others"),
            ({"member": "a", "other": "b", "mine": 7, "theirs": 9}, "the generations are others"),
        ),
    ),
    "a claim of an old generation": Case(
        TWO, (GENERATIONS,), NotBelieved("b", (("t", 0), ("u", 1)), "old", None, 5, 7),
        (
            ({"mine": 4}, "the generations are others"),
            ({"theirs": 5}, "the generations are others"),
            ({"claimed": (("u", 2),)}, "'b' does not claim ('u', 2)"),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_BELIEVED.values(), ids=NOT_BELIEVED)
def test_a_claim_that_does_not_count_is(case: Case) -> None:
    check(case)


def test_generations_are_of_members() -> None:
    check(Case(TWO, (), GENERATIONS, (({"by_member": {"a": 7, "c": 5}}, "it names a stranger"),)))
    assert entered(Case(TWO, (), GENERATIONS)).generations == {"a": 7, "b": 5}
    assert Ledger(TWO).generations == {}


def test_a_member_keeps_what_it_claims_up_to_its_share() -> None:
    kept = (("t", 0), ("t", 1))
    check(
        Case(
            OF_T, (Shares(4, 2),), Kept("a", kept, 2),
            (
                ({"kept": (("u", 0),)}, "'a' never had ('u', 0)"),
                ({"kept": (("t", 0), ("t", 0))}, "'a' gets ('t', 0) twice"),
                ({"had": 1}, "it keeps more than it had"),
                ({"kept": (*kept, ("t", 2)), "had": 3}, "'a' keeps more than its share"),
            ),
        )
    )  # fmt: skip
    check(Case(OF_T, (), Kept("a", (*kept, ("t", 2)), 3)))


IN_RACK = Facts(
    {"a": frozenset({"t"}), "b": frozenset({"t"})},
    {"t": 2},
    racks={"a": "r", "b": None},
    replicas={"t": (("r",), ("s",))},
    claims={"a": frozenset({("t", 0), ("t", 1)}), "b": frozenset({("t", 1)})},
)
GIVEN_UP = {
    "because it has its share": Case(
        OF_T, (Shares(4, 2), has("a", "t", 0, 1), has("b", "t", 0)), GivenUp("a", (("t", 2),), "share"),
        (
            ({"lost": (("u", 0),)}, "'a' never had ('u', 0)"),
            ({"lost": (("t", 1),)}, "'a' still has ('t', 1)"),
            ({"member": "b"}, "'b' is below its share"),
        ),
    ),
    "because others may have one more than it": Case(
        group({"t": 5}, a="t", b="t"), (Shares(5, 2), has("a", "t", 0, 1)), GivenUp("a", (("t", 2),), "share"),
    ),
    "for balance, where the strategy has no shares": Case(OF_T, (), GivenUp("a", (("t", 2),), "share")),
    "by subscription": Case(
        TWO, (), GivenUp("a", (("gone", 0),), "subscription"), (({"lost": (("t", 0),)}, "'a' subscribes to 't'"),)
    ),
    "because it is not in its rack": Case(
        IN_RACK, (), GivenUp("a", (("t", 1),), "rack"),
        (
            ({"lost": (("t", 0),)}, "('t', 0) is in the rack of 'a'"),
            ({"member": "b"}, "'b' has no rack"),
        ),
    ),
    "because two claim it": Case(
        IN_RACK, (), GivenUp("a", (("t", 1),), "twice"), (({"lost": (("t", 0),)}, "('t', 0) is claimed once"),)
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GIVEN_UP.values(), ids=GIVEN_UP)
def test_a_member_gives_up_a_partition(case: Case) -> None:
    check(case)


def test_a_partition_exists_from_0_on_up_to_the_count_and_has_the_racks_of_its_number() -> None:
    assert [IN_RACK.exists(("t", n)) for n in (-1, 0, 1, 2)] == [False, True, True, False]
    assert not IN_RACK.exists(("u", 0))
    assert [IN_RACK.in_rack("a", ("t", n)) for n in (-2, 0, 1, 2)] == [False, True, False, False]
    assert not IN_RACK.in_rack("a", ("u", 0))
    assert not replace(IN_RACK, replicas=None).in_rack("a", ("t", 0))


def test_a_member_could_have_all_partitions_of_its_topics_that_exist() -> None:
    facts = group({"t": 4, "u": 2, "v": 8}, a="t u gone")
    assert facts.could_have("a") == 6


def test_only_a_member_has_partitions_and_only_what_it_was_given_can_be_taken() -> None:
    ledger = Ledger(OF_T)
    with pytest.raises(WrongStepError, match="'c' is no member"):
        ledger.give("c", ("t", 0))
    for member in "ca":
        with pytest.raises(WrongStepError, match=f"'{member}' does not have"):
            ledger.take(member, ("t", 0))
    ledger.give("a", ("t", 0))
    assert (ledger.size("a"), ledger.owned) == (1, {"a": {("t", 0): None}, "b": {}})
    ledger.take("a", ("t", 0))
    assert (ledger.size("a"), ledger.owned) == (0, {"a": {}, "b": {}})


@pytest.mark.parametrize(("shares", "said"), [((1, 3), "'a' has 4"), ((3, 4), "'b' has 2"), ((2, 3), "'a' has 4")])
def test_nobody_ends_beyond_or_below_its_share(shares: tuple[int, int], said: str) -> None:
    ledger = Ledger(group({"t": 6}, a="t", b="t"))
    for number in range(6):
        ledger.give("a" if number < 4 else "b", ("t", number))
    ledger.within_shares()
    ledger.shares = (2, 4)
    ledger.within_shares()
    ledger.shares = shares
    with pytest.raises(WrongStepError, match=said):
        ledger.within_shares()


def test_the_steps_must_lead_to_the_assignment() -> None:
    ledger = entered(Case(TWO, (has("b", "u", 1), has("a", "t", 0)), has("b", "t", 1, 3)))
    right: Assignment = {"a": {"t": (0,)}, "b": {"t": (1, 3), "u": (1,)}}
    ledger.require_equal(right)
    wrong: list[Assignment] = [{"a": {}}, {"a": {"t": (2,)}}, {"b": {"t": (1, 3)}}]
    for changed in wrong:
        with pytest.raises(WrongStepError, match="do not add up"):
            ledger.require_equal({**right, **changed})
