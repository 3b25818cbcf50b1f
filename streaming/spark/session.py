"""The start of a Spark session."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping

from pyspark.sql import SparkSession

from streaming.java import find_java
from streaming.places import shipped_folder
from streaming.process import SAFE_PATH
from streaming.spark.libraries import refuse_missing, settings_for
from streaming.spark.prepared import fork_pythons, forking_python, use_prepared_home


def start_spark(
    name: str,
    settings: Mapping[str, object],
    *,
    with_delta: bool = False,
    with_s3a: bool = False,
    threads: int | None = None,
    shared: tuple[str, ...] = (),
) -> SparkSession:
    """Start or join a session.

    Without a master from `spark-submit`, or in the environment (`MASTER`), it runs on this machine.

    Args:
        name: Its name, as a cluster's master shows it.
        settings: Spark's settings, beside those of `conf/spark-defaults.conf`.
        with_delta: It can write Delta tables, for which it loads Delta's jars.
        with_s3a: It reaches S3, for which it loads Hadoop's S3A.
        threads: How many tasks run at once on this machine; None for one a core.
        shared: Modules that all Python processes of Spark on this machine share the memory of (`fork_pythons`); none to
            let each import what it uses.

    Raises:
        SetupError: There is no usable Java, or jars are needed and missing.
    """
    java = find_java()
    os.environ.setdefault("JAVA_HOME", str(java.resolve().parents[1]))
    use_prepared_home()
    # (spark-defaults.conf and log4j2.properties. On a cluster the packages lack the folder; the environment names it.)
    if shipped_folder().is_dir():
        os.environ.setdefault("SPARK_CONF_DIR", str(shipped_folder()))
    os.environ.update(SAFE_PATH)  # for the workers
    # Workers must run this very interpreter: another one has neither our packages nor pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for setting, value in (dict(settings) | settings_for(with_delta=with_delta, with_s3a=with_s3a)).items():
        builder = builder.config(setting, str(value))
    if "MASTER" not in os.environ and "SPARK_ENV_LOADED" not in os.environ:
        builder = builder.master(f"local[{threads or '*'}]")
        # Spark asks for the address of this machine's name before it reads settings, and not every container has one.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        python = forking_python()
        if shared and python is not None and os.environ["PYSPARK_PYTHON"] == sys.executable:
            fork_pythons(python, shared)
        if threads is not None:
            # More workers than cores are seldom needed, and each keeps a hundred MB.
            builder = builder.config("spark.python.factory.idleWorkerMaxPoolSize", str(os.cpu_count() or 1))
    asked = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    if asked is not None and threading.current_thread() is threading.main_thread():
        # SparkContext installs a SIGINT handler: Ctrl-C would end the job in the middle of a batch, with exit code 130.
        signal.signal(signal.SIGINT, asked)
    refuse_missing(session, with_delta=with_delta, with_s3a=with_s3a)
    return session
