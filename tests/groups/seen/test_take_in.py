"""Groups whose log is not read: what two looks at their members tell, and what stays unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streaming.records import GroupObservation, Member, Seen, SeenClassic, SeenCommits, SeenModern
from tests.groups.build import (
    SECOND,
    START,
    Life,
    declared,
    even,
    make_commit,
    make_look,
    make_member,
    make_observation,
)
from tests.groups.connect.workers import WorkerRecord, connector, decision
from tests.groups.seen.looks import BROKERED, X, broker, classic, last, member, two_looks


def test_a_decision_is_numbered_by_its_round_and_made_between_two_looks() -> None:
    life = two_looks(classic(*even("x", 2, "a")), classic(*even("x", 2, "a", "b")))
    row = last(life)
    assert (row.source, row.decision, row.generation, row.leader, row.log_partition) == ("admin", 3, None, None, None)
    assert (row.decided_time_min, row.decided_time_max) == (START + SECOND, START + 3 * SECOND + SECOND // 2)
    assert (row.joined, row.left, row.partitions_moved, row.kind) == (("b",), (), 1, "rebalance")
    assert row.unassigned_partition_seconds_max is None
    assert [(verdict.decision, verdict.verdict) for verdict in life.rows.drift] == [(1, "identical"), (3, "identical")]


def seen(second: int, *members: Member, **changes: Any) -> GroupObservation:
    return make_look(second, BROKERED, classic=classic(*members) if members else None, **changes)


def static(member_id: str, *partitions: int) -> Member:
    return make_member(member_id, ("x",), {"x": partitions}, group_instance_id="i1")


ONE, TWO = even("x", 2, "a"), even("x", 2, "a", "b")
OWNING = make_member("a", topics=("x",), assigned={"x": (0, 1)}, subscription_version=3, generation=4)
REJOINED = msgspec.structs.replace(OWNING, generation=5)

# Looks, how many decisions they show, and columns of the newest decision's row.
DECIDED: dict[str, tuple[list[GroupObservation], int, dict[str, Any]]] = {
    "what was before the first look is not known": (
        [seen(1, *ONE)],
        1,
        {"joined": None, "partitions_moved": None, "decided_time_min": None, "causes": ["unknown"]},
    ),
    "a group that the round before did not list has its first members": (
        [seen(3, *TWO, absent_at=START + SECOND)],
        1,
        {"joined": ("a", "b"), "partitions_moved": 0, "decided_time_min": START + SECOND},
    ),
    # At a heartbeat members are told again.
    "a look without members says that nothing has changed": (
        [seen(1, *ONE), seen(3), seen(5, *ONE), seen(7, *TWO)],
        2,
        {"decided_time_min": START + 5 * SECOND},
    ),
    "a round that has not looked at the membership says nothing of it": (
        [seen(1, *ONE), make_observation(3, BROKERED, log_partition=-1, seen=Seen("admin")), seen(5, *TWO)],
        2,
        {"decided_time_min": START + SECOND},
    ),
    "the order of members alone is no decision": ([seen(1, *TWO), seen(3, *reversed(TWO))], 1, {}),
    "a rebalance that changes nothing shows where members tell what they owned": (
        [seen(1, OWNING), seen(3, REJOINED)],
        2,
        {"causes": ["rejoined"]},
    ),
    "a static member's return": (
        [seen(1, static("old", 0, 1)), seen(3, static("new", 0, 1))],
        2,
        {"kind": "static_replacement"},
    ),
    "beside another change it is a rebalance": (
        [seen(1, static("old", 0, 1)), seen(3, static("new", 0), make_member("b", ("x",), {"x": (1,)}))],
        2,
        {"kind": "rebalance"},
    ),
    "a group that rebalances keeps its members until it is stable again": (
        [seen(1, *ONE), seen(3, state="PreparingRebalance"), seen(5, *TWO)],
        2,
        {"joined": ("b",), "decided_time_min": START + 3 * SECOND},
    ),
    "a classic group of the name of a broker's group is no migration": (
        [broker(1, 1, member("z", 0, 1)), seen(3, *ONE)],
        2,
        {"kind": "rebalance", "incarnation": 3},
    ),
    "nor is a broker's group of the name of a classic one": (
        [seen(1, *ONE), broker(3, 1, member("z", 0, 1))],
        2,
        {"kind": "rebalance", "incarnation": 3},
    ),
    "a group goes on under the new protocol where one of its members does": (
        [seen(1, *TWO), broker(3, 1, member("a", 0, 1))],
        2,
        {"kind": "migration", "left": ("b",), "incarnation": 1},
    ),
}


@pytest.mark.parametrize("case", DECIDED)
def test_a_decision_is_what_two_looks_show_of_it(case: str) -> None:
    looks, count, columns = DECIDED[case]
    life = Life.after(*looks)
    assert life.state.rebalances is not None
    row = last(life)
    told = {"causes": [cause.cause for cause in row.causes or ()]}
    assert {name: told.get(name, getattr(row, name)) for name in columns} == columns
    assert len(life.rows.rebalance_churn) == count


def test_the_earliest_time_of_a_decision_is_unknown_if_the_clock_was_ahead_at_the_look_before() -> None:
    life = Life()
    made = []
    for second, ahead, members in ((10, 3_600, "a"), (20, 3_600, "ab"), (30, 0, "a"), (40, 0, "ab"), (50, 0, "a")):
        at = START + (second + ahead) * SECOND
        told = classic(*even("x", 2, *members))
        life.take(make_look(second, X, classic=told, time=at, elapsed=second * SECOND))
        made.append(last(life).decided_time_min)
    assert made == [None, START + 3_610 * SECOND, None, START + 30 * SECOND, START + 40 * SECOND]


def test_a_decision_s_earliest_time_is_not_after_its_own_where_the_clock_went_back_during_the_round() -> None:
    life = Life.after(make_look(10, X, classic=classic(*even("x", 2, "a"))))
    later = {"time": START + 9_800, "closed": START + 10_300, "elapsed": 20 * SECOND}
    life.take(make_look(20, X, classic=classic(*even("x", 2, "a", "b")), **later))
    assert last(life).decided_time_min == START + 10 * SECOND
    assert life.state.classic.current.earliest == START + 9_800


A, B = even("x", 2, "a", "b")
WRONG = msgspec.structs.replace(A, assigned=B.assigned), msgspec.structs.replace(B, assigned=A.assigned)


def test_a_wrong_assignment_is_drift_where_no_order_of_members_matters() -> None:
    life = two_looks(classic(A), classic(*WRONG), configured=declared("java"))
    assert life.rows.drift[-1].verdict == "drifted"
    met = Life(configured=declared("java"))
    met.take(make_look(3, X, classic=classic(*WRONG)))
    assert met.rows.drift[-1].verdict == "unverified"
    assert "met with this assignment" in (met.rows.drift[-1].reason or "")


def test_a_wrong_assignment_is_unverified_where_the_order_of_members_may_matter() -> None:
    life = two_looks(
        classic(A, protocol="sticky"), classic(*WRONG, protocol="sticky"), configured=declared("java:3.7.1")
    )
    verdict = life.rows.drift[-1]
    assert verdict.verdict == "unverified"
    assert (verdict.reason or "").startswith("no candidate fits in the orders of members that were tried")
    static = [msgspec.structs.replace(m, group_instance_id=f"i-{m.member_id}") for m in (A, *WRONG)]
    returns = two_looks(classic(static[0]), classic(*static[1:]), configured=declared("java"))
    assert "static member's return" in (returns.rows.drift[-1].reason or "")


def test_a_wrong_assignment_by_range_is_unverified_where_static_and_dynamic_members_are_mixed() -> None:
    # Kafka-python does not sort them then. A broken invariant would be drift: here each partition has one owner.
    mixed = msgspec.structs.replace(WRONG[0], group_instance_id="i-a"), WRONG[1]
    first = msgspec.structs.replace(A, group_instance_id="i-a")
    verdict = two_looks(classic(first), classic(*mixed), configured=declared("kafka-python:1.0")).rows.drift[-1]
    assert (verdict.decision, verdict.verdict) == (3, "unverified")
    assert (verdict.reason or "").startswith("no candidate fits in the orders of members that were tried")


def test_a_broken_invariant_is_drift_whenever_it_was_made() -> None:
    both = [make_member(name, topics=("x",), assigned={"x": (0, 1)}) for name in ("a", "b")]
    life = Life.after(make_look(1, X, classic=classic(*both)))
    assert {p.kind for p in life.rows.drift[-1].drifted_partitions} == {"doubly_assigned"}


def test_members_that_are_gone_leave_an_empty_group() -> None:
    life = Life.after(make_look(1, X, classic=classic(*even("x", 2, "a"))), make_look(3, X, state="Empty"))
    assert (last(life).kind, last(life).decision, last(life).left) == ("became_empty", 3, ("a",))
    assert life.rows.group_health[-1].verdict_reason == "the group is empty"
    assert [(row.member_id, row.decision, row.ended) for row in life.rows.members] == [("a", 1, False), ("a", 3, True)]
    life.take(make_look(5, X, classic=classic(*even("x", 2, "b"))))
    assert (last(life).joined, last(life).decided_time_min) == (("b",), START + 3 * SECOND)


def test_a_rebalance_is_stuck_only_after_any_usual_timeout() -> None:
    life = Life.after(make_look(1, X, classic=classic(*even("x", 2, "a"))))
    for number in range(10, 1_010, 10):
        life.take(make_look(number, X, state="PreparingRebalance"))
    found = [
        number.round
        for number in life.rows.group_health
        if any(f.finding == "stuck_rebalance" for f in number.findings)
    ]
    assert found
    assert 900 < min(found) <= 930


def test_members_too_large_to_tell_are_counted_and_unverified() -> None:
    life = Life.after(
        make_look(1, X, classic=classic(*even("x", 2, "a"))),
        make_look(3, X, classic=SeenClassic("consumer", "range", (), more=5_000)),
    )
    row = life.rows.group_health[-1]
    assert (row.members, row.verdict) == (5_000, "unverified")
    assert "5,000 members" in (row.verdict_reason or "")
    assert [(m.member_id, m.ended) for m in life.rows.members] == [("a", False), ("a", True)]


def test_connect_workers_are_judged_by_what_rounds_see_of_them() -> None:
    workers = decision(5, {"w1": WorkerRecord(ran=connector("files", 0))}).members
    life = Life()
    told = classic(*workers, protocol="sessioned", protocol_type="connect")
    life.take(make_look(1, classic=told, protocol_type="connect"))
    assert life.rows.group_health[-1].verdict == "identical"
    assert [(m.member_id, m.partition_count) for m in life.rows.members] == [("w1", 2)]


def test_a_group_that_was_too_large_for_a_while_is_known_again_from_its_second_decision_on() -> None:
    life = Life.after(make_look(1, BROKERED, classic=classic(*even("x", 2, "a"))), broker(3, 1, member("z", 0, 1)))
    too_large = SeenModern(1, 1, "uniform", (), more=5_000)
    life.take(make_look(5, BROKERED, modern=too_large, group_type="consumer"))
    life.take(broker(7, 2, member("y", 0, 1, epoch=2)))
    assert (last(life).incarnation, last(life).joined) == (7, None)
    life.take(broker(9, 3, member("y", 0, epoch=3), member("w", 1, epoch=3)))
    assert (last(life).incarnation, last(life).joined, last(life).partitions_moved) == (7, ("w",), 1)


@pytest.mark.parametrize("at", range(1, 6))
def test_the_rows_do_not_depend_on_how_the_looks_were_cut(at: int) -> None:
    looks = [
        make_look(1, BROKERED, classic=classic(*even("x", 2, "a")), commits=SeenCommits(True, {"x": ((0, 5),)})),
        make_look(3, BROKERED, classic=classic(*even("x", 2, "a", "b"))),
        make_look(5, BROKERED, state="PreparingRebalance", commits=SeenCommits(False, {"x": ((0, 9),)})),
        broker(7, 6, member("a", 0, epoch=6), member("b", 1, epoch=6)),
        broker(9, 7, member("a", 0, 1, epoch=7)),
        make_look(11, gone="deleted", looked=False),
    ]
    whole, cut = Life(), Life()
    whole.take(*looks)
    cut.take(*looks[:at])
    cut.take(*looks[at:])
    assert cut.rows == whole.rows
    assert cut.state == whole.state is None


def test_a_group_whose_log_is_no_longer_read_begins_again() -> None:
    life = Life.after(
        make_commit(5, 90, topic="x"), make_observation(10, X), make_look(20, X, classic=classic(*even("x", 2, "a")))
    )
    assert [(row.source, row.committed_offset) for row in life.rows.lag] == [
        ("log", 90),
        ("admin", None),
        ("admin", None),
    ]
