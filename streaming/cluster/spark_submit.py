"""`evenkeel submit`: the job of this machine, with the tasks on a Spark cluster (client mode).

The driver, with the tables' writer, runs here; executors get our two packages as a zip and everything else from a
Python of their own (docs/cluster.md). Secrets are passed neither in options nor in closures: executors read them from
files, or from the environment that their worker was started with.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from streaming.config import (
    KAFKA_SECRETS,
    Settings,
    checkpoint_of,
    environment_of,
    secret_variable,
)
from streaming.exceptions import SetupError
from streaming.job.fleet import run_fleet
from streaming.places import shipped
from streaming.process import SAFE_PATH

PACKAGES = ("assignors", "streaming")
"""The packages of ours that executors need."""

_HTTPS = 443

_INSTALLED = Path(__file__).resolve().parents[2]


def submit(
    settings: Settings,
    master: str,
    *,
    python: str | None = None,
    checkpoint: str | None = None,
    available_now: bool = False,
    rebuild_state: bool = False,
    more: Sequence[str] = (),
) -> None:
    """Run the job on a cluster until it ends or is asked to (SIGINT, SIGTERM: between two batches).

    This process is the driver, and its environment is changed for good.

    Args:
        settings: All settings.
        master: `spark://HOST:PORT`, or another master that spark-submit accepts: `k8s://https://HOST:PORT`, `yarn`.
        python: Python of the executors; None for this one, at this path on every node.
        checkpoint: Place of the checkpoint; None for the settings' own.
        available_now: As in `streaming.job.fleet.Start`.
        rebuild_state: As in `Start`.
        more: Arguments of spark-submit that come after ours and so override them.

    Raises:
        SetupError: No spark-submit, a secret that executors would not get, a checkpoint at a wrong place, or what
            `run_fleet` raises.
    """
    _refuse_secrets_of_the_environment(settings)
    _refuse_other_spark_home()
    place = checkpoint_of(settings, checkpoint)
    with tempfile.TemporaryDirectory(prefix="evenkeel-submit-") as folder:
        packages = Path(folder) / "evenkeel.zip"
        pack(packages)
        os.environ |= environment_of(settings) | {
            "MASTER": master,
            "PYSPARK_PYTHON": python or sys.executable,
            "PYSPARK_SUBMIT_ARGS": shlex.join([*_arguments(master, packages), *more, "pyspark-shell"]),
            # Spark 4.2.0 plans a Python source on the driver, in a process with the executors' Python, and gives that
            # process a wrong folder for --py-files (PythonStreamingSourceRunner): so the packages are named here, too.
            "PYTHONPATH": os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")])),
        }
        run_fleet([settings], available_now=available_now, checkpoint=place, rebuild_state=rebuild_state)


def _arguments(master: str, packages: Path) -> list[str]:
    """What pyspark gives to `spark-submit`; the jars, which depend on the session, it adds itself."""
    return [
        *("--master", master),
        # Our configuration, and beside it the rest of the cluster's own.
        *("--properties-file", str(shipped("spark-defaults.conf")), "--load-spark-defaults"),
        # Instead of the loopback of a job without a cluster: executors connect to the driver.
        *("--conf", f"spark.driver.host={_own_host(master)}", "--conf", "spark.driver.bindAddress=0.0.0.0"),
        *(word for name, value in SAFE_PATH.items() for word in ("--conf", f"spark.executorEnv.{name}={value}")),
        *("--py-files", str(packages)),
    ]


def pack(path: Path) -> None:
    """Write our packages, with their data files, into a zip that Python can import from."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for file in sorted((_INSTALLED / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(_INSTALLED))


def _own_host(master: str) -> str:
    """This machine's name for executors; for those on Kubernetes, where no pod's name is resolved, its address."""
    server = urlsplit(master.removeprefix("k8s://"))
    if not master.startswith("k8s://") or server.hostname is None:
        return socket.getfqdn()
    # Nothing is sent: it only says which of its addresses this machine would use.
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
            towards.connect((server.hostname, server.port or _HTTPS))
            return str(towards.getsockname()[0])
    except OSError:
        return socket.getfqdn()  # spark-submit itself says that the server cannot be reached


def _refuse_other_spark_home() -> None:
    home = os.environ.get("SPARK_HOME")
    if home and not Path(home, "bin", "spark-submit").is_file():
        message = f"SPARK_HOME is {home}, which has no bin/spark-submit: correct it, or unset it."
        raise SetupError(message)


def _refuse_secrets_of_the_environment(settings: Settings) -> None:
    for section, kafka in settings.connections().items():
        for name in KAFKA_SECRETS:
            if getattr(kafka, name) is None or getattr(kafka, f"{name}_file") is not None:
                continue
            variable = secret_variable(name, section, settings.cluster)
            if not {variable, secret_variable(name, section)} & os.environ.keys():
                message = (
                    f"{section}.{name} does not reach the executors: put it into a file that every node has and name "
                    f"that in {section}.{name}_file, or start Spark's workers, and this command, with {variable} set."
                )
                raise SetupError(message)
