"""Why a RocketMQ group decided again."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups.rocketmq.kind import rocketmq_causes
from streaming.groups.rocketmq.round import record_of
from streaming.groups.rocketmq.state import DecisionInputs
from streaming.groups.rows import Cause
from streaming.records import Member, MembershipRecord
from tests.groups.rocketmq.world import CIRCLE, A, B, C, Client, D, World, three


def decision(*clients: str) -> MembershipRecord:
    members = tuple(Member(name, None, name, "", -1, -1, None, (), (), None, None, None, ()) for name in clients)
    return record_of(members, 10, 1_000, "AVG")


def causes(
    before: DecisionInputs,
    after: DecisionInputs,
    was: str | tuple[str, ...],
    now: str | tuple[str, ...],
) -> list[tuple[str, tuple[str, ...], str | None, str | None, str | None]]:
    """Cause, members, topic, before and after."""
    found = rocketmq_causes(before, after, decision(*was), decision(*now))
    return [(one.cause, one.members, one.topic, one.before, one.after) for one in found]


def of_members(cause: str, *members: str) -> tuple[str, tuple[str, ...], None, None, None]:
    return cause, members, None, None, None


ON_X_AND_Y = {"orders": {"x": 4, "y": 4}}
LISTED = {"x": ("a", "b", "c"), "y": ("a", "b", "c"), "z": ("a",), "w": ("a",)}

# What clients decided by before and after, the members before and after, and the causes.
CAUSES: dict[str, tuple[DecisionInputs, DecisionInputs, str, str, list[Any]]] = {
    "members come and go": (
        *(DecisionInputs(), DecisionInputs(), "abcd", "aef"),
        [of_members("member_joined", "e", "f"), of_members("member_gone", "b", "c", "d")],
    ),
    # c is gone; of d nobody knows now, of f nobody knew before; e is new.
    "a member with another start time has joined again": (
        DecisionInputs(started={"a": 5, "b": 6, "c": 7, "d": 8}),
        DecisionInputs(started={"a": 5, "b": 9, "c": 8, "e": 9, "f": 9}),
        *("abcdf", "abdef"),
        [of_members("member_joined", "e"), of_members("member_gone", "c"), of_members("rejoined", "b")],
    ),
    "brokers leave routes and come up": (
        DecisionInputs(routes={"orders": {"a": 4, "b": 4}, "payments": {"a": 1}}),
        DecisionInputs(routes={"orders": {"a": 4, "c": 4, "d": 4}, "payments": {"a": 1}}),
        *("x", "x"),
        [
            ("broker_down", (), None, "b", None),
            ("broker_up", (), None, None, "c"),
            ("broker_up", (), None, None, "d"),
        ],
    ),
    "queues change on brokers that were there before and are there now": (
        DecisionInputs(
            routes={"grown": {"a": 4, "b": 4}, "same": {"a": 1, "b": 2}, "gone": {"a": 1}, "emptied": {"b": 2}}
        ),
        DecisionInputs(
            routes={"grown": {"a": 4, "b": 6}, "same": {"a": 1, "b": 2, "d": 4}, "new": {"a": 1}, "emptied": {}}
        ),
        *("x", "x"),
        [
            ("partitions_changed", (), "emptied", "b 2", "0"),
            ("partitions_changed", (), "grown", "a 4, b 4", "a 4, b 6"),
            ("broker_up", (), None, None, "d"),
        ],
    ),
    # c had told nothing, d tells nothing.
    "subscriptions of members that told them both times change": (
        DecisionInputs(subscriptions={"a": ("t", "u"), "b": ("t",), "d": ("t",)}),
        DecisionInputs(subscriptions={"a": ("t", "v"), "b": ("t", "v"), "c": ("w",)}),
        *("abcd", "abcd"),
        [
            of_members("subscription_changed", "a", "b"),
        ],
    ),
    "members that run another strategy are named by it": (
        DecisionInputs(strategies={"a": "AVG", "b": "AVG", "c": "CONFIG", "d": "AVG", "f": "AVG"}),
        DecisionInputs(strategies={"a": "CONFIG", "b": "CONFIG", "c": "AVG", "e": "AVG", "f": "AVG"}),
        *("abcdef", "abcdef"),
        [
            ("strategy_changed", ("a", "b"), None, "AVG", "CONFIG"),
            ("strategy_changed", ("c",), None, "CONFIG", "AVG"),
        ],
    ),
    # z and w have no queue of the group; d is new, so its lists are.
    "members are on other lists, or twice on one": (
        DecisionInputs(ON_X_AND_Y, lists=LISTED),
        DecisionInputs(ON_X_AND_Y, lists={"x": ("a", "b", "c"), "y": ("b", "c", "c", "d"), "z": (), "v": ("b",)}),
        *("abc", "abcd"),
        [of_members("member_joined", "d"), of_members("member_lists_changed", "a", "c")],
    ),
    "a broker that is gone has no list": (
        DecisionInputs({"orders": {"x": 4, "y": 4, "z": 4}}, lists=LISTED),
        DecisionInputs(ON_X_AND_Y, lists={**LISTED, "z": ()}),
        *("abc", "abc"),
        [("broker_down", (), None, "z", None)],
    ),
    "a broker that gets the topic gets the members on its list for that reason": (
        DecisionInputs(ON_X_AND_Y, lists={**LISTED, "z": ()}),
        DecisionInputs({"orders": {"x": 4, "y": 4, "z": 4}}, lists=LISTED),
        *("abc", "abc"),
        [("broker_up", (), None, None, "z")],
    ),
    "where nothing is seen to differ clients have settled": (
        *(DecisionInputs(), DecisionInputs(), "ab", "ab"),
        [("settled", (), None, None, None)],
    ),
    "with members that differ there is always a cause": (
        *(DecisionInputs(), DecisionInputs(), "ab", "a"),
        [of_members("member_gone", "b")],
    ),
}


@pytest.mark.parametrize("case", CAUSES)
def test_a_cause_is_a_difference_between_what_clients_decided_by(case: str) -> None:
    before, after, was, now, expected = CAUSES[case]
    assert causes(before, after, was, now) == expected


def test_name_servers_differ_and_agree_again() -> None:
    differ, agree = DecisionInputs(poorer=("n1", "n2")), DecisionInputs()
    [found] = rocketmq_causes(agree, differ, decision("a"), decision("a"))
    assert (found.cause, found.before, found.after) == ("name_server_differs", "", "n1, n2")
    assert found.evidence == "name servers report different queues"
    [found] = rocketmq_causes(differ, agree, decision("a"), decision("a"))
    assert (found.before, found.after) == ("n1, n2", "")
    assert found.evidence == "name servers report the same queues again"


def caused(world: World, rounds: int = 2) -> list[Cause]:
    """Causes of the one decision in the next rounds."""
    [churn] = world.round(rounds).rebalance_churn
    return list(churn.causes or ())


def test_a_member_that_starts_again_or_runs_another_strategy_decides_although_it_holds_the_same() -> None:
    world = three()
    world.clients[B].started += 1
    assert [(one.cause, one.members) for one in caused(world)] == [("rejoined", (B,))]
    # One client of the three: so it holds what it held.
    world.clients[C].strategy = CIRCLE
    assert [(one.cause, one.members) for one in caused(world)] == [("strategy_changed", (C,))]


@pytest.mark.parametrize(
    ("later_ms", "cause"), [(0, ("settled", ())), (1, ("rejoined", (C,)))], ids=["the same", "started again"]
)
def test_a_member_that_was_silent_at_a_decision_is_compared_with_what_it_told_before(
    later_ms: int, cause: tuple[str, tuple[str, ...]]
) -> None:
    world = three()
    world.clients[C].answer = "timeout"
    world.round(3)
    world.join(Client(D))
    world.rebalance(A, B, D)
    assert [one.cause for one in caused(world)] == ["member_joined"]
    world.clients[C].answer = "ok"
    world.clients[C].started += later_ms
    world.rebalance()
    assert [(one.cause, one.members) for one in caused(world)] == [cause]
