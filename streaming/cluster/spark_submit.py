"""`evenkeel submit`: the job of this machine, with the tasks on a Spark cluster (client mode).

The driver, with the tables' writer, runs here; executors get our two packages as a zip and everything else from a
Python of their own (docs/cluster.md). Secrets are passed neither in options nor in closures: executors read them from
files, or from the environment that their worker was started with.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped]  # it ships no types
import pyspark

from streaming.config import (
    KAFKA_SECRETS,
    Settings,
    checkpoint_of,
    environment_of,
    needs_s3a,
    secret_variable,
)
from streaming.exceptions import SetupError
from streaming.jars import find_java
from streaming.lifecycle import on_stop_signals
from streaming.places import shipped, shipped_folder
from streaming.process import SAFE_PATH, GuardedProcess
from streaming.spark import configured, jars_for

PACKAGES = ("assignors", "streaming")
"""The packages of ours that executors need."""

_HTTPS = 443

_INSTALLED = Path(__file__).resolve().parents[2]
_ENTRY = Path(__file__).with_name("entry.py")


def submit(
    settings: Settings,
    master: str,
    *,
    python: str | None = None,
    checkpoint: str | None = None,
    arguments: Sequence[str] = (),
    more: Sequence[str] = (),
) -> int:
    """Run the job on a cluster until it ends or is asked to (SIGINT, SIGTERM: between two batches).

    Args:
        settings: All settings; they reach the driver by environment.
        master: `spark://HOST:PORT`, or another master that spark-submit accepts: `k8s://https://HOST:PORT`, `yarn`.
        python: Python of the executors; None for this one, at this path on every node.
        checkpoint: Place of the checkpoint; None for the settings' own.
        arguments: More arguments of the job (`python -m streaming.job --help`).
        more: Arguments of spark-submit that come after ours and so override them.

    Returns:
        The job's exit code.

    Raises:
        SetupError: No Java, no spark-submit, no jars that the job's Spark needs, a secret that executors would not get,
            or a checkpoint at a wrong place.
    """
    _refuse_secrets_of_the_environment(settings)
    place = checkpoint_of(settings, checkpoint)
    environment = environment_of(settings)
    for name, value in (
        ("JAVA_HOME", str(find_java().resolve().parents[1])),
        ("SPARK_CONF_DIR", str(shipped_folder())),
    ):
        environment[name] = os.environ.get(name, value)
    environment |= {"PYSPARK_PYTHON": python or sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    # The driver sees what it need not set itself.
    environment["PYSPARK_SUBMIT_ARGS"] = shlex.join(more)
    with tempfile.TemporaryDirectory(prefix="evenkeel-submit-") as folder:
        packages = Path(folder) / "evenkeel.zip"
        pack(packages)
        # Spark 4.2.0 plans a Python source on the driver, in a process with the executors' Python, and gives that
        # process a wrong folder for --py-files (PythonStreamingSourceRunner): so the packages are named here, too.
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))
        command = [
            str(_spark_home() / "bin" / "spark-submit"),
            *("--master", master),
            # Our configuration, and beside it the rest of the cluster's own.
            *("--properties-file", str(shipped("spark-defaults.conf")), "--load-spark-defaults"),
            # Instead of the loopback of a job without a cluster: executors connect to the driver.
            *("--conf", f"spark.driver.host={_own_host(master)}", "--conf", "spark.driver.bindAddress=0.0.0.0"),
            *(word for name, value in SAFE_PATH.items() for word in ("--conf", f"spark.executorEnv.{name}={value}")),
            *("--py-files", str(packages)),
            *_jars(settings, place, configured(shlex.join(more), environment["SPARK_CONF_DIR"])),
            *more,
            str(_ENTRY),
            *("--checkpoint", place),
            *arguments,
        ]
        # Guarded, so that a terminal's Ctrl-C does not reach it: it would end the JVM above the driver in the middle of
        # a batch.
        process = GuardedProcess(command, log=None, environment=environment)
        try:
            with _passed_on(process.pid):
                return process.wait()
        finally:
            process.kill()


def pack(path: Path) -> None:
    """Write our packages, with their data files, into a zip that Python can import from."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for file in sorted((_INSTALLED / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(_INSTALLED))


def _jars(settings: Settings, checkpoint: str, configuration: str) -> list[str]:
    """Arguments that give driver and executors the jars that they need and their platform does not bring."""
    jars = jars_for(configuration, with_delta=False, with_s3a=needs_s3a(settings, checkpoint))
    if jars:
        return ["--jars", jars]
    return []


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


def _spark_home() -> Path:
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    if not (home / "bin" / "spark-submit").is_file():
        message = f"SPARK_HOME is {home}, which has no bin/spark-submit: correct it, or unset it."
        raise SetupError(message)
    return home


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


@contextmanager
def _passed_on(submitted: int) -> Iterator[None]:
    """Pass SIGINT and SIGTERM on to the driver alone; to all processes until it has started."""

    def ask(_number: int) -> None:
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            (_driver(submitted) or psutil.Process(submitted)).send_signal(signal.SIGTERM)

    with on_stop_signals(ask):
        yield


def _driver(submitted: int) -> psutil.Process | None:
    """The Python process of the job, below the JVM of spark-submit."""
    for process in psutil.Process(submitted).children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            if process.cmdline()[1:2] == [str(_ENTRY)]:
                return process
    return None
