"""Rows about Connect groups: who runs what, what moved, what is missing, and nothing that is a topic's."""

from __future__ import annotations

import msgspec

from streaming.records import Connector, SeenConnectors
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


def test_what_a_lost_worker_ran_is_missing_only_when_the_delay_is_over_and_no_rebalance_came() -> None:
    _, life = lost_worker()
    assert findings(life) == {
        "partitions_pending_handover": "run by nobody, waiting for at most 300 s, in case the worker that ran it comes "
        "back: connector db, task db-0"
    }
    life.take(seen(4 + DELAY + TIMEOUT))
    assert "unassigned" not in findings(life)
    life.take(seen(4 + DELAY + TIMEOUT + 1))
    assert findings(life) == {
        "unassigned": "run by nobody, and no rebalance follows, though the scheduled delay of 300 s has passed: "
        "connector db, task db-0"
    }


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


def test_a_worker_that_has_not_read_the_configuration_of_its_last_assignment_is_behind() -> None:
    workers = {"a": WorkerRecord(ran=FILES, read=12, before=12), "b": WorkerRecord(ran=DB, read=7, before=12)}
    life = Life.after(decision(5, workers, offset=12), seen(10))
    assert findings(life)["worker_behind"].endswith("(config offsets): http://b:8083/ at 7, its assignment at 12")
    life.take(seen(10 + TIMEOUT))
    assert "worker_behind" not in findings(life)


def test_an_assignment_error_is_a_finding() -> None:
    life = Life.after(decision(5, {"a": WorkerRecord(ran=FILES, read=8, before=8)}, error=1, offset=9), seen(10))
    assert list(findings(life)) == ["assignment_error"]


def test_workers_that_run_nothing_are_idle_once_the_group_has_settled() -> None:
    workers = {"a": WorkerRecord(ran=FILES), "b": WorkerRecord()}
    life = Life.after(decision(5, workers), seen(10))
    assert findings(life) == {}
    life.take(seen(6 + TIMEOUT))
    assert findings(life) == {
        "idle_members": "1 of 2 workers run nothing of 3 units (connectors and their tasks): http://b:8083/"
    }


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
    life = Life.after(decision(5, {"a": WorkerRecord(ran=connector("orders", 0))}), decision(7, {}, generation=2))
    life.take(
        make_record(9, [make_member("c", assigned={"orders": [0]})], generation=3),
        seen(12, topics=(make_topic("orders", 1),)),
    )
    row = life.rows.rebalance_churn[-1]
    assert (row.partitions_moved, row.protocol_type) == (0, "consumer")
    assert life.rows.drift[-1].verdict == "identical"


def configured(life: Life, position: int, *connectors: Connector, **changes: object) -> dict[str, str]:
    """What is found in a round that shows this configuration."""
    life.take(seen(position, connectors=SeenConnectors("connect-configs", connectors), **changes))
    return findings(life)


FILES_CONFIGURED, DB_CONFIGURED = Connector("files", 2, "STARTED"), Connector("db", 1, "STARTED")


def test_what_is_configured_and_never_ran_is_missing_after_a_rebalance_timeout() -> None:
    life = Life.after(decision(5, {"a": WorkerRecord(ran=FILES)}))
    assert configured(life, 10, FILES_CONFIGURED, DB_CONFIGURED) == {}
    assert configured(life, 10 + TIMEOUT, FILES_CONFIGURED, DB_CONFIGURED) == {}
    found = configured(life, 11 + TIMEOUT, FILES_CONFIGURED, DB_CONFIGURED)
    assert found == {"unassigned": "configured in topic connect-configs, and run by nobody: connector db, task db-0"}
    (shown,) = life.rows.group_health[-1].findings
    assert shown.since == life.rows.group_health[0].round_time
    assert configured(life, 12 + TIMEOUT, FILES_CONFIGURED) == {}


def test_a_connector_that_is_new_and_a_decision_that_is_new_get_the_whole_time() -> None:
    cluster, life = Cluster({"a": []}), Life()
    life.take(cluster.decide({"a": FILES}, {}))
    assert configured(life, 10, FILES_CONFIGURED) == {}
    assert configured(life, 100, FILES_CONFIGURED, DB_CONFIGURED) == {}
    assert configured(life, 100 + TIMEOUT, FILES_CONFIGURED, DB_CONFIGURED) == {}
    life.take(msgspec.structs.replace(cluster.decide({}, {}), record=101 + TIMEOUT))
    assert configured(life, 102 + TIMEOUT, FILES_CONFIGURED, DB_CONFIGURED) == {}
    assert configured(life, 102 + 2 * TIMEOUT, FILES_CONFIGURED, DB_CONFIGURED) == {}
    assert "unassigned" in configured(life, 103 + 2 * TIMEOUT, FILES_CONFIGURED, DB_CONFIGURED)


def test_nothing_is_missing_while_the_leader_waits_or_the_workers_rebalance() -> None:
    life = Life.after(decision(5, {"a": WorkerRecord(ran=FILES)}, delay=DELAY * SECOND))
    configured(life, 10, FILES_CONFIGURED, DB_CONFIGURED)
    assert configured(life, 10 + DELAY + TIMEOUT, FILES_CONFIGURED, DB_CONFIGURED) == {}
    late = 11 + DELAY + TIMEOUT
    assert configured(life, late, FILES_CONFIGURED, DB_CONFIGURED, state="PreparingRebalance") == {}
    assert "unassigned" in configured(life, late + 1, FILES_CONFIGURED, DB_CONFIGURED)


def test_a_stopped_connector_has_no_tasks_to_run_and_a_paused_one_has() -> None:
    life = Life.after(decision(5, {"a": WorkerRecord(ran=[("files", -1), ("db", -1), ("log", -1)])}))
    connectors = (Connector("files", 1, "PAUSED"), Connector("db", 1, "STOPPED"), Connector("log", -1, "STARTED"))
    configured(life, 10, *connectors)
    found = configured(life, 11 + TIMEOUT, *connectors)
    assert found == {"unassigned": "configured in topic connect-configs, and run by nobody: task files-0"}


def test_what_runs_and_is_not_configured_is_told_and_a_topic_of_another_group_misses_nothing() -> None:
    life = Life.after(decision(5, {"a": WorkerRecord(ran=FILES)}))
    fewer = Connector("files", 1, "STARTED")
    configured(life, 10, fewer, DB_CONFIGURED)
    found = configured(life, 11 + TIMEOUT, fewer, DB_CONFIGURED)
    assert found == {
        "no_such_partition": "run, though topic connect-configs does not configure them: task files-1",
        "unassigned": "configured in topic connect-configs, and run by nobody: connector db, task db-0",
    }
    configured(life, 200, DB_CONFIGURED)
    assert configured(life, 201 + TIMEOUT, DB_CONFIGURED) == {
        "no_such_partition": "nothing that runs is configured in topic connect-configs, is it this group's? "
        "connector files, task files-0, task files-1"
    }


def test_without_the_topic_nothing_is_said_of_what_never_ran() -> None:
    life = Life.after(decision(5, {"a": WorkerRecord(ran=FILES)}))
    configured(life, 10, FILES_CONFIGURED, DB_CONFIGURED)
    life.take(seen(300))
    assert findings(life) == {}
    assert configured(life, 301, FILES_CONFIGURED, DB_CONFIGURED) == {}


def test_what_was_taken_from_a_worker_and_what_a_leader_could_not_assign_is_said_once() -> None:
    _, life = lost_worker()
    configured(life, 6, FILES_CONFIGURED, DB_CONFIGURED)
    configured(life, 10 + DELAY + TIMEOUT, FILES_CONFIGURED, DB_CONFIGURED)
    assert [one.finding for one in life.rows.group_health[-1].findings] == ["unassigned"]
    assert findings(life)["unassigned"].startswith("run by nobody, and no rebalance follows")
    failed = Life.after(decision(5, {"a": WorkerRecord(read=8, before=8)}, error=1, offset=9))
    configured(failed, 10, FILES_CONFIGURED)
    assert list(configured(failed, 11 + TIMEOUT, FILES_CONFIGURED)) == ["assignment_error"]
