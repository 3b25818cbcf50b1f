"""Work that every Spark session of the tests would otherwise repeat: compile pyspark, and load its classes.

Spark lets its Python processes import pyspark from `pyspark.zip` in its home, where Python finds no bytecode: each of
the eight processes of a job compiles the same modules again. So the tests have a home in `.cache/tests` that has
Spark's programs and jars but not this file, and the processes import the installed pyspark.

`prepare` lets a job run there once, and keeps an archive of the classes that its JVM loaded (class data sharing). A JVM
takes an archive only if no folder with files is on its class path, and Spark puts its configuration there: so the
configuration of the tests' sessions is named in other ways, and the folder is empty.

With both, a job that starts cold takes two thirds of the processor time. What a user's job does stays as it is: in the
tests of the installed wheel (`tests/up`), and on a cluster's executors.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import suppress
from pathlib import Path

from streaming.exceptions import SetupError
from streaming.java import find_java
from tests.short_lived import SHORT_LIVED, UNVERIFIED

__all__ = ["prepare", "use_what_is_prepared"]

_ROOT = Path(__file__).resolve().parents[1]
_CACHE = _ROOT / ".cache" / "tests"

_PYSPARK = Path(sysconfig.get_path("purelib")) / "pyspark"
_OF_SPARK = ("bin", "jars")
_CLASSES = "classes.jsa"

# (Without it, a JVM would say on its standard output that there is no archive yet.)
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")

_PATIENCE_S = 240
"""Writing the archive takes some seconds on an idle machine."""


def prepare() -> None:
    """Begin to write the archive if it is missing; takes 20 s, once per checkout, and nobody waits for it."""
    try:
        folder = _made_folder()
    except SetupError:
        return  # no Java: the tests that need a session say so
    if not (folder / _CLASSES).exists():
        with (folder / "prepared.log").open("wb") as log:
            subprocess.Popen([sys.executable, "-m", "tests.prepared_spark"], cwd=_ROOT, stdout=log, stderr=log)


def use_what_is_prepared() -> None:
    """Let all sessions, also of the processes that tests start, use the home, and the archive as soon as it exists."""
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(SHORT_LIVED))
    with suppress(SetupError):
        folder = _made_folder()
        os.environ.update(_variables(folder, f"-XX:SharedArchiveFile={folder / _CLASSES}"))


def _made_folder() -> Path:
    folder = _folder()
    for name in ("conf", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in _OF_SPARK:
        with suppress(FileExistsError):
            (folder / "home" / name).symlink_to(_PYSPARK / name)
    return folder


def _folder() -> Path:
    # A JVM takes an archive only with the very same jars, at the same place.
    jars = sorted((jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in (_PYSPARK / "jars").iterdir())
    told = f"{find_java().resolve()} {_PYSPARK} {jars}"
    return _CACHE / f"spark-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def _variables(folder: Path, archive: str) -> dict[str, str]:
    conf = _ROOT / "conf"
    options = (*UNVERIFIED, archive, *_QUIET, f"-Dlog4j2.configurationFile={conf / 'log4j2.properties'}")
    return {
        "SPARK_HOME": str(folder / "home"),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_SUBMIT_OPTS": shlex.join(options),
        "PYSPARK_SUBMIT_ARGS": shlex.join(["--properties-file", str(conf / "spark-defaults.conf"), "pyspark-shell"]),
    }


def _main() -> None:
    """Run the job over a round with one commit, and wait until its JVM has written the archive."""
    from kafka import KafkaAdminClient  # noqa: PLC0415
    from pyspark import SparkContext  # noqa: PLC0415

    from streaming.config import JobSettings, KafkaSettings, Settings  # noqa: PLC0415
    from streaming.demo.broker import EmbeddedBroker  # noqa: PLC0415
    from streaming.job.run import run  # noqa: PLC0415
    from streaming.probe import Probe  # noqa: PLC0415
    from tests import prepared_brokers  # noqa: PLC0415
    from tests.probe.witness import Cluster  # noqa: PLC0415

    prepared_brokers.use_what_is_prepared()
    folder = _made_folder()
    with (folder / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=_CACHE) as made:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another run of the tests writes it
        part = Path(made)
        os.environ.update(_variables(folder, f"-XX:ArchiveClassesAtExit={part / _CLASSES}"))
        with EmbeddedBroker(part / "broker") as broker:
            cluster = Cluster(broker.bootstrap, "prepared", KafkaAdminClient(bootstrap_servers=broker.bootstrap))
            cluster.commit("group", cluster.topic(), [0, 0, 0])
            cluster.admin.close()
            kafka = KafkaSettings(bootstrap_servers=broker.bootstrap)
            settings = Settings(cluster="prepared", lake=str(part / "lake"), kafka=kafka, job=JobSettings(trigger_ms=0))
            with Probe(settings) as probe:
                probe.round()
            run(settings, available_now=True)
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            raise
        (part / _CLASSES).rename(folder / _CLASSES)


if __name__ == "__main__":
    _main()
