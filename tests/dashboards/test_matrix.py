"""Who owns what beside who should, and other strategies, with hand-written cases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dashboards.boards.owners import MOST_MEMBERS, MOST_ROWS, owners
from dashboards.boards.rebalances import strategies

OFFSET = 100


def member(
    name: str, *partitions: int, topic: str = "t", offset: int = OFFSET, generation: int = 5, incarnation: int = 90
) -> dict[str, Any]:
    given = [{"topic": topic, "partitions": list(partitions)}] if partitions else []
    return {
        "member_id": name,
        "client_id": name,
        "incarnation": incarnation,
        "generation": generation,
        "decision": offset,
        "partitions": given,
        "client_host": None,
    }


def verdict(*drifted: tuple[int, str, str | None, list[str]], kind: str = "drifted", offset: int = OFFSET) -> Any:
    rows = [{"topic": "t", "partition": p, "kind": k, "expected": e, "actual": a} for p, k, e, a in drifted]
    decision = {"decision": offset, "incarnation": 90, "generation": 5, "strategy": "range", "record_time": None}
    return {"verdict": kind, "basis": None, "reason": "why", "drifted_partitions": rows} | decision


def shown(*arguments: Any) -> list[tuple[int, dict[int, str], str | None]]:
    return [(row["partition"], row["cells"], row["kind"]) for row in owners(*arguments)["rows"]]


@pytest.mark.parametrize(
    ("members", "judged", "rows"),
    [
        (
            [member("a", 0, 2), member("b", 1)],
            verdict(kind="identical"),
            [(0, {"a": "ok"}, None), (1, {"b": "ok"}, None), (2, {"a": "ok"}, None)],
        ),
        (
            [member("a", 0), member("b", 1)],
            verdict((1, "misplaced", "a", ["b"])),
            [(0, {"a": "ok"}, None), (1, {"b": "wrong", "a": "expected"}, "misplaced")],
        ),
        (
            [member("a", 0), member("b", 0)],
            verdict((0, "doubly_assigned", None, ["a", "b"])),
            [(0, {"a": "wrong", "b": "wrong"}, "doubly_assigned")],
        ),
        ([member("a")], verdict((3, "unassigned", "a", [])), [(3, {"a": "expected"}, "unassigned")]),
    ],
    ids=["nothing drifted", "misplaced", "two owners", "no owner"],
)
def test_a_partition_shows_who_has_it_and_who_should(members: list[Any], judged: Any, rows: list[Any]) -> None:
    assert shown(members, judged, []) == rows


def test_an_older_verdict_says_nothing_of_a_newer_decision() -> None:
    for changes in ({"generation": 6}, {"incarnation": 101}):
        found = owners([member("a", 0, offset=101, **changes)], verdict((0, "misplaced", "b", ["a"])), [])
        assert [(row["cells"], row["kind"]) for row in found["rows"]] == [({"a": "unjudged"}, None)]
        assert "has no verdict yet" in found["why_not"]


def test_a_static_member_that_came_back_under_another_id_leaves_the_verdict_as_it_is() -> None:
    back = [member("a2", 0, offset=101), member("b", 1)]
    assert shown(back, verdict(kind="identical"), []) == [(0, {"a2": "ok"}, None), (1, {"b": "ok"}, None)]
    members = [*back, member("c", offset=101)]
    assert shown(members, verdict((1, "misplaced", "c", ["b"])), []) == [
        (0, {"a2": "ok"}, None),
        (1, {"b": "wrong", "c": "expected"}, "misplaced"),
    ]
    # The verdict has the member's former id.
    found = owners(members, verdict((1, "misplaced", "a1", ["b"])), [])
    assert [row["cells"] for row in found["rows"]] == [{"a2": "unjudged"}, {"b": "unjudged"}]
    assert found["why_not"].endswith("has left since.")


def test_what_cannot_be_recomputed_shows_owners_only_with_the_reason() -> None:
    found = owners([member("a", 0)], verdict(kind="unverified"), [])
    assert [(row["cells"], row["kind"]) for row in found["rows"]] == [({"a": "unjudged"}, None)]
    assert found["why_not"].endswith("Who should own it cannot be recomputed: why.")


def test_a_subscribed_partition_without_an_owner_has_a_row_and_a_foreign_one_has_none() -> None:
    lag = [{"topic": "t", "partition": 1, "subscribed": True}, {"topic": "u", "partition": 0, "subscribed": False}]
    found = owners([member("a", 0)], verdict(kind="identical"), lag)
    assert [(row["partition"], row["cells"]) for row in found["rows"]] == [(0, {"a": "ok"}), (1, {})]


def test_of_too_many_partitions_and_members_those_that_drifted_are_shown() -> None:
    many = [member(f"m{n:03}", *range(n * 10, n * 10 + 10)) for n in range(100)]
    found = owners(many, verdict((995, "misplaced", "m000", ["m099"]), (990, "misplaced", "m050", ["m099"])), [])
    assert len(found["rows"]) == MOST_ROWS
    assert [row["partition"] for row in found["rows"] if row["kind"]] == [990, 995]
    assert f"{1000 - MOST_ROWS} more partitions are not shown, {100 - MOST_MEMBERS} more members" in found["remark"]
    assert found["remark"].startswith("2 of 1,000 partitions drifted")
    names = [column["member_id"] for column in found["members"]]
    assert len(names) == MOST_MEMBERS
    assert {"m000", "m050", "m099"} <= set(names)


def test_the_legend_names_the_marks_that_are_there_and_no_others() -> None:
    members = [member("a", 0), member("b", 1)]
    assert owners(members, verdict((0, "misplaced", "b", ["a"])), [])["legend"] == ["ok", "wrong", "expected"]
    assert owners(members, verdict(kind="identical"), [])["legend"] == ["ok"]
    assert owners(members, None, [])["legend"] == ["unjudged"]
    # A group without members still has its partitions, but no owners.
    row = {"topic": "t", "partition": 0, "subscribed": True}
    assert owners([], None, [row])["legend"] == []


def test_a_streams_group_shows_tasks_by_subtopology_with_standby_ones_and_the_lag_of_all_that_a_task_reads() -> None:
    tasks = {
        "a": [
            {"kind": "active", "subtopology": "0", "tasks": [0]},
            {"kind": "standby", "subtopology": "0", "tasks": [1]},
        ],
        "b": [
            {"kind": "active", "subtopology": "0", "tasks": [1]},
            {"kind": "warmup", "subtopology": "0", "tasks": [0]},
        ],
    }
    members = [member(name, 0) | {"tasks": of} for name, of in tasks.items()]
    lag = [
        {"topic": topic, "partition": 0, "subtopology": "0", "lag": number, "lag_status": "ok", "subscribed": True}
        for topic, number in (("orders", 3), ("customers", 4))
    ]
    found = owners(members, verdict(kind="identical"), lag)
    cells = {row["partition"]: row["cells"] for row in found["rows"]}
    assert cells == {0: {"a": "ok", "b": "warmup"}, 1: {"a": "standby", "b": "ok"}}
    assert found["rows"][0]["lag"]["lag"] == 7
    assert (found["unit"], found["read"]) == ("task", {"0": ["orders", "customers"]})


def test_a_task_in_two_processes_is_shown_at_both() -> None:
    tasks = [{"kind": "active", "subtopology": "0", "tasks": [0]}]
    members = [member(name) | {"tasks": tasks} for name in ("a", "b")]
    judged = verdict((0, "doubly_assigned", None, ["a", "b"]))
    judged["drifted_partitions"][0]["topic"] = "0"
    assert shown(members, judged, []) == [(0, {"a": "wrong", "b": "wrong"}, "doubly_assigned")]


def test_a_connect_group_shows_connectors_with_their_tasks() -> None:
    found = owners([member("a", -1, 0, topic="sink")], verdict(kind="identical"), [], "connect")
    assert [row["name"] for row in found["rows"]] == ["connector", 0]
    assert found["unit"] == "unit"


def test_a_partition_of_a_share_group_shows_all_its_members() -> None:
    assert shown([member("a", 0), member("b", 0)], verdict(kind="identical"), []) == [(0, {"a": "ok", "b": "ok"}, None)]


NOW = datetime(2026, 11, 21, 14, 10, tzinfo=UTC)


def strategy(
    strategy: str, moves: int | None, imbalance: float | None, *, runs: bool | None = False, **more: Any
) -> Any:
    known = {"library": "java:3.7.1", "partitions_moved_optimal": 2, "imbalance_optimal": 0.0, "reason": None}
    load = {"load_imbalance": None}
    of = {"decision": 12, "record_time": NOW, "generation": 7}
    return {
        "strategy": strategy,
        "runs": runs,
        "configured": None,
        "partitions_moved": moves,
        "imbalance": imbalance,
        **known,
        **load,
        **of,
        **more,
    }


def test_the_balance_by_load_stands_beside_that_by_number_or_the_reason_why_not() -> None:
    known = strategy("range", 1, 0.0, runs=True, load_imbalance=1.5)
    shown = strategies([known, strategy("sticky", 3, 0.0)])
    assert [one["load_imbalance"] for one in shown["rows"]] == [1.5, None]


@pytest.mark.parametrize("protocol", ["share", "streams", "connect"])
def test_where_there_is_nothing_to_compare_with_that_is_the_reason(protocol: str) -> None:
    assert " one " in strategies([], protocol)["none"]
    assert "what-if is turned off" in strategies([], "consumer")["none"]
