"""Verdicts on Connect groups: leaders that are Connect's own classes, and decisions that no leader may make."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest

from assignors.connect import CONNECTOR, Unit
from streaming.groups.rows import DriftedPartition
from streaming.records import Configured
from tests.groups.build import CONFIG, MINUTE, SECOND, START, Life
from tests.groups.connect.workers import Cluster, WorkerRecord, connector, decision, seen
from tests.oracle.java_connect import Connect, DealCase

FILES, DB = connector("files", 0, 1), connector("db", 0)


def verdict_of(workers: dict[str, WorkerRecord], **of_record: Any) -> tuple[str, str | None, str | None]:
    life = Life.after(decision(5, workers, **of_record), seen(10))
    (row,) = life.rows.drift
    assert (life.rows.group_health[-1].verdict, life.rows.group_health[-1].verdict_basis) == (row.verdict, row.basis)
    return row.verdict, row.basis, row.reason


@pytest.mark.java
@pytest.mark.parametrize("decisions", [60, pytest.param(600, marks=pytest.mark.nightly)])
def test_no_decision_of_a_real_leader_is_drifted_and_most_are_recomputed(decisions: int) -> None:
    random, cluster, life = Random(54), Cluster(), Life()
    configured: dict[str, int] = {}
    told: Counter[str] = Counter()
    time = START
    with Connect("4.3.1") as java:
        for number in range(1, decisions + 1):
            time += random.choice((30, 400)) * SECOND
            if number % 3 == 1:  # a change of workers or of the configuration; then the group comes to rest
                _change(random, cluster, configured)
            led = number % 40 != 0  # now and then another worker leads
            units = frozenset((name, task) for name, count in configured.items() for task in range(CONNECTOR, count))
            (dealt,) = java.deal([DealCase(number // 40, time, 5 * MINUTE, led, number, units, dict(cluster.running))])
            made = cluster.decide(dealt.started, dealt.revoked, dealt.delay)
            life.take(made, seen(2 * number + 1))
            told[life.rows.drift[-1].verdict] += 1
            running = Counter(unit for units_of in cluster.running.values() for unit in units_of)
            assert life.rows.group_health[-1].assigned_partitions == sum(running.values())
            reason = life.rows.drift[-1].reason
            assert life.rows.drift[-1].verdict == "identical" or "the leader's memory is not in the log" in (
                reason or ""
            )
    assert told["drifted"] == 0
    assert told["identical"] >= 0.9 * decisions, told


def _change(random: Random, cluster: Cluster, configured: dict[str, int]) -> None:
    what = random.randrange(4) if cluster.running else 0
    if what == 0 and len(cluster.running) < 6:
        cluster.running[f"connect-{random.randrange(10**9)}"] = []
    elif what == 1 and len(cluster.running) > 1:
        del cluster.running[random.choice(sorted(cluster.running))]
    elif what == 2 and len(configured) > 2:
        del configured[random.choice(sorted(configured))]
    else:
        configured[f"connector-{random.randrange(9)}"] = random.randint(1, 8)


def test_an_eager_deal_is_recomputed_from_itself() -> None:
    dealt = {
        "a": WorkerRecord(start=[("db", -1), ("db", 0), ("files", 1)]),
        "b": WorkerRecord(start=[("files", -1), ("files", 0)]),
    }
    assert verdict_of(dealt, protocol="default") == ("identical", None, None)
    dealt["a"], dealt["b"] = dealt["b"], dealt["a"]
    verdict, _, reason = verdict_of(dealt, protocol="default")
    assert (verdict, reason) == ("unverified", "no known client gives this assignment")


def test_a_task_that_two_workers_run_is_drift_whatever_the_protocol() -> None:
    workers = {"a": WorkerRecord(ran=FILES), "b": WorkerRecord(start=[("files", 1)])}
    life = Life.after(decision(5, workers), seen(10))
    (row,) = life.rows.drift
    assert (row.verdict, row.basis, row.reason) == ("drifted", "invariant", "connectors or tasks run on two workers")
    assert row.drifted_partitions == (DriftedPartition("files", 1, "doubly_assigned", None, ("a", "b")),)
    eager = {"a": WorkerRecord(start=FILES), "b": WorkerRecord(start=[("files", 1)])}
    assert verdict_of(eager, protocol="default")[:2] == ("drifted", "invariant")


def test_a_unit_that_is_taken_from_one_worker_may_run_on_another() -> None:
    # Two workers report it, and one must stop it: no assignor decides that, but after it one worker runs it.
    workers = {"a": WorkerRecord(ran=FILES, stop=[("files", 1)]), "b": WorkerRecord(ran=[("files", 1)])}
    assert verdict_of(workers)[0] == "unverified"


def test_a_unit_that_two_workers_report_and_both_must_stop_is_in_order() -> None:
    workers = {
        "a": WorkerRecord(ran=FILES, stop=[("files", 1)]),
        "b": WorkerRecord(ran=[*DB, ("files", 1)], stop=[("files", 1)]),
    }
    assert verdict_of(workers)[0] == "identical"


def test_a_leader_that_could_not_assign_is_not_judged() -> None:
    workers = {"a": WorkerRecord(ran=FILES, read=8, before=8), "b": WorkerRecord(ran=FILES, read=12, before=8)}
    reason = "the leader assigned nothing: it had not read the configuration up to offset 12, which some worker had"
    assert verdict_of(workers, error=1, offset=12) == ("unverified", None, reason)


def test_a_worker_whose_bytes_cannot_be_read_makes_the_decision_unverified() -> None:
    made = decision(5, {"a": WorkerRecord(start=FILES)})
    broken = msgspec.structs.replace(made.members[0], user_data=None, assigned=None, topics=None, undecodable="why")
    life = Life.after(msgspec.structs.replace(made, members=(broken,)), seen(10))
    assert (life.rows.drift[0].verdict, life.rows.drift[0].reason) == ("unverified", "member 'a': why")


def test_a_decision_with_a_delay_fits_a_leader_that_waits_for_somebody() -> None:
    assert verdict_of({"a": WorkerRecord(ran=FILES)}, delay=300_000)[0] == "identical"


def test_an_uneven_deal_is_unverified_with_the_leaders_memory_as_the_reason() -> None:
    verdict, basis, reason = verdict_of({"a": WorkerRecord(start=[*FILES, *DB]), "b": WorkerRecord()})
    assert (verdict, basis) == ("unverified", None)
    assert (reason or "").startswith("the leader's memory is not in the log")


def test_a_strategy_that_is_configured_for_consumers_is_not_expected_of_connect() -> None:
    life = Life(CONFIG, Configured("v1", "range", ()))
    life.take(decision(5, {"a": WorkerRecord(start=FILES)}), seen(10))
    assert (life.rows.drift[0].verdict, life.rows.drift[0].strategy_mismatch) == ("identical", None)
    life = Life(CONFIG, Configured("v1", "default", ()))
    life.take(decision(5, {"a": WorkerRecord(start=FILES)}), seen(10))
    assert (life.rows.drift[0].verdict, life.rows.drift[0].basis) == ("drifted", "configured")


def test_a_forged_unit_in_a_run_of_healthy_decisions_is_found() -> None:
    cluster, life = Cluster({"a": [], "b": []}), Life()
    life.take(cluster.decide({"a": FILES, "b": DB}, {}), seen(3))
    forged: dict[str, list[Unit]] = {"b": [("files", 0)]}
    life.take(cluster.decide(forged, {}), seen(5))
    assert [row.verdict for row in life.rows.drift][-1] == "drifted"
    life.take(cluster.decide({}, {"a": frozenset({("files", 0)}), "b": frozenset({("files", 0)})}), seen(7))
    life.take(cluster.decide({"a": [("files", 0)]}, {}), seen(9))
    assert [row.verdict for row in life.rows.drift][-1] == "identical"
