"""What a job of several clusters says of itself: one bad cluster is a reason, and never a restart of the others."""

from __future__ import annotations

from streaming.health import Condition
from streaming.job.health import JobHealth

POISONED = "the Spark query has ended: ValueError: no such record"


def test_before_its_first_query_it_is_live_for_as_long_as_it_stands_by_and_not_ready() -> None:
    now = [0.0]
    health = JobHealth(lambda: now[0])
    now[0] = 86_400.0
    assert health.live() == Condition(True)
    assert health.ready() == Condition(
        False, ("No query has started yet: the job starts, or stands by for another one.",)
    )


def test_a_cluster_whose_query_fails_is_a_reason_while_another_one_works() -> None:
    health = JobHealth()
    health.started("orders")
    health.failed("billing", POISONED)
    assert health.ready() == Condition(True, (f"Cluster 'billing': {POISONED}",))
    assert health.live() == Condition(True)
    health.started("billing")  # again, and nobody knows for how long
    assert health.ready().reasons
    health.worked("billing")
    assert health.ready() == Condition(True)


def test_where_no_query_works_it_is_not_ready_and_still_live() -> None:
    health = JobHealth()
    for cluster in ("orders", "billing"):
        health.failed(cluster, POISONED)
    assert health.ready() == Condition(False, (f"Cluster 'billing': {POISONED}", f"Cluster 'orders': {POISONED}"))
    assert health.live() == Condition(True)


def test_a_cluster_that_is_not_watched_any_more_is_no_reason() -> None:
    health = JobHealth()
    health.started("orders")
    health.failed("billing", POISONED)
    health.forget("billing")
    assert health.ready() == Condition(True)


def test_a_loop_that_does_not_come_around_asks_for_a_restart() -> None:
    now = [0.0]
    health = JobHealth(lambda: now[0])
    health.beat()
    now[0] = 900.0
    assert health.live().holds
    now[0] = 901.0
    assert health.live() == Condition(False, ("The job's loop has not come around for 901 s.",))
    health.beat()
    assert health.live().holds
