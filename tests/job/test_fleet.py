"""The queries of several clusters in one job, without Spark: what a failure of one does to the others.

`tests/up/test_fleet.py` runs real ones.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from streaming.catalog import WatchedCluster, record_fleet
from streaming.config import FleetFile, Settings, load_fleet
from streaming.demo.ports import free_port
from streaming.exceptions import EvenkeelError, SetupError
from streaming.health import Condition
from streaming.job import fleet
from streaming.job.fleet import Fleet, Start
from streaming.job.health import JobHealth
from streaming.job.run import JvmGoneError, QueryEndedError
from streaming.process import JOB, only_one
from streaming.tables import LakeReader
from tests.patience import until
from tests.started import get

_PATIENCE_S = 60.0

Query = Callable[[threading.Event], None]


class _Queries:
    """Stands for `streaming.job.run.run`: what each cluster's query does, and which have begun."""

    def __init__(self) -> None:
        self.begun: Queue[str] = Queue()
        self.does: dict[str, Query] = {}

    def run(
        self,
        settings: Settings,
        *,
        stop: threading.Event,
        check: Callable[[], None],
        started: Callable[[], None],
        **_: Any,
    ) -> None:
        check()
        started()
        self.begun.put(settings.cluster)
        self.does.get(settings.cluster, _waits)(stop)

    def next(self) -> str:
        return self.begun.get(timeout=_PATIENCE_S)


def _waits(stop: threading.Event) -> None:
    assert stop.wait(_PATIENCE_S)


def _fails(error: Exception) -> Query:
    def query(_: threading.Event) -> None:
        raise error

    return query


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> _Queries:
    found = _Queries()
    monkeypatch.setattr("streaming.job.run.run", found.run)
    monkeypatch.setattr("streaming.job.session.start_beside", lambda *_: lambda: None)
    monkeypatch.setattr(fleet, "_FILE_S", 0.05)
    return found


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FleetFile]:
    """Write a settings file with these clusters, and read it."""
    path = tmp_path / "evenkeel.toml"
    monkeypatch.setenv("EVENKEEL_CONFIG", str(path))

    def write(*names: str, more: str = "") -> FleetFile:
        new = path.with_suffix(".new")
        new.write_text(
            f'lake = "{tmp_path / "lake"}"\n' + "".join(f'[[clusters]]\nname = "{n}"\n' for n in names) + more
        )
        new.replace(path)
        return FleetFile(load_fleet())

    return write


@contextmanager
def _running(clusters: FleetFile) -> Iterator[Queue[BaseException | None]]:
    """Run the job in a thread; yields where its end is put."""
    stop, ended = threading.Event(), Queue[BaseException | None]()

    def run() -> None:
        try:
            Fleet(clusters, Start()).run(stop)
            ended.put(None)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            ended.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ended
    finally:
        stop.set()
        thread.join(_PATIENCE_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("error", [QueryEndedError("no space"), SetupError("The checkpoint is lost."), ValueError("x")])
def test_a_query_that_fails_is_started_again_alone(
    error: Exception, queries: _Queries, file: Callable[..., FleetFile]
) -> None:
    queries.does["bad"] = _fails(error)
    with _running(file("good", "bad", "fine")) as ended:
        assert sorted(queries.next() for _ in range(3)) == ["bad", "fine", "good"]
        assert [queries.next() for _ in range(2)] == ["bad", "bad"]
        assert ended.empty()


def test_a_query_that_fails_is_named_with_its_cluster(
    queries: _Queries, file: Callable[..., FleetFile], caplog: pytest.LogCaptureFixture
) -> None:
    queries.does = {"lost": _fails(SetupError("The checkpoint is lost."))}
    with _running(file("lost", "good")):
        assert sorted(queries.next() for _ in range(2)) == ["good", "lost"]
        assert queries.next() == "lost"
    told = next(record.message for record in caplog.records if "lost" in record.message)
    assert told == "cluster lost: The checkpoint is lost. (Its query starts again in 1 s; the others go on.)"


@pytest.mark.parametrize("error", [QueryEndedError("no space"), SetupError("The checkpoint is lost."), ValueError("x")])
def test_the_failure_of_an_only_query_is_the_jobs(
    error: Exception, queries: _Queries, file: Callable[..., FleetFile]
) -> None:
    queries.does["one"] = _fails(error)
    with _running(file("one")) as ended:
        assert ended.get(timeout=_PATIENCE_S) is error


def test_a_jvm_that_is_gone_ends_the_job_although_other_queries_have_not_noticed(
    queries: _Queries, file: Callable[..., FleetFile]
) -> None:
    gone = JvmGoneError("gone")
    queries.does["b"] = _fails(gone)
    with _running(file("a", "b", "c")) as ended:
        assert ended.get(timeout=_PATIENCE_S) is gone


def test_clusters_are_added_changed_and_removed_without_the_others_noticing(
    queries: _Queries, file: Callable[..., FleetFile]
) -> None:
    ends: Queue[str] = Queue()

    def ending(name: str) -> Query:
        def query(stop: threading.Event) -> None:
            _waits(stop)
            ends.put(name)

        return query

    queries.does = {name: ending(name) for name in ("stays", "changes", "goes", "comes")}
    with _running(file("stays", "goes", "changes")) as ended:
        assert sorted(queries.next() for _ in range(3)) == ["changes", "goes", "stays"]
        file("stays", "changes", "comes", more="[clusters.probe]\ninterval_ms = 5_000\n")
        assert (queries.next(), ends.get(timeout=_PATIENCE_S)) == ("comes", "goes")
        file("stays", "comes", "changes", more="[clusters.probe]\ninterval_ms = 5_000\n")
        assert sorted(ends.get(timeout=_PATIENCE_S) for _ in range(2)) == ["changes", "comes"]
        assert sorted(queries.next() for _ in range(2)) == ["changes", "comes"]
        assert (ended.empty(), queries.begun.empty(), ends.empty()) == (True, True, True)


def test_a_cluster_whose_job_runs_already_waits_and_the_others_run(
    queries: _Queries, file: Callable[..., FleetFile], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with only_one(JOB, str(tmp_path / "lake"), "held"), _running(file("held", "free")) as ended:
        assert queries.next() == "free"
        until(lambda: "cluster held: Another job for the cluster" in caplog.text)
        assert ended.empty()


def test_an_added_cluster_whose_secret_sparks_workers_cannot_have_is_refused_alone(
    queries: _Queries, file: Callable[..., FleetFile], caplog: pytest.LogCaptureFixture
) -> None:
    with _running(file("a", "b")) as ended:
        assert sorted(queries.next() for _ in range(2)) == ["a", "b"]
        file("a", "b", "new", "newer", more='[clusters.kafka]\nsasl_password = "hunter2"\n')
        assert queries.next() == "new"
        assert ended.empty()
    assert "EVENKEEL_CLUSTERS__NEWER__KAFKA__SASL_PASSWORD, which came after the job's start" in caplog.text
    assert "hunter2" not in caplog.text


def test_what_is_one_clusters_own_is_refused_for_several(file: Callable[..., FleetFile]) -> None:
    with pytest.raises(EvenkeelError, match=r"are for one cluster: choose it with --cluster"):
        Fleet(file("a", "b"), Start(rebuild_state=True))


def _states(lake: Path) -> dict[str, tuple[str, str | None]]:
    if not (lake / "clusters").exists():
        return {}
    rows = LakeReader(lake).rows("SELECT cluster, state, renamed_from FROM clusters_current", [])
    return {row["cluster"]: (row["state"], row["renamed_from"]) for row in rows}


def test_which_clusters_are_watched_is_recorded_and_a_new_name_of_one_needs_a_word(
    queries: _Queries,
    file: Callable[..., FleetFile],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lake = tmp_path / "lake"
    ids = {"orders": "A", "orders-eu": "A", "payments": "B"}
    monkeypatch.setattr("streaming.job.source.connection.cluster_id_of", lambda settings: ids[settings.cluster])
    record_fleet(str(lake), [WatchedCluster("orders", "A"), WatchedCluster("payments", "B")], ["orders", "payments"])
    with _running(file("orders-eu", "payments")):
        assert queries.next() == "payments"
        until(lambda: _states(lake)["orders"] == ("closed", None))
    assert (
        'orders-eu (A) is called orders in the lake: give it its old name, or say renamed_from = "orders"'
        in caplog.text
    )
    assert "orders-eu" not in _states(lake)
    with _running(file("payments", "orders-eu", more='renamed_from = "orders"\n')):
        assert sorted(queries.next() for _ in range(2)) == ["orders-eu", "payments"]
        until(lambda: _states(lake).get("orders-eu") == ("watched", "orders"))


def test_the_job_says_which_cluster_fails_and_is_ready_all_the_same(
    queries: _Queries, file: Callable[..., FleetFile]
) -> None:
    queries.does["bad"] = _fails(QueryEndedError("no space"))
    port = free_port()
    with _running(file("good", "bad", more=f'[job]\nhealth = "127.0.0.1:{port}"\n')):
        for _ in range(3):
            queries.next()  # twice the bad one
        address = f"http://127.0.0.1:{port}/health"
        ready, live = (json.loads(get(f"{address}/{asked}")[1]) for asked in ("ready", "live"))
        assert ready == {"ready": True, "reasons": ["Cluster 'bad': no space"]}
        assert live == {"live": True, "reasons": []}


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
