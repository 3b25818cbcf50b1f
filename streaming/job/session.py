"""The Spark session of the job."""

from __future__ import annotations

import os
import signal
import sys
import threading

from pyspark.sql import SparkSession

from streaming.config import JobSettings
from streaming.java import find_java
from streaming.job.delta import delta_settings
from streaming.job.source import EvenkeelSource
from streaming.places import shipped_folder
from streaming.process import SAFE_PATH

__all__ = ["start_session"]


def start_session(job: JobSettings, name: str) -> SparkSession:
    """Start or join the session, with our source registered.

    Without a master from `spark-submit` it runs on this machine, with one thread per core.

    Raises:
        SetupError: There is no usable Java, or Delta's jars are needed and missing.
    """
    java = find_java()
    os.environ.setdefault("JAVA_HOME", str(java.resolve().parents[1]))
    # (spark-defaults.conf and log4j2.properties. On a cluster the packages lack the folder; the environment names it.)
    if shipped_folder().is_dir():
        os.environ.setdefault("SPARK_CONF_DIR", str(shipped_folder()))
    os.environ.update(SAFE_PATH)  # for the workers
    # Workers must run this very interpreter: another one has neither our packages nor pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).config("spark.sql.shuffle.partitions", job.shuffle_partitions)
    if "MASTER" not in os.environ and "SPARK_ENV_LOADED" not in os.environ:
        builder = builder.master("local[*]")
    if job.writer != "delta-rs":
        for setting, value in delta_settings().items():
            builder = builder.config(setting, value)
    asked = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    if asked is not None and threading.current_thread() is threading.main_thread():
        # SparkContext installs a SIGINT handler: Ctrl-C would end the job in the middle of a batch, with exit code 130.
        signal.signal(signal.SIGINT, asked)
    session.dataSource.register(EvenkeelSource)
    return session
