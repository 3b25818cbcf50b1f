"""What `/health` and `/health/alerter` say, and what is known of a lake that is not read whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dashboards import PageLake, Site
from streaming.alerts.decisions import Decisions
from streaming.config import load_settings
from streaming.serve.app import application
from streaming.serve.model import Model
from streaming.tables import ALL_TABLES, DeltaLake, table_named
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.empty_lake import empty_lake
from tests.examples import by_day
from tests.serve.client import Served, add_other_cluster, pause

WEEK = 7 * 86_400.0


@pytest.fixture
def made(tmp_path: Path) -> MadeLake:
    """A lake with 130 rounds, ten seconds apart."""
    return MadeLake(tmp_path, [MadeGroup("billing")], rounds=130)


@contextmanager
def followed(served: Served) -> Iterator[Served]:
    """While its thread follows the lake."""
    served.model.lake.start()
    try:
        yield served
    finally:
        served.model.lake.stop(60)


def condition(served: Served, path: str) -> tuple[int, dict[str, Any]]:
    answer = served.get(path)
    return answer.status, answer.json()


def settled(served: Served, target: str, passing: str) -> tuple[int, dict[str, Any]]:
    """Status and body, once it does not say a word that passes."""
    until = time.monotonic() + 60
    while (answer := served.get(target)).json()["status"] == passing and time.monotonic() < until:
        pause()
    return answer.status, answer.json()


def decide(lake: MadeLake, up_to: int) -> None:
    """Write down, as the alerter does, up to which round it has decided."""
    decisions = Decisions(lake.lake.root, CLUSTER)
    decisions.remember()
    decisions.commit([], up_to, int(lake.end.timestamp() * 1000), {})


def test_a_server_that_follows_its_lake_is_healthy_and_names_no_cluster(
    made: MadeLake, serve_over: Callable[..., Served]
) -> None:
    with followed(serve_over(Path(made.lake.root), made, password="secret", polled=False)) as served:
        status, body = settled(served, "/health", "starting")
        age = body.pop("newest_round_age_seconds")
        assert (status, body) == (200, {"status": "ok", "followed": True, "clusters": 1, "silent_clusters": 0})
        assert 0 <= age < 600
        assert CLUSTER not in served.get("/health").text
        # The requests have no login.
        assert condition(served, "/health/ready") == (200, {"ready": True, "reasons": []})
        assert condition(served, "/health/live") == (200, {"live": True, "reasons": []})


def test_a_silent_cluster_is_said_and_a_restart_is_not_asked_for(
    made: MadeLake, serve_over: Callable[..., Served]
) -> None:
    with followed(serve_over(Path(made.lake.root), made, polled=False)) as served:
        served.quiet_s[CLUSTER] = 3_600.0
        status, body = settled(served, "/health", "starting")
        assert (status, body["status"], body["silent_clusters"]) == (200, "silent", 1)
        status, body = condition(served, "/health/ready")
        assert (status, body["ready"]) == (200, True)
        assert body["reasons"][0].startswith("1 of 1 clusters have had no new round for longer than the alert rules")
        assert CLUSTER not in served.get("/health/ready").text


def test_a_lake_without_rounds_is_empty_and_not_well(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    lake = empty_lake(tmp_path, ALL_TABLES)
    with followed(serve_over(tmp_path, lake, polled=False)) as served:
        status, body = settled(served, "/health", "starting")
        assert (status, body["status"], body["newest_round_age_seconds"]) == (200, "empty", None)
        status, body = condition(served, "/health/ready")
        assert (status, body["ready"]) == (200, True)
        assert body["reasons"][0].startswith("There is no round in the tables yet: ")
        status, body = settled(served, "/health/alerter", "starting")
        assert (status, body["status"], body["clusters"]) == (503, "unknown", 0)


def test_a_lake_that_cannot_be_read_is_no_healthy_one(made: MadeLake, serve_over: Callable[..., Served]) -> None:
    decide(made, made.last)
    with followed(serve_over(Path(made.lake.root), made, polled=False)) as served:
        assert settled(served, "/health", "starting")[0] == 200
        made.next_round()
        newest = max(Path(made.lake.root, "rounds").rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
        newest.write_bytes(b"PAR1")
        status, body = settled(served, "/health", "ok")
        assert (status, body["status"], body["followed"]) == (503, "lake_unreadable", False)
        unreadable = {"ready": False, "reasons": ["The tables cannot be read: the server's log has the reason."]}
        assert condition(served, "/health/ready") == (503, unreadable)
        # A restart would not mend a lake.
        assert condition(served, "/health/live") == (200, {"live": True, "reasons": []})
        # Up to the rounds that were read before, the alerter has decided.
        assert settled(served, "/health/alerter", "starting") == (503, {"status": "lake_unreadable"})


def test_alerts_that_cannot_be_read_say_nothing_of_an_alerter(
    made: MadeLake, serve_over: Callable[..., Served]
) -> None:
    decide(made, made.last)
    with followed(serve_over(Path(made.lake.root), made, polled=False)) as served:
        settled(served, "/health", "starting")
        for commit in Path(made.lake.root, "alerts", "_delta_log").glob("*.json"):
            commit.write_text("{")
        assert settled(served, "/health/alerter", "starting") == (503, {"status": "lake_unreadable"})


def test_before_the_first_look_it_starts(
    made: MadeLake, serve_over: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PageLake, "followed", True)
    served = serve_over(Path(made.lake.root), made, polled=False)
    answer = served.get("/health/alerter")
    assert (answer.status, answer.json()["status"], answer.headers["retry-after"]) == (503, "starting", "5")
    assert served.get("/health").json()["status"] == "starting"
    assert condition(served, "/health/ready") == (
        503,
        {"ready": False, "reasons": ["The tables are still being read."]},
    )


def test_a_thread_that_has_ended_asks_for_a_restart(made: MadeLake, serve_over: Callable[..., Served]) -> None:
    served = serve_over(Path(made.lake.root), made, polled=False)
    site = Site(served.model.lake, made.lake.root, ())
    served.app = application(served.model, served.scrapes, load_settings().serve, site, lambda: False)
    reasons = ["The thread that reads the tables has ended, or hangs.", "The thread that judges alerts has ended."]
    assert condition(served, "/health/live") == (503, {"live": False, "reasons": reasons})


@pytest.mark.parametrize(
    ("rounds_ago", "status", "word"),
    by_day(
        [(0, 200, "ok"), (90, 200, "ok"), (91, 503, "late"), (None, 503, "unknown")],
        [(91, 503, "late")],
    ),
)
def test_the_alerter_lives_while_it_has_decided_within_fifteen_minutes_of_rounds(
    made: MadeLake, serve_over: Callable[..., Served], rounds_ago: int | None, status: int, word: str
) -> None:
    if rounds_ago is not None:
        decide(made, made.last - rounds_ago)
    with followed(serve_over(Path(made.lake.root), made, password="secret", polled=False)) as served:
        found, body = settled(served, "/health/alerter", "starting")
        assert CLUSTER not in served.get("/health/alerter").text
    late, unknown = int(word == "late"), int(word == "unknown")
    assert (found, body) == (
        status, {"status": word, "clusters": 1, "late_clusters": late, "unknown_clusters": unknown},
    )  # fmt: skip


@pytest.mark.nightly
def test_nobody_knows_whether_the_alerter_of_a_silent_cluster_lives(
    made: MadeLake, serve_over: Callable[..., Served]
) -> None:
    decide(made, made.last)
    with followed(serve_over(Path(made.lake.root), made, polled=False)) as served:
        assert settled(served, "/health/alerter", "starting")[1]["status"] == "ok"
        served.quiet_s[CLUSTER] = 3_600.0
        assert settled(served, "/health/alerter", "starting") == (
            503, {"status": "unknown", "clusters": 1, "late_clusters": 0, "unknown_clusters": 1},
        )  # fmt: skip


@pytest.mark.nightly
def test_a_cluster_that_is_gone_for_good_makes_nobody_unhealthy_after_days(
    made: MadeLake, serve_over: Callable[..., Served]
) -> None:
    add_other_cluster(made, "gone")
    decide(made, made.last)
    with followed(serve_over(Path(made.lake.root), made, forget_days=7, polled=False)) as served:
        served.quiet_s["gone"] = WEEK - 1
        assert settled(served, "/health", "starting")[1]["status"] == "silent"
        assert settled(served, "/health/alerter", "starting")[1]["unknown_clusters"] == 1
        served.quiet_s["gone"] = WEEK + 1
        assert served.get("/health").json()["status"] == "ok"
        assert settled(served, "/health/alerter", "starting") == (
            200, {"status": "ok", "clusters": 1, "late_clusters": 0, "unknown_clusters": 0},
        )  # fmt: skip
        # Where none lives, the job may have died: that is not forgotten.
        served.quiet_s[CLUSTER] = WEEK + 1
        assert served.get("/health").json()["silent_clusters"] == 2


# 21 November 2026, noon.
_MS = 1_795_262_400_000


def add(lake: DeltaLake, batch: int, table: str, **values: Any) -> None:
    given = {"cluster": "c", "round": batch, "round_time": _MS + batch, "event_date": _MS // 86_400_000, **values}
    lake.append(table, [[given.get(column.name) for column in table_named(table).columns]], "job", batch)


def groups(model: Model) -> list[str] | None:
    if model.snapshot is None:
        return None
    return sorted(model.snapshot.metrics.read(["groups"])["groups"]["group_id"].to_pylist())


def test_while_files_of_the_present_cannot_be_read_there_is_no_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.tables.cache._AT_FIRST", 1)
    monkeypatch.setattr("streaming.tables.cache._AT_ONCE", 1)
    lake = empty_lake(tmp_path / "lake")
    for number in range(1, 5):
        add(lake, number, "group_health", group_id=f"g{number}", ended=False, findings=[])
    add(lake, 5, "rounds", interval_ms=10_000)
    model = Model(load_settings(lake=lake.root))
    model.lake.poll()
    files = list(Path(lake.path("group_health")).rglob("*.parquet"))
    away = [file.rename(f"{file}.away") for file in files]
    assert model.lake.read_on() is False
    # The thread looks at the lake and then reads on, again and again.
    for go_on in (model.renew_snapshot, model.lake.poll, model.lake.read_on, model.renew_snapshot):
        go_on()
        assert model.lake.problem is not None
        assert (model.lake.present, groups(model)) == (False, None)
        assert model.lake.unread > 0
    for file, gone in zip(files, away, strict=True):
        gone.rename(file)
    model.lake.poll()
    while model.lake.read_on():
        pass
    model.renew_snapshot()
    assert (model.lake.problem, model.lake.unread) == (None, 0)
    assert groups(model) == ["g1", "g2", "g3", "g4"]
