"""The same job on a cluster: a real master, a real worker, and `evenkeel submit`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.conftest import UNDISTURBED_ROUNDS, Recorded
from e2e.lakes import contents, differences
from e2e.recording import environment_of, settings_for
from e2e.standalone import StandaloneCluster, python_without_evenkeel

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(600)]

_RUN_S = 300


def test_a_cluster_writes_the_tables_that_one_machine_writes(recorded: Recorded, tmp_path: Path) -> None:
    python = python_without_evenkeel(tmp_path / "python")
    settings = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=UNDISTURBED_ROUNDS)
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        # (Spark's own name of this machine, which may resolve to an address that executors of a test do not reach.)
        here = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
        command = ["submit", "--master", cluster.master, "--python", str(python), "--available-now", "--", *here]
        submitted = subprocess.run(
            [sys.executable, "-c", "from streaming.cli import main; main()", *command],
            cwd=tmp_path,
            env=os.environ | environment_of(settings, tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_RUN_S,
            check=False,
        )
        executors = "".join(file.read_text(errors="replace") for file in cluster.work.rglob("std*"))
    assert submitted.returncode == 0, submitted.stdout[-5000:] + executors[-5000:]
    # The tasks ran there, and our packages came with the job.
    assert list(cluster.work.glob("app-*/*/evenkeel.zip"))
    assert differences(contents(tmp_path / "lake"), contents(recorded.lake)) == {}
