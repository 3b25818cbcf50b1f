"""Rebalances: one row per decision, with the changes."""

from __future__ import annotations

import pytest

from streaming.groups.rows import ReplacedMember
from streaming.records import GroupInput, Member
from tests.groups.build import (
    GROUP,
    LOG_PARTITION,
    SECOND,
    START,
    Life,
    decisions_of,
    even,
    make_cooperative,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)


def static(member_id: str, *partitions: int) -> Member:
    return make_member(member_id, ("x",), {"x": partitions}, group_instance_id="i1")


def owned(record: int, generation: int, protocol: str = "range", **partitions: tuple[int, ...]) -> GroupInput:
    """A generation whose members, by name, own these partitions of topic x."""
    members = [make_member(name, ("x",), {"x": of} if of else {}) for name, of in partitions.items()]
    return make_record(record, members, generation=generation, protocol=protocol)


def in_handover(record: int, generation: int, member_id: str, *of_b: int) -> GroupInput:
    members = static(member_id, 0), make_member("b", ("x",), {"x": of_b} if of_b else {})
    return make_record(record, members, generation=generation, protocol="cooperative-sticky")


UNREAD = make_member("b", None, {"x": (1, 2, 3)}, undecodable="subscription: cut")
CUT = make_member("a", ("x",), None, undecodable="assignment: cut")
WORKER = make_member("w", None, assigned=None)
UNKNOWN = {"joined": None, "partitions_moved": None, "partitions_moved_optimal": None, "previous_generation": None}


@pytest.mark.parametrize(
    ("inputs", "columns"),
    [
        pytest.param(
            [make_record(3, generation=0, protocol_type="")],
            {
                "kind": "created",
                "generation": 0,
                "previous_generation": None,
                "members": 0,
                "joined": (),
                "left": (),
                "partitions_moved": 0,
                "strategy": None,
                "leader": None,
            },
            id="a join that wrote nothing else creates a group",
        ),
        pytest.param(
            [make_record(5, even("x", 3, "a", "b"))],
            {
                "cluster": "test",
                "group_id": GROUP,
                "log_partition": LOG_PARTITION,
                "decision": 5,
                "record_time": START + 5 * SECOND,
                "join_completed_time": START + 5 * SECOND - 20,
                "kind": "rebalance",
                "revision": 1,
                "incarnation": 5,
                "generation": 1,
                "protocol_type": "consumer",
                "strategy": "range",
                "leader": "a",
                "members": 2,
                "partitions": 3,
                "joined": ("a", "b"),
                "left": (),
            },
            id="a row tells the decision",
        ),
        pytest.param([make_record(5, state_time=-1)], {"join_completed_time": None}, id="the join's end is not told"),
        pytest.param([make_record(5, state_time=0)], {"join_completed_time": 0}, id="the join ended at 0"),
        pytest.param(
            [make_record(5, even("x", 3, "a", "b")), make_record(9, even("x", 3, "b", "c"), generation=2)],
            {"joined": ("c",), "left": ("a",), "previous_generation": 1, "generations_skipped": 0, "follows": None},
            id="who joined and who left",
        ),
        # 1 moved from a to b, 2 from b to c; one move (to c) would have been enough.
        pytest.param(
            [owned(5, 1, a=(0, 1), b=(2,)), owned(9, 2, a=(0,), b=(1,), c=(2,))],
            {"partitions_moved": 2, "partitions_moved_optimal": 1},
            id="moves are partitions that changed hands",
        ),
        pytest.param(
            [make_record(5, even("x", 3, "a", "b")), make_record(9, generation=2)],
            {"kind": "became_empty", "left": ("a", "b"), "members": 0, "partitions_moved": 0},
            id="a group without members became empty",
        ),
        pytest.param(
            [make_record(5, even("x", 3, "a"), generation=3), make_record(9, even("x", 3, "a"), generation=7)],
            {"previous_generation": 3, "generations_skipped": 3},
            id="skipped generations are counted",
        ),
        pytest.param(
            [make_record(5, even("x", 3, "a"), generation=8), make_record(9, even("x", 3, "b"), generation=1)],
            {
                "kind": "rebalance",
                "incarnation": 9,
                "previous_generation": None,
                "generations_skipped": None,
                "joined": ("b",),
                "left": (),
            },
            id="a lower generation begins a new incarnation",
        ),
        pytest.param(
            [make_record(5, even("x", 3, "a")), make_record(9, even("x", 3, "b"))],
            {"kind": "rebalance", "incarnation": 9},
            id="the same generation with other members is a new incarnation",
        ),
        pytest.param(
            [make_record(5, even("x", 3, "a")), make_tombstone(7), make_record(9, even("x", 3, "a"), generation=2)],
            {"incarnation": 9, "previous_generation": None, "partitions_moved": None, "left": ()},
            id="a group deleted and made again is a new incarnation",
        ),
        pytest.param(
            [make_record(5, (static("old", 0),)), make_record(9, (static("new", 0),))],
            {
                "kind": "static_replacement",
                "generation": 1,
                "incarnation": 5,
                "generations_skipped": 0,
                "replaced": (ReplacedMember("i1", "old", "new"),),
                "joined": (),
                "left": (),
                "partitions_moved": 0,
            },
            id="a static member's return is no rebalance",
        ),
        pytest.param(
            [
                make_record(5, (static("old", 0, 1),)),
                make_record(9, (static("new", 0), make_member("b", ("x",), {"x": (1,)})), generation=2),
            ],
            {
                "kind": "rebalance",
                "joined": ("b",),
                "left": (),
                "partitions_moved": 1,
                "replaced": (ReplacedMember("i1", "old", "new"),),
            },
            id="a static member that returns in a rebalance neither joined nor left",
        ),
        pytest.param(
            [
                make_record(5, (make_member("a", ("x", "y"), {"x": (0,), "y": (0,)}),), protocol="cooperative-sticky"),
                owned(9, 2, "cooperative-sticky", a=(0,)),
            ],
            {"partitions_pending_handover": 0},
            id="a topic that nobody wants any more is not in transfer",
        ),
        pytest.param(
            [owned(5, 1, a=(0, 1)), owned(9, 2, a=(0,))],
            {"partitions_pending_handover": 0},
            id="an eager strategy that leaves a partition out transfers nothing",
        ),
        pytest.param(
            [make_record(5, even("x", 3, "a", "b"), generation=41)],
            UNKNOWN,
            id="what was before the first record after compaction is unknown",
        ),
        pytest.param(
            [make_record(5, even("x", 3, "a")), make_record(9, (CUT,), generation=2)],
            {"partitions_moved": None, "partitions_moved_optimal": None, "partitions": 0},
            id="an undecodable assignment leaves moves unknown",
        ),
        pytest.param(
            [
                make_record(5, even("x", 4, "a", "b")),
                make_record(9, (make_member("a", ("x",), {"x": (0,)}), UNREAD), generation=2),
            ],
            {"partitions": 4, "partitions_moved": 1, "partitions_moved_optimal": None},
            id="an undecodable subscription hides neither partitions nor moves",
        ),
        pytest.param(
            [make_record(5, (make_member("b", ("x",), {"x": (0, 1)}), CUT))],
            {"partitions": 2, "partitions_moved": None},
            id="partitions count as far as assignments decode",
        ),
        pytest.param(
            [
                make_cooperative(5, 1, a=(0, 1, 2, 3)),
                make_record(
                    9, (make_member("a", ("x",), {"x": (0,)}), UNREAD), generation=2, protocol="cooperative-sticky"
                ),
            ],
            {"partitions_pending_handover": 0},
            id="nothing is pending where all is given on",
        ),
        pytest.param(
            [
                make_cooperative(5, 1, a=(0, 1, 2, 3, 4)),
                make_record(9, (make_member("a", (), {}), UNREAD), generation=2, protocol="cooperative-sticky"),
            ],
            {"partitions_pending_handover": 2},
            id="a topic of a member whose subscription is unknown is still handed over",
        ),
        pytest.param(
            [make_record(5, (WORKER,), protocol_type="connect", protocol="sessioned")],
            {"kind": "rebalance", "members": 1, "partitions": 0, "partitions_moved": None},
            id="a Connect group has churn without partitions",
        ),
        *(
            pytest.param(
                [
                    make_record(5, even("x", 3, "a"), generation=-(2**31)),
                    make_record(9, even("x", 3, "a"), generation=generation),
                ],
                {"generations_skipped": skipped},
                id=f"generation {generation} fits the columns",
            )
            for generation, skipped in ((-(2**31), 0), (2**31 - 1, 2**31 - 1))
        ),
        # Whether an unseen generation may have begun a handover.
        *(
            pytest.param(
                [make_cooperative(5, generation, a=(0,)), make_cooperative(9, generation + 1, **second)],
                {"partitions_moved": moved},
                id=name,
            )
            for name, generation, second, moved in (
                ("nothing came before the group's first generation", 1, {"a": (0,), "b": (1,)}, 0),
                ("partition 1 may have had an owner in generation 1", 2, {"a": (0,), "b": (1,)}, None),
                ("partition 1 alone may have had one", 2, {"b": (1,)}, None),
                ("no partition without an owner was assigned", 2, {"a": (0,), "b": ()}, 0),
            )
        ),
    ],
)
def test_the_row_of_a_decision_says_what_it_changed(inputs: list[GroupInput], columns: dict[str, object]) -> None:
    row = decisions_of(*inputs)[-1]
    assert {name: getattr(row, name) for name in columns} == columns


@pytest.mark.parametrize(
    ("inputs", "columns"),
    [
        pytest.param(
            [
                make_cooperative(5, 1, a=(0, 1, 2)),
                make_cooperative(9, 2, a=(0, 1), b=()),
                make_cooperative(11, 3, a=(0, 1), b=(2,)),
            ],
            {
                "kind": ["rebalance"] * 3,
                "partitions_pending_handover": [0, 1, 0],
                "partitions_moved": [0, 0, 1],
                "partitions_moved_optimal": [0, None, 1],
                "follows": [None, None, 9],
            },
            id="a cooperative rebalance takes two generations and a move counts once",
        ),
        pytest.param(
            [
                make_cooperative(5, 1, a=(0, 1)),
                make_cooperative(9, 2, a=(0,), b=()),
                make_cooperative(11, 3, a=(0, 1)),
            ],
            {"partitions_moved": [0, 0, 0]},
            id="a partition given up and given back has not moved",
        ),
        pytest.param(
            [
                make_cooperative(5, 1, a=(0, 1)),
                make_cooperative(9, 2, a=(0,), b=()),
                make_cooperative(11, 3, a=(0,), b=(), c=()),
                make_cooperative(13, 4, a=(0,), b=(), c=(1,)),
            ],
            {
                "partitions_moved": [0, 0, 0, 1],
                "partitions_pending_handover": [0, 1, 1, 0],
                "follows": [None, None, 9, 11],
            },
            id="a transfer over three generations is one move from first to last owner",
        ),
        pytest.param(
            [
                *(make_cooperative(5, 1, old=(0, 1)), in_handover(9, 2, "old")),
                *(in_handover(10, 2, "new"), in_handover(11, 3, "new", 1)),
            ],
            {
                "kind": ["rebalance", "rebalance", "static_replacement", "rebalance"],
                "follows": [None, None, None, 9],
                "partitions_moved": [0, 0, 0, 1],
            },
            id="a static member's return in the middle of a handover does not follow it",
        ),
        pytest.param(
            [
                owned(5, 1, "stream", a=(0, 1)),
                owned(9, 2, "stream", a=(0,), b=()),
                owned(11, 3, "stream", a=(0,), b=(1,)),
            ],
            {"partitions_moved": [0, 0, 1]},
            id="an unknown strategy may hand over in two steps",
        ),
        pytest.param(
            [
                *(owned(5, 1, a=(0, 1), b=(2, 3)), owned(9, 2, a=(0, 1, 2, 3), b=(0, 1, 2, 3))),
                *(owned(13, 3, a=(0, 2), b=(1, 3)), owned(17, 4, a=(1, 2), b=(0, 3))),
            ],
            {"partitions_moved": [0, 0, 0, 2], "partitions": [4, 4, 4, 4]},
            id="a partition with two owners has not moved while one of them stays",
        ),
    ],
)
def test_a_move_counts_once_however_many_generations_it_takes(
    inputs: list[GroupInput], columns: dict[str, list[object]]
) -> None:
    rows = decisions_of(*inputs)
    assert {name: [getattr(row, name) for row in rows] for name in columns} == columns


def storm(first: int, last: int) -> list[GroupInput]:
    """A generation every second."""
    return [make_record(number, even("x", 2, "a", "b"), generation=number) for number in range(first, last + 1)]


def test_of_decisions_that_pile_up_without_a_round_the_newest_get_a_verdict() -> None:
    # A group that rebalances for twenty minutes while the probe is down.
    life = Life.after(*storm(1, 1_200))
    assert len(life.state.classic.waiting) == 64
    rows = life.take(make_observation(1_300, make_topic("x", 2)))
    assert len({row.decision for row in life.rows.rebalance_churn}) == 1_200
    assert [(row.generation, row.verdict) for row in rows.drift] == [(n, "identical") for n in range(1_137, 1_201)]


def test_another_assignment_under_the_same_generation_is_judged_like_any_other() -> None:
    life = Life.after(make_record(5, even("x", 4, "a", "b"), generation=5), make_observation(10, make_topic("x", 4)))
    twice = (make_member("a", ("x",), {"x": (0, 1, 2)}), make_member("b", ("x",), {"x": (2,)}))
    life.take(make_record(15, twice, generation=5), make_observation(20, make_topic("x", 4)))
    assert [(row.decision, row.kind) for row in life.rows.rebalance_churn] == [(5, "rebalance"), (15, "rebalance")]
    assert [(row.decision, row.verdict) for row in life.rows.drift] == [(5, "identical"), (15, "drifted")]
