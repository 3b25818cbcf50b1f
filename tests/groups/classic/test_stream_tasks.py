"""Kafka Streams with the classic protocol: its tasks, and what is said of decisions that nobody can recompute."""

from __future__ import annotations

from typing import Any

import pytest

from assignors import imbalance
from streaming.groups.rows import DriftedPartition
from streaming.records import Member, StreamThread, pack_user_data
from tests.groups.build import Life, make_member, make_observation, make_record, make_topic
from tests.groups.verdicts import verdict_of

# A cooperative rebalance may leave partitions without an owner as long as a rebalance may take.
SETTLED = 5 + 400


def make_thread(name: str, tasks_of: dict[int, tuple[int, ...]], **changes: Any) -> Member:
    """A thread whose subtopology 0 reads the topics a and b, and whose subtopology 1 reads c."""
    reads = {0: ("a", "b"), 1: ("c",)}
    assigned = {topic: numbers for of, numbers in tasks_of.items() for topic in reads[of]}
    tasks = tuple([(str(of), numbers) for of, numbers in tasks_of.items()])
    topics = tuple([(str(of), reads[of]) for of in tasks_of])
    thread = StreamThread(**{"version": 11, "process": name, "active": tasks, "topics": topics} | changes)
    return make_member(name, ("a", "b", "c"), assigned, user_data=pack_user_data(thread))


def decided(*threads: Member, partitions: int = 2) -> Life:
    life = Life()
    shown = [make_topic(name, partitions) for name in ("a", "b", "c")]
    life.take(make_record(5, threads, protocol="stream"), make_observation(10, *shown))
    life.take(make_observation(SETTLED, *shown))
    return life


def test_a_decision_is_unverified_because_no_record_has_the_lags_of_its_tasks() -> None:
    row = verdict_of(decided(make_thread("x", {0: (0,)}), make_thread("y", {0: (1,)})))

    assert (row.verdict, row.reason) == (
        "unverified",
        "Kafka Streams places tasks by the lag of each copy of their state at that moment, which no record has",
    )


def test_a_task_that_is_active_with_two_members_is_drift_though_no_partition_has_two_owners() -> None:
    x, y = make_thread("x", {0: (0,)}), make_thread("y", {0: (0, 1)})
    torn = (
        make_member("x", ("a", "b"), {"a": (0,)}, user_data=x.user_data),
        make_member("y", ("a", "b"), {"a": (1,), "b": (0, 1)}, user_data=y.user_data),
    )

    row = verdict_of(decided(*torn))

    assert (row.verdict, row.basis, row.reason) == ("drifted", "invariant", "task 0_0 is active with two members")
    assert row.drifted_partitions == (
        DriftedPartition("a", 0, "misplaced", None, ("x",)),
        DriftedPartition("b", 0, "misplaced", None, ("y",)),
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"error": 1}, "the leader gave nobody a task: a source topic is missing"),
        ({"error": 9}, "the leader gave nobody a task: error 9"),
        ({"unreadable": "assignment info: it is cut"}, "member 'x': assignment info: it is cut"),
    ],
)
def test_a_decision_without_tasks_says_why(changes: dict[str, Any], reason: str) -> None:
    row = verdict_of(decided(make_thread("x", {}, **changes)))

    assert (row.verdict, row.reason) == ("unverified", reason)


def test_a_record_that_an_older_release_took_in_says_so() -> None:
    member = make_member("x", ("a",), {"a": (0, 1)}, user_data=b"\0\0\0\x0b")

    assert verdict_of(decided(member)).reason == "its tasks were not read: an older release took in its record"


def test_balance_counts_tasks_and_any_member_may_have_any() -> None:
    life = decided(make_thread("x", {0: (0, 1)}), make_thread("y", {1: (0, 1)}), make_thread("z", {}))
    health = life.rows.group_health[-1]

    # By partitions x would have twice as many as y.
    assert (health.imbalance, health.imbalance_optimal) == (imbalance([2, 2, 0]), imbalance([2, 1, 1]))


@pytest.mark.parametrize(
    ("third", "found"),
    [
        (make_thread("z", {}, standby=(("0", (0,)),)), []),
        (make_thread("z", {}), ["1 of 3 members own nothing, there are 2 tasks for 3 members: z"]),
    ],
    ids=["a thread that keeps a copy", "a thread without a task"],
)
def test_a_thread_is_idle_only_where_it_has_no_standby_task_either(third: Member, found: list[str]) -> None:
    life = decided(make_thread("x", {0: (0,)}), make_thread("y", {1: (0,)}), third, partitions=1)

    said = [one.detail for one in life.rows.group_health[-1].findings if one.finding == "idle_members"]
    assert said == found


def test_a_thread_that_waits_for_state_is_not_idle() -> None:
    life = decided(make_thread("x", {0: (0, 1)}), make_thread("y", {1: (0, 1)}), make_thread("z", {}))

    assert "idle_members" not in {one.finding for one in life.rows.group_health[-1].findings}


def test_no_other_strategy_is_tried_because_threads_have_no_other() -> None:
    life = decided(make_thread("x", {0: (0,), 1: (0,)}), make_thread("y", {0: (1,), 1: (1,)}))

    assert life.rows.what_if == []
    assert life.rows.rebalance_churn[-1].partitions_moved_optimal is None
