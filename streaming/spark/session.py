"""The start of a Spark session, and what it loads beside Spark's jars: Delta for maintenance, S3A for a checkpoint."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from streaming.exceptions import SetupError
from streaming.jars import classpath, find_java
from streaming.places import shipped_folder
from streaming.process import SAFE_PATH
from streaming.spark.prepared import fork_pythons, forking_python, use_prepared_home

DELTA_CLASS = "io.delta.sql.DeltaSparkSessionExtension"
"""The class that shows that a session has Delta's jars, and by which a configuration loads them."""

S3A_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
"""The class that shows that a session has the jars."""

# Set even where the platform brings its own Delta.
_FOR_DELTA = {
    # A table's log has some hundred files at most: fifty tasks (the default) to read it cost seconds.
    "spark.databricks.delta.snapshotPartitions": "1",
    # A file beside each commit with sums over the table, which only Delta's own readers use, and which maintenance by
    # delta-rs would never delete.
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    # Spark's default is INT96, which Arrow reads as nanoseconds: a time after 2262 would come back as another one.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def names_delta(text: str) -> bool:
    """Whether a configuration loads Delta by itself, as a platform's own does."""
    return DELTA_CLASS in text


def delta_settings(configuration: str) -> dict[str, str]:
    """Settings of a session that can write Delta tables.

    Args:
        configuration: Text of the session's own configuration.
    """
    if names_delta(configuration):
        return _FOR_DELTA
    return _FOR_DELTA | {
        "spark.sql.extensions": DELTA_CLASS,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def settings_for(*, with_delta: bool, with_s3a: bool) -> dict[str, str]:
    """Settings of a session in this process.

    Under spark-submit they do not name the jars: its driver's class path is fixed before Python begins.

    Args:
        with_delta: It can write Delta tables.
        with_s3a: It reaches S3.

    Raises:
        SetupError: Jars have not been downloaded.
    """
    configuration = configured(os.environ.get("PYSPARK_SUBMIT_ARGS", ""), os.environ.get("SPARK_CONF_DIR", "."))
    settings = without_keys(configuration)
    if with_delta:
        settings |= delta_settings(configuration)
    if with_s3a:
        settings |= s3a_settings(configuration)
    if "PYSPARK_GATEWAY_PORT" not in os.environ and (
        jars := jars_for(configuration, with_delta=with_delta, with_s3a=with_s3a)
    ):
        settings["spark.jars"] = jars
    return settings


def jars_for(configuration: str, *, with_delta: bool, with_s3a: bool) -> str:
    """The jars as `spark.jars` and `spark-submit --jars` take them, without what the platform brings; may be empty.

    Args:
        configuration: Text of the session's own configuration, by which a platform names what it brings.
        with_delta: It can write Delta tables.
        with_s3a: It reaches S3.

    Raises:
        SetupError: They have not been downloaded.
    """
    jars: list[Path] = []
    if with_delta and not names_delta(configuration):
        jars += classpath("spark")
    if with_s3a and not brings_s3a(configuration):
        jars += classpath("s3a")
    return ",".join(map(str, jars))


def refuse_missing(spark: SparkSession, *, with_delta: bool, with_s3a: bool) -> None:
    """Refuse a session without the classes that it needs: Spark starts without them, and fails when it uses them.

    Raises:
        SetupError: Some are missing.
    """
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # noqa: SLF001 - pyspark has no face for it
    for is_needed, name, library, who in (
        (with_delta, DELTA_CLASS, "Delta", "maintain --engine spark"),
        (with_s3a, S3A_CLASS, "S3A", "a checkpoint on S3"),
    ):
        if is_needed and loader.getResource(f"{name.replace('.', '/')}.class") is None:
            message = (
                f"This Spark has no {library}, which {who} needs: start the job with `evenkeel run` or `evenkeel "
                "submit`, which bring it, or give spark-submit its jars (docs/cluster.md)."
            )
            raise SetupError(message)


def configured(arguments: str, folder: str) -> str:
    """What the user or the platform has configured, as text: one setting a line, without comments.

    Args:
        arguments: Arguments of spark-submit.
        folder: Folder with `spark-defaults.conf`, if it has one.
    """
    defaults = Path(folder) / "spark-defaults.conf"
    text = defaults.read_text("utf-8") if defaults.is_file() else ""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join([*shlex.split(arguments), *lines])


_ARCHIVE = "hadoop-aws"

# As delta-rs looks for them: a key in the environment, then the roles of the machine.
_PROVIDERS = (
    "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider",
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",  # containers (ECS, EKS) and EC2
)

_S3A = "spark.hadoop.fs.s3a."

_FOR_S3A = {
    "spark.hadoop.fs.s3.impl": S3A_CLASS,
    f"{_S3A}aws.credentials.provider": ",".join(_PROVIDERS),
    # What we read there is small. The default of Hadoop 3.5 is made for scans of large files.
    f"{_S3A}input.stream.type": "classic",
}


# Where Spark puts a key of the environment (`SparkHadoopUtil.appendS3CredentialsFromEnvironment`).
_KEYS = (
    "s3.awsAccessKeyId",
    "s3.awsSecretAccessKey",
    "s3n.awsAccessKeyId",
    "s3n.awsSecretAccessKey",
    "s3a.access.key",
    "s3a.secret.key",
    "s3a.session.token",
)


def without_keys(configuration: str) -> dict[str, str]:
    """Settings that keep a key of the environment out of Hadoop's configuration.

    Every session copies it there, and the configuration travels to all executors, and into what Spark shows of itself.
    The empty texts replace it there. Readers and writers take the key from the environment.

    Args:
        configuration: Text of the session's own configuration: what that sets is left alone.
    """
    named = _names_of(configuration)
    return {name: "" for key in _KEYS if (name := f"spark.hadoop.fs.{key}") not in named}


def brings_s3a(configuration: str) -> bool:
    """Whether Spark has S3A without us: among its jars, or by its configuration, as an image of a platform may."""
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return _ARCHIVE in configuration or any((home / "jars").glob(f"{_ARCHIVE}-*.jar"))


def s3a_settings(configuration: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Settings by which Spark reaches S3 as delta-rs does; no credentials.

    Args:
        configuration: Text of the session's own configuration: what that sets is left alone.
        environment: Variables as of docs/lake.md.
    """
    endpoint = environment.get("AWS_ENDPOINT_URL")
    is_hosted = environment.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() == "true"
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    found = _FOR_S3A | {
        f"{_S3A}endpoint.region": region or "us-east-1",
        f"{_S3A}path.style.access": str(not is_hosted).lower(),
    }
    if endpoint:
        found[f"{_S3A}endpoint"] = endpoint
    named = _names_of(configuration)
    return {name: value for name, value in found.items() if name not in named}


def _names_of(configuration: str) -> frozenset[str]:
    """Names of the settings in a configuration with one a line, as `spark-defaults.conf` and `--conf` have them."""
    return frozenset(re.split(r"[\s=:]", line.strip(), maxsplit=1)[0] for line in configuration.splitlines())


def as_s3a(uri: str) -> str:
    """The URI under which Spark keeps a checkpoint there: Hadoop has a file context for `s3a` alone."""
    scheme, separator, rest = uri.partition("://")
    if separator and scheme.lower() == "s3":
        return f"s3a://{rest}"
    return uri


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
    # spark-defaults.conf and log4j2.properties. On a cluster the packages lack the folder; the environment names it.
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
