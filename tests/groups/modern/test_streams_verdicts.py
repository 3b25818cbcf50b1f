"""Verdicts on streams groups: targets as a real 4.3.1 broker gave them, and some that no assignor gives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assignors.explain import explain_line
from assignors.jsonl import assign_line
from streaming.groups import GroupConfig, unpack_inputs
from streaming.groups.rows import DriftedPartition, DriftRow, MemberTasks
from streaming.records import IdPartitions, InternalTopics
from tests.groups.build import Life
from tests.groups.modern.streams_log import (
    EVERYTHING,
    FIRST_HALF,
    INTERNAL,
    SECOND_HALF,
    SPARE_OF_FIRST,
    SPARE_OF_SECOND,
    StreamsLog,
)
from tests.groups.verdicts import recompute_all


def judged(log: StreamsLog, **round_changes: object) -> list[DriftRow]:
    life = Life()
    rows = life.take(*log.inputs, log.round(**round_changes))  # type: ignore[arg-type]
    recompute_all(rows)
    return rows.drift


def forged(
    a: IdPartitions, b: IdPartitions, a_spare: IdPartitions = SPARE_OF_FIRST, b_spare: IdPartitions = SPARE_OF_SECOND
) -> DriftRow:
    """The verdict on a second decision with other targets than the broker's."""
    log = StreamsLog.begun()
    log.joins("b")
    log.epoch(4)
    log.target("a", a, a_spare)
    log.target("b", b, b_spare)
    log.stands(4)
    return judged(log)[-1]


def test_targets_of_a_real_broker_are_identical_from_the_first_on() -> None:
    log = StreamsLog.joined()
    assert [(row.generation, row.verdict, row.reason, row.matching_library) for row in judged(log)] == [
        (3, "identical", None, "broker:4.2.0"),
        (4, "identical", None, "broker:4.2.0"),
    ]


def test_the_target_after_a_member_has_gone_is_identical() -> None:
    log = StreamsLog.joined()
    log.is_handed_over()
    log.leaves("a")
    log.epoch(5)
    log.target("b", EVERYTHING)
    log.stands(5)
    assert [row.verdict for row in judged(log)] == ["identical"] * 3


def test_since_4_4_members_keep_the_tasks_that_they_own_and_before_it_those_of_their_targets() -> None:
    # Each owns what the other should have: both releases give an even target, so each leaves as it is what it goes by.
    log = StreamsLog.joined()
    log.owns("a", 4, SECOND_HALF, SPARE_OF_SECOND)
    log.owns("b", 4, FIRST_HALF, SPARE_OF_FIRST)
    log.epoch(5)
    log.target("a", SECOND_HALF, SPARE_OF_SECOND)
    log.target("b", FIRST_HALF, SPARE_OF_FIRST)
    log.stands(5)
    log.epoch(6)
    log.stands(6)
    assert [row.matching_library for row in judged(log)[-2:]] == ["broker:4.4.0", "broker:4.2.0"]


@pytest.mark.parametrize(
    ("a", "a_spare", "drifted"),
    [
        ((("0", (0, 1, 2)), ("1", (0, 1))), SPARE_OF_FIRST, ("0", 2, "doubly_assigned", None, ("a", "b"))),
        ((*FIRST_HALF, ("7", (0,))), SPARE_OF_FIRST, ("7", 0, "not_in_topology", None, ("a",))),
        (FIRST_HALF, (("1", (1, 2)),), ("1", 1, "standby_beside_active", None, ("a",))),
    ],
    ids=["active at two members", "not in the topology", "a standby beside its own active task"],
)
def test_a_task_that_breaks_what_every_assignor_keeps_to_is_drift(
    a: IdPartitions, a_spare: IdPartitions, drifted: tuple[Any, ...]
) -> None:
    row = forged(a, SECOND_HALF, a_spare)
    assert (row.verdict, row.basis) == ("drifted", "invariant")
    assert row.drifted_partitions == (DriftedPartition(*drifted),)


@pytest.mark.parametrize(
    ("a", "b", "a_spare"),
    [
        (SECOND_HALF, FIRST_HALF, SPARE_OF_SECOND),
        ((("0", (0, 1, 2)), ("1", (0, 1))), (("0", (3,)), ("1", (2, 3))), SPARE_OF_FIRST),
        (FIRST_HALF, SECOND_HALF, ()),
    ],
    ids=["changed about", "uneven", "without a standby"],
)
def test_a_target_that_no_candidate_gives_is_unverified_and_never_drift(
    a: IdPartitions, b: IdPartitions, a_spare: IdPartitions
) -> None:
    row = forged(a, b, a_spare, SPARE_OF_FIRST if a == SECOND_HALF else SPARE_OF_SECOND)
    assert (row.verdict, row.basis, row.drifted_partitions) == ("unverified", None, ())
    assert (row.reason or "").startswith("no candidate gives it; since Kafka 4.4")


def test_a_left_out_task_is_unverified() -> None:
    row = forged((("0", (0, 1)), ("1", (0, 1))), (("0", (2,)), ("1", (2, 3))))
    assert row.reason == "its target shows 3 tasks of subtopology 0, rounds have seen 4 partitions"


def test_what_the_log_does_not_tell_is_the_reason() -> None:
    log = StreamsLog.begun()
    row = Life().take(*log.inputs[3:], log.round()).drift[0]
    assert row.reason == "the previous target is not known: earlier records of the group may be missing"
    log = StreamsLog()
    log.parts = (("0", (), ("or.*",), ()), ("1", (), (), ("counted",)))
    log.begins()
    assert judged(log)[0].reason == "subtopology 0 reads topics by a regular expression, which the log does not resolve"


def test_topics_that_no_round_shows_leave_a_target_unverified() -> None:
    log = StreamsLog.begun()
    row = Life().take(*log.inputs, log.round(topics=())).drift[0]
    assert row.reason == "no round has shown topic 'orders': its partition count is not known"
    life = Life(GroupConfig(cluster="test", watches_topic=lambda topic: topic != "orders"))
    row = life.take(*log.inputs, log.round(topics=())).drift[0]
    assert row.reason == "topic 'orders' is excluded by the filters: its partition count is not known"


def test_empty_targets_while_topics_are_missing_are_nobody_s_assignment() -> None:
    log = StreamsLog()
    log.joins("a")
    log.topology()
    log.epoch(2, validated=-1)
    log.target("a", ())
    log.stands(2)
    (row,) = judged(log, state="NotReady", counts={"counted": None, "store": None})
    assert (row.verdict, row.reason) == (
        "not_applicable",
        "topics of the topology were missing or wrong, so no assignor gave tasks",
    )


@pytest.mark.parametrize("internal", [(InternalTopics(), InternalTopics((), (0,))), INTERNAL])
def test_a_target_of_kafka_4_1_early_access_is_unverified_even_if_a_later_release_gives_it(internal: Any) -> None:
    log = StreamsLog()
    log.settings, log.internal, log.time = {}, internal, 0
    log.joins("a")
    log.topology()
    log.epoch(1)
    log.target("a", EVERYTHING)
    log.stands(1)
    assert [(row.verdict, row.reason, row.matching_library) for row in judged(log)] == [
        ("unverified", "streams groups of Kafka 4.1 are early access, and not recomputed", None)
    ]


def test_members_show_their_tasks_by_kind() -> None:
    log = StreamsLog.joined()
    rows = Life().take(*log.inputs, log.round()).members
    newest = {row.member_id: row for row in rows if row.generation == 4}
    assert newest["a"].tasks == (
        MemberTasks("active", "0", (0, 1)),
        MemberTasks("active", "1", (0, 1)),
        MemberTasks("standby", "1", (2, 3)),
    )


def test_moves_and_imbalance_count_active_tasks() -> None:
    log = StreamsLog.joined()
    life = Life()
    rows = life.take(*log.inputs, log.round())
    assert [(row.generation, row.joined, row.partitions, row.partitions_moved) for row in rows.rebalance_churn] == [
        (3, ("a",), 8, 0),
        (4, ("b",), 8, 4),
    ]
    assert rows.rebalance_churn[1].partitions_moved_optimal == 4
    assert (rows.group_health[-1].imbalance, rows.group_health[-1].imbalance_optimal) == (0.0, 0.0)


def test_what_the_verdict_used_gives_active_and_standby_tasks_again_and_says_them_in_words() -> None:
    log = StreamsLog.joined()
    row = judged(log)[-1]
    assert row.inputs is not None
    line = json.loads(unpack_inputs(row.inputs))
    assert assign_line(line) == {
        "assignment": {
            "a": [["0", 0], ["0", 1], ["1", 0], ["1", 1]],
            "b": [["0", 2], ["0", 3], ["1", 2], ["1", 3]],
        },
        "standby": {"a": [["1", 2], ["1", 3]], "b": [["1", 0], ["1", 1]]},
    }
    assert explain_line(line).sentences()[1:] == [
        "a keeps 0_0-1; 1_0-1, gives up 0_2-3; 1_2-3.",
        "b gets 0_2-3; 1_2-3.",
        "In all 8 tasks for 2 members, 4 each.",
    ]
