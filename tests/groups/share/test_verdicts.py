"""Verdicts on share groups, and how their targets are measured; expected targets are the real class's."""

from __future__ import annotations

import json

import msgspec
import pytest

from assignors.jsonl import assign_line
from streaming.groups.rows import ChurnRow, DriftRow
from streaming.groups.verdict_inputs import unpack_inputs
from tests.groups.build import Life
from tests.groups.coordinator import TOPIC, Written
from tests.groups.modern_log import read
from tests.groups.share.share_log import (
    ALL,
    BILLS,
    FIRST,
    READY,
    TWO,
    epoch,
    gone,
    member,
    observation,
    owns,
    stands,
    state,
    target,
)


def judged(*log: Written) -> list[DriftRow]:
    return Life.after(*read(log), observation(60)).rows.drift


def churn(*log: Written) -> list[ChurnRow]:
    return Life.after(*read(log), observation(60)).rows.rebalance_churn


def test_each_target_is_recomputed_from_the_initialized_partitions_and_the_target_before() -> None:
    rows = judged(*TWO)

    assert [(row.verdict, row.matching_library) for row in rows] == [("identical", "broker:4.2.0")] * 3
    assert {row.basis for row in rows} == {None}


def test_the_inputs_of_a_verdict_give_its_target_again() -> None:
    (*_, row) = judged(*TWO)
    assert row.inputs is not None

    answer = assign_line(json.loads(unpack_inputs(row.inputs)))

    assert {name: [number for _, number in of] for name, of in answer["assignment"].items()} == {
        "a": [2, 3],
        "b": [0, 1],
    }


ONE, BOTH = {TOPIC: (0,)}, {**ALL, BILLS: (0, 1)}
SHARED = [member("a", "orders"), state(ONE), epoch(1), target("a", ONE), stands(1), member("b", "orders"), epoch(2)]
SECOND_JOINS = [*READY, member("b", "orders"), epoch(3)]

NONE_FITS = (
    "no candidate gives it; custom assignors, some member orders and brokers before 4.2 (preview) are not recomputed"
)

# The log, and the newest verdict: verdict, reason and matching library.
VERDICTS: dict[str, tuple[list[Written], tuple[str, str | None, str | None]]] = {
    # "a" hashes to partition 1 and "b" to 2; then each keeps up to two, and the rest is dealt in turn.
    "the target of a broker of 4.1, a preview, is unverified": (
        [*SECOND_JOINS, target("a", {TOPIC: (0, 1, 3)}), target("b", {TOPIC: (2,)}), stands(3)],
        ("unverified", NONE_FITS, None),
    ),
    "several members of a partition are no drift": (
        [*SHARED, target("b", ONE), stands(2)],
        ("identical", None, "broker:4.2.0"),
    ),
    "a target that no release gives is unverified": (
        [*SECOND_JOINS, target("a", ONE), target("b", {TOPIC: (1,)}), stands(3)],
        ("unverified", NONE_FITS, None),
    ),
    # The real class of 4.2 halves orders, and leaves bills with a.
    "what Kafka leaves of a topic that nobody subscribes to any more is no drift": (
        [
            *(member("a", "orders", "bills"), state(BOTH), epoch(1), target("a", BOTH), stands(1)),
            *(member("a", "orders"), member("b", "orders", "nowhere"), epoch(2)),
            *(target("a", {TOPIC: (2, 3), BILLS: (0, 1)}), target("b", {TOPIC: (0, 1)}), stands(2)),
        ],
        ("identical", None, "broker:4.2.0"),
    ),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_a_target_is_judged_by_the_simple_assignor(case: str) -> None:
    log, expected = VERDICTS[case]
    (*_, row) = judged(*log)
    assert (row.verdict, row.reason, row.matching_library) == expected


def test_a_partition_of_a_topic_to_which_only_others_subscribe_is_drift() -> None:
    log = [
        *READY,
        state(BOTH),
        member("b", "bills"),
        epoch(3),
        target("a", BOTH),
        target("b", {BILLS: (0,)}),
        stands(3),
    ]
    (*_, row) = judged(*log)

    assert (row.verdict, row.basis) == ("drifted", "invariant")
    assert [(of.topic, of.partition, of.kind, of.actual) for of in row.drifted_partitions] == [
        ("bills", 0, "not_subscribed", ("a",)),
        ("bills", 1, "not_subscribed", ("a",)),
    ]


def test_a_topic_that_is_gone_by_the_round_proves_nothing() -> None:
    log = [*READY, state(BOTH), member("b", "bills"), epoch(3), target("a", BOTH), target("b", {}), stands(3)]
    shown = observation(60)
    life = Life.after(*read(log), msgspec.structs.replace(shown, topics=shown.topics[:1]))

    assert life.rows.drift[-1].verdict == "unverified"


def test_a_log_that_is_read_from_the_middle_gives_no_verdict_at_first() -> None:
    rows = judged(*TWO[8:])

    assert {row.verdict for row in rows} == {"unverified"}
    assert rows[0].reason == "the previous target is not known: earlier records of the group may be missing"


def test_a_share_moves_where_one_member_loses_what_another_gets() -> None:
    log = [*TWO, *gone("b"), epoch(4), target("a", ALL), stands(4)]

    rows = churn(*log)

    # The first has nothing, the second gets all, b takes two over, and gives them back.
    assert [row.partitions_moved for row in rows] == [0, 0, 2, 2]
    assert {(row.partitions_moved_optimal, row.protocol_type) for row in rows} == {(None, "share")}


def test_more_members_of_a_partition_are_no_move() -> None:
    one = {TOPIC: (0,)}
    log = [member("a", "orders"), state(one), epoch(1), target("a", one), stands(1), member("b", "orders"), epoch(2)]

    assert [row.partitions_moved for row in churn(*log, target("b", one), stands(2))] == [0, 0]


def test_a_target_after_initialization_says_that_it_is_why() -> None:
    (_, row) = churn(*READY)

    assert [(one.cause, one.topic, one.before, one.after) for one in row.causes] == [
        ("partitions_changed", "orders", "0", "4")
    ]
    assert row.causes[0].evidence == "the group has initialized other partitions than before"


@pytest.mark.parametrize(
    ("targets", "imbalance", "optimal"),
    [
        ({"a": {TOPIC: (0, 1)}, "b": {TOPIC: (2, 3)}}, 0.0, 0.0),
        ({"a": {TOPIC: (0, 1, 2)}, "b": {TOPIC: (3,)}}, 0.5, 0.0),
        ({"a": {TOPIC: (0, 1)}, "b": {TOPIC: (2,)}}, 1 / 3, 1 / 3),
    ],
)
def test_imbalance_is_about_partitions_a_member(
    targets: dict[str, dict[bytes, tuple[int, ...]]], imbalance: float, optimal: float
) -> None:
    changed = [target(name, assigned) for name, assigned in targets.items()]
    life = Life.after(*read([*READY, member("b", "orders"), epoch(3), *changed, stands(3)]), observation(60))

    row = life.rows.group_health[-1]
    assert (row.imbalance, row.imbalance_optimal) == (pytest.approx(imbalance), pytest.approx(optimal))


def test_members_are_shown_with_names_that_only_the_group_s_own_record_has() -> None:
    shown = observation(60)
    life = Life.after(
        *read([*FIRST, state(ALL), epoch(2), target("a", ALL), stands(2), owns("a", 2, ALL)]),
        msgspec.structs.replace(shown, topics=()),
    )

    row = life.rows.members[-1]
    assert [(of.topic, tuple(of.partitions)) for of in row.partitions or ()] == [("orders", (0, 1, 2, 3))]
