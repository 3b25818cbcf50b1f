"""Rows about Connect groups: who runs what, what moved, what is missing, and nothing that is a topic's."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.records import Connector, GroupInput, SeenConnectors
from tests.groups.build import SECOND, Life, make_commit, make_member, make_record, make_topic
from tests.groups.connect.workers import TIMEOUT, Cluster, WorkerRecord, connector, decision, seen, url

FILES, DB = connector("files", 0, 1), connector("db", 0)
DELAY = 300


def findings(life: Life) -> dict[str, str]:
    return {one.finding: one.detail for one in life.rows.group_health[-1].findings}


def lost_worker() -> tuple[Cluster, Life]:
    """A worker that ran `db` is gone, and the leader waits for it; its decision is at 4 s."""
    cluster, life = Cluster({"a": [], "b": []}), Life()
    life.take(cluster.decide({"a": FILES, "b": DB}, {}), seen(3))
    del cluster.running["b"]
    life.take(cluster.decide({}, {}, delay=DELAY * SECOND), seen(5))
    return cluster, life


def test_each_worker_has_a_row_with_its_url_and_what_it_runs() -> None:
    life = Life.after(decision(5, {"a": WorkerRecord(ran=FILES, start=[("db", 0)], stop=[("files", 0)])}), seen(10))
    (row,) = life.rows.members
    assert (row.member_id, row.client_host, row.subscription, row.partition_count) == ("a", url("a"), None, 3)
    assert [(of.topic, of.partitions) for of in row.partitions or ()] == [("files", (-1, 1)), ("db", (0,))]
    health = life.rows.group_health[-1]
    assert (health.members, health.assigned_partitions, health.strategy) == (1, 3, "sessioned")


def test_a_move_between_workers_counts_once_and_points_to_where_it_began() -> None:
    cluster, life = Cluster({"a": []}), Life()
    life.take(cluster.decide({"a": [*FILES, *DB]}, {}))
    cluster.running["b"] = []
    taken = frozenset(DB)
    life.take(cluster.decide({}, {"a": taken}))
    life.take(cluster.decide({"b": DB}, {}), seen(10))
    first, second, third = life.rows.rebalance_churn
    assert (first.partitions_moved, first.joined) == (0, ("a",))
    assert (second.partitions_moved, second.partitions_pending_handover, second.joined) == (0, 2, ("b",))
    assert (third.partitions_moved, third.partitions_pending_handover, third.follows) == (2, 0, second.decision)
    assert third.rebalance_protocol == "cooperative"
    assert [cause.cause for cause in third.causes or ()] == ["handover"]


def test_added_tasks_are_the_cause_of_a_rebalance() -> None:
    cluster, life = Cluster({"a": []}), Life()
    life.take(cluster.decide({"a": DB}, {}), cluster.decide({"a": [("db", 1)]}, {}), seen(10))
    (cause,) = life.rows.rebalance_churn[-1].causes or ()
    assert (cause.cause, cause.topic, cause.before, cause.after) == ("partitions_changed", "db", "2", "3")


NOBODY = "unassigned"
OF_DB = "connector db, task db-0"
NEVER_RAN = {NOBODY: f"configured in topic connect-configs, and run by nobody: {OF_DB}"}
NO_REBALANCE = {
    NOBODY: f"run by nobody, and no rebalance follows, though the scheduled delay of 300 s has passed: {OF_DB}"
}
FILES_CONFIGURED, DB_CONFIGURED = Connector("files", 2, "STARTED"), Connector("db", 1, "STARTED")
BOTH = (FILES_CONFIGURED, DB_CONFIGURED)
FEWER = (Connector("files", 1, "STARTED"), DB_CONFIGURED)
STATES = (Connector("files", 1, "PAUSED"), Connector("db", 1, "STOPPED"), Connector("log", -1, "STARTED"))
RUNS_FILES = decision(5, {"a": WorkerRecord(ran=FILES)})
LATE = 11 + DELAY + TIMEOUT


def shows(position: int, *connectors: Connector, **changes: Any) -> GroupInput:
    """A round that shows this configuration."""
    return seen(position, connectors=SeenConnectors("connect-configs", connectors), **changes)


def again(at: int) -> GroupInput:
    """A rebalance that leaves files where it is."""
    return decision(at, {"a": WorkerRecord(ran=FILES)}, generation=2)


# Inputs, and the findings of the newest round.
FOUND: dict[str, list[tuple[list[GroupInput], dict[str, str]]]] = {
    "a worker that has not read the configuration of its last assignment is behind": [
        (
            [
                decision(
                    5,
                    {"a": WorkerRecord(ran=FILES, read=12, before=12), "b": WorkerRecord(ran=DB, read=7, before=12)},
                    offset=12,
                ),
                seen(10),
            ],
            {
                "worker_behind": "joined without the configuration of the assignment before (config offsets): "
                "http://b:8083/ at 7, its assignment at 12"
            },
        ),
        ([seen(10 + TIMEOUT)], {}),
    ],
    "workers that run nothing are idle once the group has settled": [
        ([decision(5, {"a": WorkerRecord(ran=FILES), "b": WorkerRecord()}), seen(10)], {}),
        (
            [seen(6 + TIMEOUT)],
            {"idle_members": "1 of 2 workers run nothing of 3 units (connectors and their tasks): http://b:8083/"},
        ),
    ],
    "what is configured and never ran is missing after a rebalance timeout": [
        ([RUNS_FILES, shows(10, *BOTH), shows(10 + TIMEOUT, *BOTH)], {}),
        ([shows(11 + TIMEOUT, *BOTH)], NEVER_RAN),
        ([shows(12 + TIMEOUT, FILES_CONFIGURED)], {}),
    ],
    "a connector that is new gets the whole time": [
        ([RUNS_FILES, shows(10, FILES_CONFIGURED), shows(100, *BOTH), shows(100 + TIMEOUT, *BOTH)], {}),
    ],
    "so does a decision that is new": [
        (
            [
                *(RUNS_FILES, shows(10, *BOTH), again(10 + TIMEOUT), shows(11 + TIMEOUT, *BOTH)),
                shows(11 + 2 * TIMEOUT, *BOTH),
            ],
            {},
        ),
        ([shows(12 + 2 * TIMEOUT, *BOTH)], NEVER_RAN),
    ],
    "nothing is missing while the leader waits or the workers rebalance": [
        (
            [
                decision(5, {"a": WorkerRecord(ran=FILES)}, delay=DELAY * SECOND),
                *(shows(10, *BOTH), shows(LATE - 1, *BOTH), shows(LATE, *BOTH, state="PreparingRebalance")),
            ],
            {},
        ),
        ([shows(LATE + 1, *BOTH)], NEVER_RAN),
    ],
    "a stopped connector has no tasks to run and a paused one has": [
        (
            [
                decision(5, {"a": WorkerRecord(ran=[("files", -1), ("db", -1), ("log", -1)])}),
                *(shows(10, *STATES), shows(11 + TIMEOUT, *STATES)),
            ],
            {NOBODY: "configured in topic connect-configs, and run by nobody: task files-0"},
        ),
    ],
    "what runs and is not configured is a finding": [
        (
            [RUNS_FILES, shows(10, *FEWER), shows(11 + TIMEOUT, *FEWER)],
            {"no_such_partition": "run, though topic connect-configs does not configure them: task files-1"}
            | NEVER_RAN,
        ),
    ],
    "a topic of another group misses nothing": [
        (
            [RUNS_FILES, shows(10, DB_CONFIGURED), shows(11 + TIMEOUT, DB_CONFIGURED)],
            {
                "no_such_partition": "nothing that runs is configured in topic connect-configs, is it this group's? "
                "connector files, task files-0, task files-1"
            },
        ),
    ],
    "without the topic nothing is said of what never ran": [
        ([RUNS_FILES, shows(10, *BOTH), seen(300)], {}),
        ([shows(301, *BOTH)], {}),
    ],
}


@pytest.mark.parametrize("case", FOUND)
def test_a_finding_holds_as_long_as_rounds_show_it(case: str) -> None:
    life = Life()
    for inputs, expected in FOUND[case]:
        for one in inputs:
            life.take(one)
        assert findings(life) == expected


def test_what_a_lost_worker_ran_is_missing_only_when_the_delay_is_over_and_no_rebalance_came() -> None:
    _, life = lost_worker()
    waits = f"run by nobody, waiting for at most 300 s, in case the worker that ran it comes back: {OF_DB}"
    assert findings(life) == {"partitions_pending_handover": waits}
    life.take(shows(6, *BOTH), shows(4 + DELAY + TIMEOUT, *BOTH))
    assert NOBODY not in findings(life)
    life.take(shows(5 + DELAY + TIMEOUT, *BOTH))
    assert findings(life) == NO_REBALANCE


def test_what_a_lost_worker_ran_is_given_to_another_after_the_delay() -> None:
    cluster, life = lost_worker()
    life.take(cluster.decide({"a": DB}, {}), seen(1_000))
    assert findings(life) == {}
    row = life.rows.rebalance_churn[-1]
    assert (row.partitions_moved, row.partitions_pending_handover, life.rows.drift[-1].verdict) == (2, 0, "identical")


def test_what_was_deleted_is_not_missing() -> None:
    cluster, life = Cluster({"a": []}), Life()
    life.take(cluster.decide({"a": [*FILES, *DB]}, {}), cluster.decide({}, {"a": frozenset(DB)}), seen(5))
    assert list(findings(life)) == ["partitions_pending_handover"]
    life.take(cluster.decide({}, {}), seen(1_000))
    assert findings(life) == {}


def test_what_a_leader_could_not_assign_is_said_once() -> None:
    life = Life.after(
        decision(5, {"a": WorkerRecord(read=8, before=8)}, error=1, offset=9),
        shows(10, FILES_CONFIGURED),
        shows(11 + TIMEOUT, FILES_CONFIGURED),
    )
    assert list(findings(life)) == ["assignment_error"]


def test_connectors_and_tasks_are_each_dealt_evenly_so_one_worker_may_have_one_more_of_both() -> None:
    one_more = {
        "a": WorkerRecord(ran=[("x", -1), ("y", -1), ("x", 0), ("y", 0)]),
        "b": WorkerRecord(ran=[("z", -1), ("z", 0)]),
    }
    life = Life.after(decision(5, one_more), seen(10))
    health = life.rows.group_health[-1]
    assert (round(health.imbalance or 0, 3), round(health.imbalance_optimal or 0, 3)) == (0.333, 0.333)
    uneven = {"a": WorkerRecord(ran=FILES), "b": WorkerRecord()}
    health = Life.after(decision(5, uneven), seen(10)).rows.group_health[-1]
    assert (health.imbalance, round(health.imbalance_optimal or 0, 3)) == (1.0, 0.333)


def test_a_connector_with_a_topics_name_owns_nothing_of_the_topic() -> None:
    life = Life.after(
        decision(5, {"a": WorkerRecord(ran=connector("orders", 0, 1))}),
        make_commit(6, 10, partition=0),
        seen(10, topics=(make_topic("orders", 2),)),
    )
    assert {row.member_id for row in life.rows.lag} == {None}
    assert life.rows.member_load == []
    assert findings(life) == {}
    assert life.rows.group_health[-1].verdict == "identical"


def test_a_group_that_was_connects_starts_again_as_a_group_of_consumers() -> None:
    life = Life.after(
        decision(5, {"a": WorkerRecord(ran=connector("orders", 0))}),
        decision(7, {}, generation=2),
        make_record(9, [make_member("c", assigned={"orders": [0]})], generation=3),
        seen(12, topics=(make_topic("orders", 1),)),
    )
    row = life.rows.rebalance_churn[-1]
    assert (row.partitions_moved, row.protocol_type) == (0, "consumer")
    assert life.rows.drift[-1].verdict == "identical"
