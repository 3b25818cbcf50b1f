"""What made a group decide again: each difference between what clients decided by then and now, and no other."""

from __future__ import annotations

from streaming.groups.rocketmq.decisions import rocketmq_causes
from streaming.groups.rocketmq.membership import record_of
from streaming.groups.rocketmq.state import DecisionInputs
from streaming.groups.rows import Cause
from streaming.records import Member, MembershipRecord
from tests.groups.rocketmq.world import CIRCLE, TOPIC, A, B, C, Client, D, World, three


def decision(*clients: str) -> MembershipRecord:
    members = tuple(Member(name, None, name, "", -1, -1, None, (), (), None, None, None, ()) for name in clients)
    return record_of(members, 10, 1_000, "AVG")


def causes(
    before: DecisionInputs,
    after: DecisionInputs,
    was: str | tuple[str, ...],
    now: str | tuple[str, ...],
    known: tuple[str, ...] = (),
) -> list[tuple[str, tuple[str, ...], str | None, str | None, str | None]]:
    """Cause, members, topic, before and after."""
    found = rocketmq_causes(before, after, decision(*was), decision(*now), known)
    return [(one.cause, one.members, one.topic, one.before, one.after) for one in found]


def of_members(cause: str, *members: str) -> tuple[str, tuple[str, ...], None, None, None]:
    return cause, members, None, None, None


def test_members_come_and_go_and_those_that_had_not_answered_were_frozen() -> None:
    assert causes(DecisionInputs(silent=("b",)), DecisionInputs(silent=("c", "e")), "abcd", "aef") == [
        of_members("member_joined", "e", "f"),
        of_members("member_gone", "d"),
        of_members("member_frozen", "b", "c"),
    ]


def test_a_member_with_another_start_time_has_joined_again() -> None:
    before, after = (
        DecisionInputs(started={"a": 5, "b": 6, "c": 7, "d": 8}),
        DecisionInputs(started={"a": 5, "b": 9, "c": 8, "e": 9}),
    )
    # c is gone; of d nobody knows now; e is new.
    assert causes(before, after, "abcd", "abde") == [
        of_members("member_joined", "e"),
        of_members("member_gone", "c"),
        of_members("rejoined", "b"),
    ]


def test_a_member_that_tells_its_start_time_for_the_first_time_has_not_joined_again() -> None:
    world = three()
    world.join(Client(D, answer="timeout"))
    world.rebalance()
    assert [(one.cause, one.members) for one in caused(world)] == [("member_joined", (D,))]
    world.clients[D].answer = "ok"
    assert [one.cause for one in caused(world)] == ["settled"]


def test_brokers_leave_routes_and_come_back_or_are_new() -> None:
    before = DecisionInputs(routes={"orders": {"a": 4, "b": 4}, "payments": {"a": 1}})
    after = DecisionInputs(routes={"orders": {"a": 4, "c": 4, "d": 4}, "payments": {"a": 1}})
    assert causes(before, after, "x", "x", known=("a", "b", "d")) == [
        ("broker_down", (), None, "b", None),
        ("broker_up", (), None, None, "d"),
        ("broker_added", (), None, None, "c"),
    ]


def test_queues_change_on_brokers_that_were_there_before_and_are_there_now() -> None:
    before = DecisionInputs(
        routes={"grown": {"a": 4, "b": 4}, "same": {"a": 1, "b": 2}, "gone": {"a": 1}, "emptied": {"b": 2}}
    )
    after = DecisionInputs(
        routes={"grown": {"a": 4, "b": 6}, "same": {"a": 1, "b": 2, "c": 4}, "new": {"a": 1}, "emptied": {}}
    )
    assert causes(before, after, "x", "x", known=("a", "b", "c")) == [
        ("partitions_changed", (), "emptied", "b 2", "0"),
        ("partitions_changed", (), "grown", "a 4, b 4", "a 4, b 6"),
        ("broker_up", (), None, None, "c"),
    ]


def test_subscriptions_of_members_that_told_them_both_times_change() -> None:
    before = DecisionInputs(subscriptions={"a": ("t", "u"), "b": ("t",), "d": ("t",)})
    after = DecisionInputs(subscriptions={"a": ("t", "v"), "b": ("t", "v"), "c": ("w",)})
    # c had told nothing, d tells nothing.
    assert causes(before, after, "abcd", "abcd") == [
        ("subscription_changed", ("a",), "u", "1", "0"),
        ("subscription_changed", ("a", "b"), "v", "0", "2"),
    ]


def test_members_that_run_another_strategy_are_named_by_it() -> None:
    before = DecisionInputs(strategies={"a": "AVG", "b": "AVG", "c": "CONFIG", "d": "AVG", "f": "AVG"})
    after = DecisionInputs(strategies={"a": "CONFIG", "b": "CONFIG", "c": "AVG", "e": "AVG", "f": "AVG"})
    assert causes(before, after, "abcdef", "abcdef") == [
        ("strategy_changed", ("a", "b"), None, "AVG", "CONFIG"),
        ("strategy_changed", ("c",), None, "CONFIG", "AVG"),
    ]


def test_name_servers_differ_and_agree_again() -> None:
    differ, agree = DecisionInputs(poorer=("n1", "n2")), DecisionInputs()
    [found] = rocketmq_causes(agree, differ, decision("a"), decision("a"), ())
    assert (found.cause, found.before, found.after) == ("name_server_differs", "", "n1, n2")
    assert found.evidence == "name servers report different queues"
    [found] = rocketmq_causes(differ, agree, decision("a"), decision("a"), ())
    assert (found.before, found.after) == ("n1, n2", "")
    assert found.evidence == "name servers report the same queues again"


def test_members_are_on_other_lists_or_twice_on_one() -> None:
    routes = {"orders": {"x": 4, "y": 4}}
    before = DecisionInputs(routes, lists={"x": ("a", "b", "c"), "y": ("a", "b", "c"), "z": ("a",), "w": ("a",)})
    after = DecisionInputs(routes, lists={"x": ("a", "b", "c"), "y": ("b", "c", "c", "d"), "z": (), "v": ("b",)})
    # z and w have no queue of the group; d is new, so its lists are.
    assert causes(before, after, "abc", "abcd") == [
        of_members("member_joined", "d"),
        of_members("member_lists_changed", "a", "c"),
    ]
    grown = DecisionInputs({"orders": {"x": 4, "y": 4, "z": 4}}, lists=before.lists)
    assert causes(grown, DecisionInputs(routes, lists={**before.lists, "z": ()}), "abc", "abc") == [
        ("broker_down", (), None, "z", None)
    ]


def test_where_nothing_is_seen_to_differ_clients_have_settled_or_it_came_and_went() -> None:
    assert causes(DecisionInputs(), DecisionInputs(), "ab", "ab") == [("settled", (), None, None, None)]
    # (With members that differ there is always a cause.)
    assert [one[0] for one in causes(DecisionInputs(), DecisionInputs(), "ab", "a")] == ["member_gone"]


def caused(world: World, rounds: int = 2) -> list[Cause]:
    """Causes of the one decision in the next rounds."""
    [churn] = world.round(rounds).rebalance_churn
    return list(churn.causes or ())


def test_a_broker_that_gets_the_topic_gets_the_members_on_its_list_for_that_reason() -> None:
    world = World()
    world.routes = {"n1": {"orders": {"broker-a": 4}}}
    for name in (A, B):
        world.clients[name] = Client(name)
    world.lists = {"broker-a": [A, B], "broker-b": []}
    world.settle()
    world.routes["n1"]["orders"]["broker-b"] = 4
    world.lists["broker-b"] = [A, B]
    world.rebalance()
    assert [(one.cause, one.after) for one in caused(world)] == [("broker_added", "broker-b")]


def test_a_broker_that_was_away_for_some_decisions_is_up_again() -> None:
    world = three()
    del world.routes["n1"]["orders"]["broker-b"]
    world.rebalance()
    assert [(one.cause, one.before) for one in caused(world)] == [("broker_down", "broker-b")]
    world.join(Client(D))
    world.rebalance()
    assert [one.cause for one in caused(world)] == ["member_joined"]
    world.routes["n1"]["orders"]["broker-b"] = 4
    world.rebalance()
    assert [(one.cause, one.after) for one in caused(world)] == [("broker_up", "broker-b")]


def test_five_hundred_brokers_are_remembered_those_that_were_away_for_longest_are_not() -> None:
    world = World()
    names = [f"broker-{number:03}" for number in range(499)]

    def decide(*brokers: str) -> list[tuple[str, str | None]]:
        """Let the topic be on other brokers; causes with the broker that came."""
        world.routes = {"n1": {TOPIC: dict.fromkeys(brokers, 1)}}
        world.rebalance()
        [row] = world.round(2).rebalance_churn
        return [
            (cause.cause, cause.after) for cause in row.causes or () if cause.cause in {"broker_added", "broker_up"}
        ]

    world.join(Client(A))
    decide("oldest")
    decide(*names)
    assert decide("oldest") == [("broker_up", "oldest")]
    decide("one-more")
    # 501 names by now. The first that the second decision had is forgotten, not those that came or were seen later.
    assert decide("oldest", "one-more", names[-1]) == [("broker_up", names[-1]), ("broker_up", "oldest")]
    assert decide(names[0]) == [("broker_added", names[0])]
    assert world.state is not None
    assert world.state.rocketmq is not None
    assert len(world.state.rocketmq.brokers) == 500


def test_a_member_that_starts_again_or_runs_another_strategy_decides_although_it_holds_the_same() -> None:
    world = three()
    world.clients[B].started += 1
    assert [(one.cause, one.members) for one in caused(world)] == [("rejoined", (B,))]
    # (One client of the three: so it holds what it held.)
    world.clients[C].strategy = CIRCLE
    assert [(one.cause, one.members) for one in caused(world)] == [("strategy_changed", (C,))]


def test_what_a_silent_member_told_before_is_no_change_when_it_tells_it_again() -> None:
    world = three()
    world.clients[C].answer = "timeout"
    world.round(3)
    world.join(Client(D))
    world.rebalance(A, B, D)
    assert [one.cause for one in caused(world)] == ["member_joined"]
    world.clients[C].answer = "ok"
    world.rebalance()
    assert [one.cause for one in caused(world)] == ["settled"]


def test_a_member_that_did_not_answer_in_two_rounds_before_it_is_gone_was_frozen() -> None:
    for silent, cause in ((0, "member_gone"), (1, "member_gone"), (2, "member_frozen")):
        world = three()
        world.clients[C].answer = "timeout"
        world.round(silent)
        world.leave(C)
        world.rebalance()
        assert [(one.cause, one.members) for one in caused(world)] == [(cause, (C,))]
