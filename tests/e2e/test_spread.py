"""Many groups on a cluster of two workers: each executor has its share of the tasks and of the state."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streaming.cluster import submit
from streaming.config import checkpoint_of
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.made_groups import MadeGroups
from tests.e2e.standalone import StandaloneCluster, python_without_evenkeel
from tests.short_lived import SHORT_LIVED

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.timeout(600),
    pytest.mark.turn(5),
]

_GROUPS = 3_000
_STATE_ROWS = "number of total state rows"


def test_the_groups_of_a_cluster_are_spread_over_both_executors(bootstrap: str, unique: str, tmp_path: Path) -> None:
    settings = BenchCluster(tmp_path, bootstrap).settings(unique, max_rounds=1)
    with MadeGroups(settings, _GROUPS, 1) as made:
        made.rebalance(made.groups)
        for _ in range(3):
            made.commit()
            made.round()
    events = tmp_path / "events"
    events.mkdir()
    # (This machine's name may resolve to an address that the executors cannot reach.)
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.extraJavaOptions": " ".join(SHORT_LIVED),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        code = submit(
            settings,
            cluster.master,
            python=str(python_without_evenkeel(tmp_path / "python")),
            arguments=["--available-now"],
            more=[word for name, value in conf.items() for word in ("--conf", f"{name}={value}")],
        )
    assert code == 0
    # Two workers of two cores.
    state = Path(checkpoint_of(settings)) / "state" / "0"
    assert len([folder for folder in state.iterdir() if folder.name.isdecimal()]) == 4

    tasks = _last_tasks_with_state(events)
    by_executor = Counter(task["Task Info"]["Executor ID"] for task in tasks)
    assert sorted(by_executor.values()) == [2, 2], by_executor
    rows = Counter[str]()
    for task in tasks:
        rows[task["Task Info"]["Executor ID"]] += _state_rows(task)
    # The groups, their topics, and the rounds.
    assert rows.total() == _GROUPS + 1, rows
    assert min(rows.values()) > _GROUPS / 4, rows


def _last_tasks_with_state(events: Path) -> list[dict[str, Any]]:
    """The tasks of the newest stage that advanced the state, from Spark's own log of events."""
    ended: dict[int, list[dict[str, Any]]] = {}
    for file in events.rglob("*"):
        if file.is_file() and not file.name.endswith(".crc"):
            for line in file.read_text("utf-8").splitlines():
                event = json.loads(line)
                if event["Event"] == "SparkListenerTaskEnd" and _state_rows(event):
                    ended.setdefault(event["Stage ID"], []).append(event)
    return ended[max(ended)]


def _state_rows(event: dict[str, Any]) -> int:
    found = [int(one["Update"]) for one in event["Task Info"]["Accumulables"] if one.get("Name") == _STATE_ROWS]
    return sum(found)
