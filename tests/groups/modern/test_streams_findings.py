"""Findings about streams groups: what is reported, since which round, and what is not because it may be on its way."""

from __future__ import annotations

from tests.groups.build import Life
from tests.groups.modern.streams_log import (
    FIRST_HALF,
    SECOND_HALF,
    SPARE_OF_FIRST,
    SPARE_OF_SECOND,
    UNREVOKED,
    StreamsLog,
)

HOUR_S = 3_600


def findings_of(life: Life) -> list[tuple[str, str]]:
    return [(one.finding, one.detail) for one in life.rows.group_health[-1].findings]


def running() -> tuple[StreamsLog, Life]:
    """A group of two members that has reached its target, and a round that found nothing."""
    log = StreamsLog.joined()
    log.is_handed_over()
    life = Life.after(*log.inputs, log.round())
    assert (life.rows.group_health[-1].state, findings_of(life)) == ("Stable", [])
    log.inputs.clear()
    return log, life


def without_tasks() -> tuple[StreamsLog, Life]:
    """It has lost all tasks, because its topology is not valid."""
    log, life = running()
    log.epoch(5, validated=-1)
    for name in ("a", "b"):
        log.target(name, ())
    log.stands(5)
    for name in ("a", "b"):
        log.owns(name, 5, ())
    return log, life


def goes_on(log: StreamsLog, life: Life, after: int = 0, **changes: object) -> list[tuple[str, str]]:
    life.take(*log.inputs, log.round(after, **changes))  # type: ignore[arg-type]
    log.inputs.clear()
    log._offset += 1
    return findings_of(life)


def test_members_that_are_waited_for_are_named_until_they_have_their_target() -> None:
    log = StreamsLog.joined()
    log.owns("a", 3, FIRST_HALF, state=UNREVOKED, revoking=SECOND_HALF)
    life = Life()
    assert goes_on(log, life) == [("reconciling", "2 of 2 members have not reached epoch 4: a, b")]
    log.owns("a", 4, FIRST_HALF, SPARE_OF_FIRST)
    assert goes_on(log, life) == [("reconciling", "1 of 2 members have not reached epoch 4: b")]
    log.owns("b", 4, SECOND_HALF, SPARE_OF_SECOND)
    assert goes_on(log, life) == []


def test_a_task_on_its_way_has_no_owner_only_after_the_rebalance_timeout() -> None:
    log = StreamsLog.joined()
    log.owns("a", 4, FIRST_HALF, SPARE_OF_FIRST)
    life = Life()
    for _ in range(3):
        assert [name for name, _ in goes_on(log, life)] == ["reconciling"]
    late = 5 * 60
    goes_on(log, life, late)
    assert goes_on(log, life, late)[0] == ("unassigned", "tasks without an owner: 0_2, 0_3, 1_2 and 1 more")


def test_a_task_in_no_target_has_no_owner_from_the_second_round_on() -> None:
    log, life = running()
    log.epoch(5)
    log.target("b", (("0", (2,)), ("1", (2, 3))), SPARE_OF_SECOND)
    log.stands(5)
    log.owns("a", 5, FIRST_HALF, SPARE_OF_FIRST)
    log.owns("b", 5, (("0", (2,)), ("1", (2, 3))), SPARE_OF_SECOND)
    assert goes_on(log, life) == []
    assert goes_on(log, life) == [("unassigned", "tasks without an owner: 0_3")]


def test_a_task_active_at_two_members_is_no_hand_over() -> None:
    log, life = running()
    log.owns("a", 4, (("0", (0, 1, 2)), ("1", (0, 1))), SPARE_OF_FIRST)
    assert goes_on(log, life) == [("doubly_owned", "tasks active at two members: 0_2 at a, b")]


def test_a_task_that_one_gives_up_while_another_has_it_is_a_hand_over() -> None:
    log, life = running()
    log.owns("a", 4, FIRST_HALF, SPARE_OF_FIRST, revoking=(("0", (2,)),))
    assert goes_on(log, life) == []


def test_a_standby_in_the_process_of_its_active_task_is_found() -> None:
    log = StreamsLog.joined(process="process-a")
    log.is_handed_over()
    life = Life()
    detail = "1_2 in process process-a, 1_3 in process process-a, 1_0 in process process-a and 1 more"
    assert goes_on(log, life) == [
        ("standby_beside_active", f"standby tasks in the process that runs the active task: {detail}")
    ]


def test_a_member_without_any_task_is_idle_and_one_with_a_standby_is_not() -> None:
    log, life = running()
    log.joins("c")
    log.epoch(5)
    log.target("c", ())
    log.stands(5)
    log.owns("a", 5, FIRST_HALF, SPARE_OF_FIRST)
    log.owns("b", 5, SECOND_HALF, SPARE_OF_SECOND)
    log.owns("c", 5, ())
    assert goes_on(log, life) == [
        ("idle_members", "1 of 3 members have no task, there are 8 active tasks for 3 members: c")
    ]
    log.epoch(6)
    log.target("b", SECOND_HALF)
    log.target("c", (), SPARE_OF_SECOND)
    log.stands(6)
    for name, active, spare in (("a", FIRST_HALF, SPARE_OF_FIRST), ("b", SECOND_HALF, ()), ("c", (), SPARE_OF_SECOND)):
        log.owns(name, 6, active, spare)
    assert goes_on(log, life) == []


def test_a_warm_up_is_long_after_an_hour_and_not_before() -> None:
    log, life = running()
    log.owns("b", 4, SECOND_HALF, SPARE_OF_SECOND, warmup=(("1", (1,)),))
    assert goes_on(log, life) == []
    assert goes_on(log, life, HOUR_S - 60) == []
    assert goes_on(log, life, HOUR_S + 60) == [("long_warmup", "warm-up tasks that do not catch up: 1_1 at b")]
    log.owns("b", 4, SECOND_HALF, SPARE_OF_SECOND)
    assert goes_on(log, life, HOUR_S + 90) == []


def test_missing_topics_are_named_from_the_second_round_on() -> None:
    log, life = without_tasks()
    gone = {"counts": {"orders": None}, "state": "NotReady"}
    assert goes_on(log, life, **gone) == []
    assert goes_on(log, life, **gone) == [
        ("missing_topics", "the topology needs topics that do not exist: orders (source)")
    ]
    assert life.rows.group_health[-1].state == "NotReady"


def test_internal_topics_with_wrong_partition_counts_are_named() -> None:
    log, life = without_tasks()
    grown = {"counts": {"orders": 6}, "state": "NotReady"}
    goes_on(log, life, **grown)
    found_then = goes_on(log, life, **grown)
    assert ("wrong_partition_counts", "internal topics with a wrong partition count: counted (needs 6, has 4)") in (
        found_then
    )


def test_the_log_alone_shows_that_a_topology_is_not_ready() -> None:
    log, life = without_tasks()
    goes_on(log, life, state=None)
    assert life.rows.group_health[-1].state == "NotReady"


def test_a_topology_that_is_not_ready_says_so_where_rounds_do_not_show_why() -> None:
    log, life = without_tasks()
    assert goes_on(log, life, state="NotReady") == []
    assert goes_on(log, life, state="NotReady") == [
        (
            "topology_not_ready",
            "the coordinator has not found all topics of the topology right, so nobody gets a task",
        )
    ]
