"""Burrow's read API over a made lake. Names and fields are those of its structs.go and protocol package, v1.9.5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.serve.client import Served

OF = f"/v3/kafka/{CLUSTER}"
ENVELOPE = {"error", "message", "request"}


@pytest.fixture(scope="module")
def burrow(tmp_path_factory: pytest.TempPathFactory, serve_over: Callable[..., Served]) -> Served:
    """Twenty rounds of groups that keep up or fall behind; one that committed once just now, one once a day ago."""
    root = tmp_path_factory.mktemp("burrow")
    groups = [
        MadeGroup("grows", topics={"t": 2}, lag=lambda at, partition: at - 4_999 if partition else 0),
        MadeGroup("fine", topics={"t": 2}, lag=lambda _, __: 0),
    ]
    lake = MadeLake(root, groups, rounds=20)
    now = int(lake.end.timestamp() * 1000)
    row = {"cluster": CLUSTER, "event_date": now // 86_400_000, "round": lake.last, "round_time": now, "ended": False,
           "topic": "u", "partition": 1, "committed_offset": 5, "high_watermark": 8, "lag": 3}  # fmt: skip
    once = {"just-now": timedelta(seconds=40), "a-day-ago": timedelta(days=1)}
    for group, ago in once.items():
        lake.add("lag", row | {"group_id": group, "last_commit_time": now - int(ago.total_seconds() * 1000)})
        lake.add("group_health", {"cluster": CLUSTER, "event_date": now // 86_400_000, "round": lake.last,
                                  "round_time": now, "group_id": group, "ended": False, "findings": []})  # fmt: skip
    lake.add("lag", row | {"group_id": "blocked", "lag": None, "reason": "offsets_blocked", "last_commit_time": now})
    # A share group has offsets, and nobody commits them.
    lake.add("lag", row | {"group_id": "shared", "last_commit_time": None})
    return serve_over(root, lake, burrow_minutes=30)


def status(burrow: Served, group: str, kind: str = "lag") -> Any:
    answer = burrow.get(f"{OF}/consumer/{group}/{kind}")
    assert answer.json().keys() == ENVELOPE | {"status"}
    assert answer.json()["error"] is False
    return answer.json()["status"]


def test_a_group_that_falls_behind_is_a_warning(burrow: Served) -> None:
    found = status(burrow, "grows")
    assert found.keys() == {
        "cluster", "group", "status", "complete", "partitions", "partition_count", "maxlag", "totallag",
    }  # fmt: skip
    assert (found["status"], found["complete"], found["partition_count"]) == ("WARN", 1.0, 2)
    assert (found["totallag"], found["maxlag"]["partition"], found["maxlag"]["current_lag"]) == (20, 1, 20)
    good, bad = found["partitions"]
    assert (good["status"], bad["status"]) == ("OK", "WARN")
    assert bad.keys() == {
        "topic", "partition", "owner", "client_id", "status", "start", "end", "current_lag", "complete",
    }  # fmt: skip
    assert bad["end"].keys() == {"offset", "timestamp", "observedAt", "lag"}
    assert (bad["start"]["lag"], bad["end"]["lag"]) == (11, 20)
    assert bad["end"]["timestamp"] - bad["start"]["timestamp"] == 9 * 10_000
    assert bad["owner"] == "/10.0.3.17"


def test_status_lists_bad_partitions_and_counts_all(burrow: Served) -> None:
    found = status(burrow, "grows", "status")
    assert [one["partition"] for one in found["partitions"]] == [1]
    assert (found["partition_count"], found["totallag"]) == (2, 20)
    assert status(burrow, "fine", "status")["partitions"] == []
    assert status(burrow, "fine", "status")["status"] == "OK"


def test_one_commit_of_the_time_that_is_held_is_not_judged_and_an_old_one_is(burrow: Served) -> None:
    now, old = status(burrow, "just-now"), status(burrow, "a-day-ago")
    assert [(one["status"], one["complete"]) for one in now["partitions"]] == [("OK", 0.0), ("OK", 0.1)]
    assert [one["status"] for one in old["partitions"]] == ["OK", "STOP"]
    assert (now["status"], old["status"]) == ("OK", "ERR")


def test_what_cannot_be_known_has_no_status(burrow: Served) -> None:
    answer = burrow.get(f"{OF}/consumer/blocked/lag")
    assert (answer.status, answer.json()["status"]["status"]) == (404, "NOTFOUND")


@pytest.mark.parametrize("kind", ["status", "lag"])
def test_an_unknown_group_is_not_found_and_no_error(burrow: Served, kind: str) -> None:
    answer = burrow.get(f"{OF}/consumer/nobody/{kind}")
    assert answer.status == 404
    assert answer.json()["error"] is False
    assert answer.json()["status"] == {
        "cluster": CLUSTER, "group": "nobody", "status": "NOTFOUND", "complete": 1.0, "partitions": [],
        "partition_count": 0, "maxlag": None, "totallag": 0,
    }  # fmt: skip


@pytest.mark.parametrize("path", ["consumer/grows/status", "consumer/grows/lag", "consumer/grows", "topic/t"])
def test_a_silent_cluster_is_not_judged_and_its_old_offsets_are_not_served(burrow: Served, path: str) -> None:
    burrow.quiet_s[CLUSTER] = 31.0
    try:
        answer = burrow.get(f"{OF}/{path}")
        assert (answer.status, answer.json()["error"]) == (503, True)
    finally:
        burrow.quiet_s.clear()


def test_nothing_is_judged_before_the_older_rows_were_read(burrow: Served) -> None:
    whole = burrow.model.snapshot
    assert whole is not None
    burrow.model.snapshot = replace(whole, whole=False)
    try:
        assert burrow.get(f"{OF}/consumer/grows/status").status == 503
    finally:
        burrow.model.snapshot = whole


@pytest.mark.parametrize(
    ("path", "message", "name", "value"),
    [
        ("/v3/kafka", "cluster list returned", "clusters", [CLUSTER]),
        (f"{OF}/topic", "topic list returned", "topics", ["t", "u"]),
        (f"{OF}/topic/u", "topic offsets returned", "offsets", [8]),
        (f"{OF}/topic/t/consumers", "consumers of topic returned", "consumers", ["fine", "grows"]),
        (
            f"{OF}/consumer",
            "consumer list returned",
            "consumers",
            ["a-day-ago", "blocked", "fine", "grows", "just-now"],
        ),
    ],
)
def test_lists(burrow: Served, path: str, message: str, name: str, value: list[Any]) -> None:
    found = burrow.get(path).json()
    assert found.keys() == ENVELOPE | {name}
    assert (found["error"], found["message"], found[name]) == (False, message, value)
    assert (found["request"].keys(), found["request"]["url"]) == ({"url", "host"}, path)


def test_a_group_that_commits_nothing_is_not_listed_and_one_whose_lag_is_unknown_for_a_time_stays(
    burrow: Served,
) -> None:
    listed = burrow.get(f"{OF}/consumer").json()["consumers"]
    assert "shared" not in listed
    assert [group for group in listed if status(burrow, group)["status"] == "NOTFOUND"] == ["blocked"]
    assert "shared" not in burrow.get(f"{OF}/topic/u/consumers").json()["consumers"]


def test_the_rings_of_a_consumer(burrow: Served) -> None:
    found = burrow.get(f"{OF}/consumer/grows").json()
    assert found.keys() == ENVELOPE | {"topics"}
    slot = found["topics"]["t"][1]
    assert slot.keys() == {"offsets", "owner", "client_id", "current-lag"}
    assert [commit["lag"] for commit in slot["offsets"]] == list(range(11, 21))
    unknown, young = burrow.get(f"{OF}/consumer/just-now").json()["topics"]["u"]
    assert unknown["offsets"] is None
    assert (len(young["offsets"]), young["offsets"][:9]) == (10, [None] * 9)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v3/kafka/nobody", "cluster module not found"),
        ("/v3/kafka/nobody/topic", "cluster not found"),
        ("/v3/kafka/nobody/consumer", "cluster not found"),
        (f"{OF}/topic/nobody", "cluster or topic not found"),
        (f"{OF}/consumer/nobody", "cluster or consumer not found"),
        ("/v3/config", "invalid request type"),
    ],
)
def test_errors(burrow: Served, path: str, message: str) -> None:
    answer = burrow.get(path)
    assert (answer.status, answer.json()["error"], answer.json()["message"]) == (404, True, message)


def test_health_is_told_as_burrow_does(burrow: Served, tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    assert burrow.get("/burrow/admin").text == "GOOD"
    assert (burrow.get("/burrow/admin/ready").status, burrow.get("/burrow/admin/ready").text) == (200, "READY")
    starting = serve_over(tmp_path, MadeLake(tmp_path, []), burrow_minutes=30, polled=False)
    assert (starting.get("/burrow/admin/ready").status, starting.get("/burrow/admin/ready").text) == (503, "STARTING")
    assert starting.get("/v3/kafka").status == 503


def test_it_is_not_served_unless_commits_are_held(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    assert serve_over(tmp_path, MadeLake(tmp_path, []), polled=False).get("/v3/kafka").status == 404


def test_the_ends_of_the_last_ten_rounds_delay_a_stop(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    lake = MadeLake(tmp_path, [])
    now = int(datetime.now(UTC).timestamp() * 1000)

    def put(group: str, ago_s: int, number: int, committed_ago_s: int, end: int) -> None:
        ms = now - ago_s * 1000
        lake.add("lag", {"cluster": CLUSTER, "event_date": ms // 86_400_000, "group_id": group, "topic": "t",
                         "partition": 0, "ended": False, "round": number, "round_time": ms, "committed_offset": 20,
                         "high_watermark": end, "lag": end - 20, "last_commit_time": now - committed_ago_s * 1000,
                         "client_id": "c", "client_host": "/h"})  # fmt: skip

    # Both stopped committing a quarter of an hour ago; records came to one half a minute ago, to the other long since.
    for group, came_ago_s in (("idle-until-now", 30), ("stopped", 300)):
        put(group, 930, 1, 930, 20)
        put(group, 900, 2, 900, 20)
        put(group, came_ago_s, 3, 900, 99)
    lake.add("rounds", {"cluster": CLUSTER, "event_date": now // 86_400_000, "round": lake.last + 1, "round_time": now,
                        "interval_ms": 10_000})  # fmt: skip
    served = serve_over(tmp_path, lake, burrow_minutes=30)
    found = {group: status(served, group)["partitions"][0]["status"] for group in ("idle-until-now", "stopped")}
    assert found == {"idle-until-now": "OK", "stopped": "STOP"}
