"""The same job on a cluster: a real master, a real worker, and `evenkeel submit`."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.config import Writer, checkpoint_of
from streaming.process import GuardedProcess
from streaming.tables import LakeReader
from tests.e2e.conftest import UNDISTURBED_ROUNDS, Recorded
from tests.e2e.lakes import contents, differences
from tests.e2e.recording import environment_of, settings_for
from tests.e2e.standalone import StandaloneCluster, python_without_evenkeel
from tests.short_lived import SHORT_LIVED

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.turn(5)]

_PATIENCE_S = 300.0
_NEWEST = "SELECT coalesce(max(round), -1) AS round FROM rounds"


# (Writing by executors takes longer.)
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
        # (This machine's name may resolve to an address that the executors cannot reach.)
        here = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
        here += ["--conf", f"spark.executor.extraJavaOptions={' '.join(SHORT_LIVED)}"]
        command = [
            "submit",
            *["--rebuild-state"] * is_lost,
            "--master",
            cluster.master,
            "--python",
            str(python),
            "--",
            *here,
        ]
        submitted = GuardedProcess(
            [sys.executable, "-c", "from streaming.cli import main; main()", *command],
            log=output,
            cwd=tmp_path,
            # (Joined files are named as those of tasks.)
            environment=environment_of(settings, tmp_path) | {"EVENKEEL_MAINTENANCE__IN_JOB": "false"},
        )
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
    assert differences(contents(tmp_path / "lake"), contents(recorded.lake)) == {}
    # (delta-rs itself would name them otherwise.)
    by_tasks = [".zstd." in uri for uri in DeltaTable(str(tmp_path / "lake" / "lag")).file_uris()]
    assert set(by_tasks) == {writer == "spark"}
