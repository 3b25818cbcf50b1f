"""The same job on a cluster: a real master, real workers, `evenkeel submit`, and each executor's share."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake import DeltaTable

from streaming.config import Settings, Writer, checkpoint_of, environment_of
from streaming.process import GuardedProcess
from streaming.tables import LakeReader
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.made_groups import MadeGroups
from tests.e2e.conftest import UNDISTURBED_ROUNDS, Recorded
from tests.e2e.lakes import contents, differences, without_rebuilds
from tests.e2e.recording import settings_for
from tests.e2e.standalone import StandaloneCluster, kill_tree, python_without_evenkeel
from tests.patience import until
from tests.short_lived import SHORT_LIVED

_PATIENCE_S = 600.0
_NEWEST = "SELECT coalesce(max(round), -1) AS round FROM rounds"


# Writing by executors takes longer.
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.turn(5)
@pytest.mark.parametrize(
    ("writer", "is_lost"),
    [
        pytest.param("delta-rs", False, id="delta-rs", marks=pytest.mark.nightly),
        pytest.param("spark", False, id="spark", marks=pytest.mark.soak),
        pytest.param("delta-rs", True, id="rebuilt", marks=pytest.mark.soak),
    ],
)
def test_a_cluster_writes_the_tables_that_one_machine_writes_and_stops_between_two_batches(
    recorded: Recorded, tmp_path: Path, writer: Writer, is_lost: bool
) -> None:
    python = python_without_evenkeel(tmp_path / "python")
    settings = settings_for(
        recorded.recording.bootstrap, tmp_path / "lake", max_rounds=UNDISTURBED_ROUNDS, writer=writer
    )
    if is_lost:
        shutil.copytree(recorded.quiet_lake, settings.lake)
        shutil.rmtree(checkpoint_of(settings))
    newest = LakeReader(recorded.lake).rows(_NEWEST)
    output = tmp_path / "output"
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        submitted = _submit(settings, tmp_path, cluster, python, output, *["--rebuild-state"] * is_lost)
        reader = LakeReader(tmp_path / "lake")
        deadline = time.monotonic() + _PATIENCE_S
        pause = threading.Event()
        while reader.rows(_NEWEST) != newest and submitted.poll() is None and time.monotonic() < deadline:
            pause.wait(0.5)
            reader.refresh()
        code = submitted.stop(60)
        said = output.read_text("utf-8", "replace")
        told = said + "".join(file.read_text("utf-8", "replace") for file in cluster.work.rglob("std*"))
    assert code == 0, told[-5000:]
    assert "Traceback" not in said
    # The tasks ran there, with our packages from the job.
    assert list(cluster.work.glob("app-*/*/evenkeel.zip"))
    written = contents(tmp_path / "lake")
    assert differences(without_rebuilds(written) if is_lost else written, contents(recorded.lake)) == {}
    # delta-rs itself would name them otherwise.
    by_tasks = [".zstd." in uri for uri in DeltaTable(str(tmp_path / "lake" / "lag")).file_uris()]
    assert set(by_tasks) == {writer == "spark"}


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.turn(5)
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_lost_worker_and_a_killed_driver_change_no_row(recorded: Recorded, tmp_path: Path) -> None:
    python = python_without_evenkeel(tmp_path / "python")
    # Some five batches.
    settings = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=12)
    checkpoint = Path(checkpoint_of(settings))
    newest = LakeReader(recorded.lake).rows(_NEWEST)
    first, second = tmp_path / "first", tmp_path / "second"
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        submitted = _submit(settings, tmp_path, cluster, python, first)
        running = _await_batch(checkpoint, 1, submitted, first)
        cluster.kill_worker(1)
        # A later batch: the tasks of the one that was running were tried again on the other worker.
        _await_batch(checkpoint, running + 1, submitted, first)
        kill_tree(_driver(submitted))
        assert submitted.wait(_PATIENCE_S) != 0
        assert LakeReader(tmp_path / "lake").rows(_NEWEST) != newest  # it was not done
        submitted = _submit(settings, tmp_path, cluster, python, second)
        reader = LakeReader(tmp_path / "lake")

        def is_done() -> bool:
            reader.refresh()
            return reader.rows(_NEWEST) == newest

        _await(is_done, submitted, second)
        code = submitted.stop(60)
    assert code == 0, second.read_text("utf-8", "replace")[-5000:]
    assert "Lost executor" in first.read_text("utf-8", "replace")
    assert differences(contents(tmp_path / "lake"), contents(recorded.lake)) == {}


def _submit(
    settings: Settings,
    folder: Path,
    cluster: StandaloneCluster,
    python: Path,
    output: Path,
    *arguments: str,
    conf: Mapping[str, str] | None = None,
) -> GuardedProcess:
    # This machine's name may resolve to an address that the executors cannot reach.
    here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    here |= {"spark.executor.extraJavaOptions": " ".join(SHORT_LIVED), **(conf or {})}
    more = [word for name, value in here.items() for word in ("--conf", f"{name}={value}")]
    command = ["submit", *arguments, "--master", cluster.master, "--python", str(python), "--", *more]
    return GuardedProcess(
        [sys.executable, "-c", "from streaming.cli import main; main()", *command],
        log=output,
        cwd=folder,
        # Joined files are named as those of tasks.
        environment=environment_of(settings) | {"EVENKEEL_MAINTENANCE__IN_JOB": "false"},
    )


def _await_batch(checkpoint: Path, number: int, submitted: GuardedProcess, output: Path) -> int:
    """Wait until a batch of this number or a later one runs, planned and not done; returns its number."""
    found: set[int] = set()

    def runs() -> bool:
        planned, done = (
            {int(file.name) for file in (checkpoint / folder).glob("[0-9]*")} for folder in ("offsets", "commits")
        )
        found.update(one for one in planned - done if one >= number)
        return bool(found)

    _await(runs, submitted, output)
    return max(found)


def _driver(submitted: GuardedProcess) -> int:
    """Process id of the driver's JVM."""
    for process in psutil.Process(submitted.pid).children(recursive=True):
        if "org.apache.spark.deploy.SparkSubmit" in process.cmdline():
            return process.pid
    pytest.fail("there is no driver")


def _await(condition: Callable[[], bool], submitted: GuardedProcess, output: Path) -> None:
    def end_of_output() -> str:
        return output.read_text("utf-8", "replace")[-5000:]

    def runs() -> None:
        assert submitted.poll() is None, end_of_output()

    until(condition, runs, seconds=_PATIENCE_S, told=end_of_output)


_GROUPS = 100_000
_STATE_ROWS = "number of total state rows"


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(1_800)
@pytest.mark.turn(5)
def test_the_groups_of_a_cluster_are_spread_over_both_executors(bootstrap: str, unique: str, tmp_path: Path) -> None:
    settings = BenchCluster(tmp_path, bootstrap).settings(unique, max_rounds=1)
    with MadeGroups(settings, _GROUPS, 1) as made:
        made.rebalance(made.groups)
        for _ in range(2):
            made.commit()
            made.round()
    events = tmp_path / "events"
    events.mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        python, output = python_without_evenkeel(tmp_path / "python"), tmp_path / "output"
        submitted = _submit(settings, tmp_path, cluster, python, output, "--available-now", conf=conf)
        assert submitted.wait(_PATIENCE_S) == 0, output.read_text("utf-8", "replace")[-5000:]
        submitted.kill()
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
