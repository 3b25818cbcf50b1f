"""What-if: each strategy's balance and moves for one group, with hand-written values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assignors import (
    Group,
    Subscription,
    assign,
    from_pairs,
    known_strategies,
    parse_library,
    same,
)
from assignors.jsonl import what_if_line
from assignors.measures import Bounds, Outcome, bounds_of, outcome, settled
from tests.assignors.clients.sticky.members import cooperative, newcomer


def group(*members: str, **counts: int) -> Group:
    """Members that all subscribe to all topics."""
    return Group(tuple(Subscription(member, tuple(counts)) for member in members), counts)


# a and b had three partitions each; c joins.
JOINED = group("a", "b", "c", t=6)
HAD = from_pairs({"a": [("t", 0), ("t", 1), ("t", 2)], "b": [("t", 3), ("t", 4), ("t", 5)]})


def test_range_moves_more_than_needed_when_a_member_joins() -> None:
    result, _ = settled("range", JOINED, HAD)

    assert same(result, assign("range", JOINED))
    # 2 goes to b, 4 and 5 to c.
    assert outcome(JOINED, HAD, result) == Outcome(partitions_moved=3, imbalance=0.0, load_imbalance=None)
    assert bounds_of(JOINED, HAD) == Bounds(partitions_moved_optimal=2, imbalance_optimal=0.0)


# User data of Java's cooperative-sticky: the generation in four bytes, beside the owned partitions.
OF_ANOTHER = Group(
    tuple(
        replace(
            member,
            owned=(("t", tuple(HAD.get(member.member_id, {}).get("t", ()))),),
            generation=3,
            user_data=b"\0\0\0\3",
        )
        for member in JOINED.members
    ),
    JOINED.partitions_per_topic,
)


@pytest.mark.parametrize(
    ("of", "strategy", "library"),
    [
        (JOINED, "sticky", None),
        (JOINED, "cooperative-sticky", None),
        # kafka-python writes what a member owned in a form of its own.
        (JOINED, "sticky", "kafka-python"),
        (JOINED, "cooperative-sticky", "kafka-python"),
        # What another strategy's user data says, sticky does not read.
        (OF_ANOTHER, "sticky", None),
        # A leader that remembers a generation believes what members have now.
        (replace(JOINED, remembered_generation=7), "sticky", "java:3.0"),
        (replace(JOINED, remembered_generation=7), "cooperative-sticky", "java:3.0"),
    ],
)
def test_sticky_strategies_are_told_what_members_have_now(of: Group, strategy: str, library: str | None) -> None:
    result, _ = settled(strategy, of, HAD, None if library is None else parse_library(library))
    assert outcome(of, HAD, result) == Outcome(partitions_moved=2, imbalance=0.0, load_imbalance=None)


def test_a_cooperative_handover_is_followed_to_its_end() -> None:
    assert settled("cooperative-sticky", JOINED, HAD)[1] == 2
    assert settled("cooperative-sticky", group("a", "b", t=6), HAD)[1] == 1
    assert settled("sticky", JOINED, HAD)[1] == 1


@pytest.mark.parametrize("library", ["java:3.0", "java:3.4"])
def test_what_members_got_in_a_first_generation_counts_in_the_next_whatever_the_leader_remembers(library: str) -> None:
    # The leader has decided generation 7, in which b had all four; it keeps two, and a gets the others when b has given
    # them up.
    b = cooperative("b", "t", owned={"t": (0, 1, 2, 3)}, generation=7)
    remembering = Group((newcomer("a", "t"), b), {"t": 4}, 7)
    result, generations = settled("cooperative-sticky", remembering, {}, parse_library(library))

    assert same(result, {"a": {"t": (2, 3)}, "b": {"t": (0, 1)}})
    assert generations == 2


def test_what_members_say_themselves_counts_before_what_they_have() -> None:
    said = Group((Subscription("a", ("t",), owned=(("t", (1,)),), generation=4), Subscription("b", ("t",))), {"t": 2})

    result, _ = settled("cooperative-sticky", said, from_pairs({"a": [("t", 0)], "b": [("t", 1)]}))

    assert same(result, from_pairs({"a": [("t", 1)], "b": [("t", 0)]}))


def test_load_is_balanced_apart_from_partitions() -> None:
    of = group("a", "b", t=4)
    found = outcome(of, {}, assign("range", of), {"t": [9, 1, 1, 1]})

    assert (found.partitions_moved, found.imbalance) == (0, 0.0)
    assert found.load_imbalance == pytest.approx(10 / 6 - 1)


def test_a_group_without_members_has_no_balance() -> None:
    empty = group(t=3)

    assert outcome(empty, HAD, assign("range", empty)) == Outcome(0, None, None)
    assert bounds_of(empty, HAD).imbalance_optimal is None


LINE: dict[str, Any] = {
    "strategy": "range",
    "partitions_per_topic": {"t": 6},
    "members": {member: {"topics": ["t"]} for member in "abc"},
    "current": {"a": [["t", 0], ["t", 1], ["t", 2]], "b": [["t", 3], ["t", 4], ["t", 5]]},
    "load": {"t": [1, 1, 1, 1, 1, 7]},
    "strategies": ["range", "sticky"],
}


def test_a_line_gives_an_object_a_strategy() -> None:
    assert what_if_line(LINE)["range"] == {
        "assignment": {"a": [["t", 0], ["t", 1]], "b": [["t", 2], ["t", 3]], "c": [["t", 4], ["t", 5]]},
        "partitions_moved": 3,
        "partitions_moved_optimal": 2,
        "imbalance": 0.0,
        "imbalance_optimal": 0.0,
        "load_imbalance": pytest.approx(1.0),
        "generations": 1,
    }
    assert what_if_line(LINE)["sticky"]["partitions_moved"] == 2
    assert set(what_if_line(LINE | {"strategies": None})) == set(known_strategies())
    assert what_if_line(LINE | {"load": None})["range"]["load_imbalance"] is None
    assert set(what_if_line(LINE | {"strategies": ["mine"]})["mine"]) == {"error"}


T = "AAAAAAAAAAAAAAAAAAAAAQ"


def test_a_line_for_a_broker_is_told_by_its_topics() -> None:
    answer = what_if_line(
        {
            "topics": {"t": {"id": T, "partitions": 3}},
            "members": {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}},
            "current": {"a": [[T, 2]], "b": [[T, 0], [T, 1]]},
        }
    )

    assert set(answer) == {"server-range", "server-uniform"}
    assert answer["server-uniform"]["assignment"] == {"a": [[T, 2]], "b": [[T, 0], [T, 1]]}
    assert answer["server-uniform"]["partitions_moved"] == 0
    assert answer["server-range"]["partitions_moved"] == 3
    assert answer["server-range"]["partitions_moved_optimal"] == 0


def queues(*numbers: int) -> list[dict[str, Any]]:
    return [{"topic": "t", "broker": "b", "queue": number} for number in numbers]


def test_a_line_for_rocketmq_is_told_by_its_queues() -> None:
    question = {
        "queues": queues(0, 1, 2, 3),
        "clients": ["a", "b"],
        "current": {"a": queues(0, 1, 2, 3)},
        "load": [1, 1, 1, 3],
        "options": {"consumeridcs": [], "message_queue_list": queues(0, 9)},
    }
    answer = what_if_line(question)

    assert set(answer) == {
        f"rocketmq:{name}" for name in ("AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "CONSISTENT_HASH")
    }
    assert answer["rocketmq:AVG"] == {
        "assignment": {"a": queues(0, 1), "b": queues(2, 3)},
        "partitions_moved": 2,
        "partitions_moved_optimal": 2,
        "imbalance": 0.0,
        "imbalance_optimal": 0.0,
        "load_imbalance": pytest.approx(4 / 3 - 1),
        "generations": 1,
    }
    assert answer["rocketmq:CONFIG"]["assignment"] == {"a": queues(0, 9), "b": queues(0, 9)}
    assert answer["rocketmq:MACHINE_ROOM"]["imbalance"] is None
    odd = what_if_line(question | {"strategies": ["rocketmq:MINE", "rocketmq:MACHINE_ROOM_NEARBY-AVG"]})
    assert [set(told) for told in odd.values()] == [{"error"}, {"error"}]
    assert "error" in what_if_line(question | {"queues": [], "load": None})["rocketmq:AVG"]["assignment"]["a"]


def test_a_strategy_of_rocketmq_that_is_too_large_to_compute_has_the_reason_and_the_others_their_results() -> None:
    question = {"queues": queues(0), "clients": ["a", "b", "c"], "current": {}}
    question |= {"options": {"virtual_node_cnt": 1_000_000}, "strategies": ["rocketmq:CONSISTENT_HASH", "rocketmq:AVG"]}
    told = what_if_line(question)
    assert told["rocketmq:CONSISTENT_HASH"] == {"error": "more than 2000000 virtual nodes: not recomputed"}
    assert told["rocketmq:AVG"]["assignment"]["a"] == queues(0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"current": None}, "Expected `object`, got `null` - at `$.current`"),
        ({"current": {"a": [["t"]]}}, "length 2"),
        ({"current": {"a": [["t", 1 << 31]]}}, "Expected `int`"),
        ({"current": {"a": [["t" * 8_192, 0]]}}, "length <= 8191"),
        ({"load": {"t": [1]}}, "Expected 6 numbers for the load of topic 't'."),
        ({"load": {"t": [1, 1, 1, 1, 1, -1]}}, "Expected `float` >= 0.0"),
        ({"load": {"t": [1, 1, 1, 1, 1, 1e101]}}, "Expected `float` <= 1e+100"),
        ({"load": {"u": []}}, "topic 'u'"),
        ({"strategies": "range"}, "Expected `array | null`, got `str`"),
        ({"members": {"a": {}}}, "missing required field `topics`"),
        ({"library": "java:x"}, "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_line_is_its_answer(change: dict[str, Any], reason: str) -> None:
    assert reason in what_if_line(LINE | change)["error"]


def test_the_longest_name_the_outermost_numbers_and_the_largest_load_are_answered() -> None:
    name = "日" * 8_191
    gone = [[name, (1 << 31) - 1], [name, -(1 << 31)]]
    answer = what_if_line(LINE | {"current": {"a": gone}, "load": {"t": [1e100] * 6}, "strategies": ["sticky"]})

    assert (answer["sticky"]["partitions_moved"], answer["sticky"]["load_imbalance"]) == (0, pytest.approx(0))


def test_a_line_must_say_what_is_owned_now() -> None:
    assert "`current`" in what_if_line({key: value for key, value in LINE.items() if key != "current"})["error"]
    assert set(what_if_line([])) == {"error"}
