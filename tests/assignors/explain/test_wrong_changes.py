"""A step that is wrong in just one way is refused, with the reason: partitions given, moved and held back."""

from __future__ import annotations

import pytest

from assignors.explain.ledger import Facts, Ledger, WrongStepError
from assignors.explain.steps import Given, GivenBack, HeldBack, Moved, Shares, Undone
from tests.assignors.explain.wrong_steps import Case, check, entered, group, has

ONE = group({"t": 4, "u": 2}, a="t", b="t u")
ALIKE = group({"t": 5}, a="t", b="t")  # two or three partitions each
UNLIKE = group({"t": 3, "u": 2}, a="t", b="t u")  # the same shares, where the leader takes all for alike
SHARES, UNLIKE_SHARES = Shares(5, 2), Shares(5, 2, ("a",))
# Partitions 0 and 1 have replicas in rack r, 2 and 3 in s.
RACKS = {"t": (("r",), ("r", "x"), ("s",), ("s", "x"))}
IN_RACKS = Facts({m: frozenset({"t"}) for m in "abc"}, {"t": 4}, racks={"a": "r", "b": "s", "c": None}, replicas=RACKS)


def given(why: str, *pairs: tuple[str, int, str, int]) -> Given:
    return Given(why, tuple(((topic, n), member) for topic, n, member, _ in pairs), tuple(size for *_, size in pairs))


def wrong_given(said: str, *pairs: tuple[str, int, str, int]) -> tuple[dict[str, object], str]:
    of = given("", *pairs)
    return {"given": of.given, "sizes": of.sizes}, said


GIVEN = {
    "with the size of its taker, to a subscriber": Case(
        ONE, (), given("fill_topic", ("t", 0, "a", 0), ("t", 1, "a", 1), ("u", 0, "b", 0)),
        (
            wrong_given("'a' has 1 partitions, not 2", ("t", 0, "a", 0), ("t", 1, "a", 2)),
            wrong_given("'a' does not subscribe to 'u'", ("u", 0, "a", 0)),
            wrong_given("'b' gets ('t', 0) twice", ("t", 0, "b", 0), ("t", 0, "b", 1)),
        ),
    ),
    "below the share, to whom the leader takes for a subscriber": Case(
        UNLIKE, (UNLIKE_SHARES,), given("share", ("u", 0, "a", 0), ("t", 0, "b", 0), ("t", 1, "a", 1)),
        (
            wrong_given("'a' has its share already", *(("t", n, "a", n) for n in range(3))),
            wrong_given("it is not the turn of 'b'", *(("t", n, m, n // 2) for n, m in enumerate("abba"))),
        ),
    ),
    "below the share, one filled up before the next": Case(
        UNLIKE, (UNLIKE_SHARES,), given("fill", ("t", 0, "a", 0), ("t", 1, "a", 1), ("t", 2, "a", 2)),
        (
            wrong_given("'b' has its share already", *(("t", n, "b", n) for n in range(3)), ("u", 0, "b", 3)),
            wrong_given("'a' does not subscribe to 'u'", ("u", 0, "a", 0)),
        ),
    ),
    "one more than the share, to whom has it": Case(
        ALIKE, (SHARES, has("a", "t", 0, 1), has("b", "t", 2)), given("extra", ("t", 3, "a", 2)),
        (
            wrong_given("'b' is below its share", ("t", 3, "b", 1)),
            wrong_given("'a' has its share already", ("t", 3, "a", 2), ("t", 4, "a", 3)),
        ),
    ),
    "to a member in a rack of a replica with room": Case(
        IN_RACKS, (Shares(4, 3),), given("rack", ("t", 0, "a", 0), ("t", 1, "a", 1), ("t", 2, "b", 0)),
        (
            wrong_given("('t', 2) has no replica in the rack of 'a'", ("t", 2, "a", 0)),
            wrong_given("('t', 0) has no replica in the rack of 'c'", ("t", 0, "c", 0)),
            wrong_given("'b' has its share already", ("t", 2, "b", 0), ("t", 3, "b", 1), ("t", 2, "b", 2)),
        ),
    ),
    "to the one with the fewest": Case(
        ONE, (), given("least", ("t", 0, "b", 0), ("t", 1, "a", 0), ("t", 2, "a", 1), ("t", 3, "b", 1)),
        (wrong_given("'a' has fewer than 1", ("t", 0, "b", 0), ("t", 1, "b", 1)),),
    ),
    "to the one with the fewest of those that could have more": Case(
        group({"t": 1, "u": 3}, a="t", b="t u"), (has("a", "t", 0), has("b", "u", 0, 1)),
        given("least", ("t", 0, "b", 2)),
        (wrong_given("'a' gets ('t', 0) twice", ("t", 0, "a", 1)),),
    ),
    "to the one with the fewest in a rack of a replica, or without a rack": Case(
        IN_RACKS, (), given("least_in_rack", ("t", 2, "b", 0), ("t", 3, "c", 0), ("t", 0, "a", 0), ("t", 1, "a", 1)),
        (
            wrong_given("('t', 2) has no replica in the rack of 'a'", ("t", 2, "a", 0)),
            wrong_given("'a' has fewer than 1", ("t", 2, "c", 0), ("t", 0, "c", 1)),
            wrong_given("'c' has fewer than 1", ("t", 2, "b", 0), ("t", 3, "b", 1)),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GIVEN.values(), ids=GIVEN)
def test_a_free_partition_is_given(case: Case) -> None:
    check(case)


def test_a_racks_taker_must_not_have_another_in_its_rack_with_fewer_partitions() -> None:
    two = Facts({m: frozenset({"t"}) for m in "ab"}, {"t": 2}, racks={"a": "r", "b": "r"}, replicas=RACKS)
    right = given("least_in_rack", ("t", 0, "a", 0), ("t", 1, "b", 0))
    check(Case(two, (), right, (wrong_given("'b' has fewer than 1", ("t", 0, "a", 0), ("t", 1, "a", 1)),)))


def test_a_member_that_reaches_its_share_leaves_the_turns_of_the_others_as_they_were() -> None:
    # Shares of three or four; the one that has some already leaves the circle of a, b and c first.
    facts = group({"t": 10}, a="t", b="t", c="t")
    shares = Shares(10, 3)
    b_has_two = (shares, has("b", "t", 0, 1))
    turns = (("t", 2, "a", 0), ("t", 3, "b", 2), ("t", 4, "c", 0), ("t", 5, "a", 1), ("t", 6, "c", 1), ("t", 7, "a", 2))
    check(Case(facts, b_has_two, given("share", *turns, ("t", 8, "c", 2))))
    again = wrong_given("it is not the turn of 'c'", *turns[:4], ("t", 6, "c", 1), ("t", 7, "c", 2))
    check(Case(facts, b_has_two, given("share", *turns), (again,)))
    a_has_one = (shares, has("a", "t", 0))
    turns = (("t", 1, "a", 1), ("t", 2, "b", 0), ("t", 3, "c", 0), ("t", 4, "a", 2), ("t", 5, "b", 1), ("t", 6, "c", 1))
    swapped = wrong_given("it is not the turn of 'c'", *turns[:4], ("t", 6, "c", 1), ("t", 5, "b", 1))
    check(Case(facts, a_has_one, given("share", *turns, ("t", 7, "b", 2), ("t", 8, "c", 2)), (swapped,)))


MOVED = {
    "that evens out": Case(
        ONE, (has("b", "t", 0, 1),), Moved(("t", 0), "b", "a", 2, 0, "balance"),
        (
            ({"source_size": 1}, "the owner had another number"),
            ({"target_size": 1}, "the new owner had another number"),
            ({"unsubscribed": True}, "'a' does or does not subscribe"),
            ({"why": "previous", "moved": ("u", 0), "unsubscribed": True}, "'a' never had it"),
            ({"moved": ("u", 0), "unsubscribed": True}, "'a' does not subscribe"),
            ({"moved": ("u", 0)}, "'a' does or does not subscribe"),
            ({"moved": ("t", 2)}, "'b' does not have ('t', 2)"),
        ),
    ),
    "in place of another one, to a member that subscribes to that one": Case(
        ONE, (has("b", "u", 0, 1),), Moved(("u", 0), "b", "a", 2, 0, "balance", ("t", 1), True),
    ),
    "between members that differ by one, in place of another one": Case(
        ONE, (has("b", "t", 0), has("a", "t", 1)), Moved(("t", 0), "b", "a", 1, 1, "balance", ("t", 3)),
        (({"instead_of": None}, "the move does not even anything out"),),
    ),
    "that does not even out, because the target had it before": Case(
        ONE, (has("b", "t", 0, 1), has("a", "t", 2)), Moved(("t", 0), "b", "a", 2, 1, "previous"),
        (({"why": "balance"}, "the move does not even anything out"),),
    ),
    "in place of the one that the target had before": Case(
        ONE, (has("b", "u", 0, 1),), Moved(("u", 0), "b", "a", 2, 0, "previous", ("t", 0), True),
        (({"instead_of": None}, "'a' never had it"),),
    ),
    "to a member below its share that does not subscribe": Case(
        UNLIKE, (UNLIKE_SHARES, has("b", "u", 0)), Moved(("u", 0), "b", "a", 1, 0, "share", None, True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MOVED.values(), ids=MOVED)
def test_a_partition_moves(case: Case) -> None:
    check(case)
    assert isinstance(case.right, Moved)
    ledger = entered(case)
    assert case.right.moved not in ledger.owned["b"]
    assert case.right.moved in ledger.owned["a"]


def test_moves_are_taken_back_to_what_was_kept_or_given_last() -> None:
    move = Moved(("t", 0), "b", "a", 2, 0, "balance")
    ledger = entered(Case(ONE, (has("b", "t", 0, 1), move), Undone(1)))
    assert (ledger.owned["b"], ledger.size("b"), ledger.size("a")) == ({("t", 0): None, ("t", 1): None}, 2, 0)
    filled = given("fill_topic", ("t", 0, "b", 0), ("t", 1, "b", 1))
    ledger = entered(Case(ONE, (filled, move), Undone(1)))
    assert (list(ledger.owned["b"]), ledger.size("b"), ledger.size("a")) == ([("t", 0), ("t", 1)], 2, 0)


def test_moves_can_be_taken_back_twice() -> None:
    move = Moved(("t", 0), "b", "a", 2, 0, "balance")
    ledger = entered(Case(ONE, (has("b", "t", 0, 1), move, Undone(1), move), Undone(1)))
    assert (list(ledger.owned["b"]), list(ledger.owned["a"])) == ([("t", 0), ("t", 1)], [])


def test_without_a_move_there_is_nothing_to_take_back() -> None:
    with pytest.raises(WrongStepError, match="there is nothing to take back"):
        Undone(1).enter(Ledger(ONE))


def test_a_partition_is_held_back_for_the_one_that_has_it_until_its_owner_gives_it_up() -> None:
    held = HeldBack(((("t", 0), "a", ("b",)), (("t", 1), "b", ())))
    full = (SHARES, has("a", "t", 0, 2), has("b", "t", 1, 3, 4))
    check(
        Case(
            ALIKE, full, held,
            (
                ({"held": ((("t", 0), "a", ("a",)),)}, "'a' never had ('t', 0)"),
                ({"held": ((("t", 0), "b", ("a",)),)}, "'b' does not have ('t', 0)"),
            ),
        )
    )  # fmt: skip
    ledger = entered(Case(ALIKE, full, held))
    assert (ledger.size("a"), ledger.size("b"), ledger.shares) == (1, 2, None)
    never = Facts(ALIKE.topics, ALIKE.counts, claims={"a": ALIKE.claims["a"], "b": frozenset({("t", 0), ("t", 1)})})
    before = (SHARES, has("a", "t", 2, 3), given("share", ("t", 4, "b", 0), ("t", 1, "b", 1)))
    wrong = ({"held": ((("t", 2), "a", ("b",)),)}, "'b' never had ('t', 2)")
    check(Case(never, before, HeldBack(((("t", 1), "b", ("a",)),)), (wrong,)))
    with pytest.raises(WrongStepError, match="'a' has 1, not 2 to 3"):
        entered(Case(ALIKE, (SHARES, has("a", "t", 0)), held))


def test_what_nobody_was_given_returns_to_the_member_that_says_it_has_it() -> None:
    back = GivenBack(((("gone", 0), "a"), (("u", 1), "b")))
    wrong = ({"given": ((("u", 1), "a"),)}, "'a' never had ('u', 1)")
    check(Case(ONE, (), back, (wrong,)))
    assert entered(Case(ONE, (), back)).owned == {"a": {("gone", 0): None}, "b": {("u", 1): None}}
