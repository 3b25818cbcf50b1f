"""Hadoop's S3A in a Spark session: loaded only where Spark itself reads or writes S3."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pyspark

__all__ = ["S3A_CLASS", "as_s3a", "brings_s3a", "s3a_settings", "without_keys"]

S3A_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
"""The class that shows that a session has the jars."""

_ARCHIVE = "hadoop-aws"

# As delta-rs looks for them: a key in the environment, then the roles of the machine.
_PROVIDERS = (
    "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider",
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",  # containers (ECS, EKS) and EC2
)

_S3A = "spark.hadoop.fs.s3a."

_OURS = {
    "spark.hadoop.fs.s3.impl": S3A_CLASS,
    f"{_S3A}aws.credentials.provider": ",".join(_PROVIDERS),
    # What we read there is small. The default of Hadoop 3.5 is made for scans of large files.
    f"{_S3A}input.stream.type": "classic",
    # None of Delta's log stores writes a commit to S3 only if it is not there: each would overwrite one that delta-rs
    # has made in between. This one reads, and refuses to write where `s3` has no Hadoop file context, as here.
    "spark.delta.logStore.s3.impl": "io.delta.storage.HDFSLogStore",
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
    named = _names(configuration)
    return {name: "" for key in _KEYS if (name := f"spark.hadoop.fs.{key}") not in named}


def brings_s3a(configuration: str) -> bool:
    """Whether Spark has S3A without us: among its jars, or by its configuration, as an image of a platform may."""
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return _ARCHIVE in configuration or any((home / "jars").glob(f"{_ARCHIVE}-*.jar"))


def s3a_settings(configuration: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Settings by which Spark reaches S3 as delta-rs does; no credentials.

    Args:
        configuration: Text of the session's own configuration: what that sets is left alone.
        environment: Variables as of docs/object-stores.md.
    """
    endpoint = environment.get("AWS_ENDPOINT_URL")
    is_hosted = environment.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() == "true"
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    found = _OURS | {
        f"{_S3A}endpoint.region": region or "us-east-1",
        f"{_S3A}path.style.access": str(not is_hosted).lower(),
    }
    if endpoint:
        found[f"{_S3A}endpoint"] = endpoint
    named = _names(configuration)
    return {name: value for name, value in found.items() if name not in named}


def _names(configuration: str) -> frozenset[str]:
    """Names of the settings in a configuration with one a line, as `spark-defaults.conf` and `--conf` have them."""
    return frozenset(re.split(r"[\s=:]", line.strip(), maxsplit=1)[0] for line in configuration.splitlines())


def as_s3a(uri: str) -> str:
    """The URI under which Spark keeps a checkpoint there: Hadoop has a file context for `s3a` alone."""
    scheme, separator, rest = uri.partition("://")
    return f"s3a://{rest}" if separator and scheme.lower() == "s3" else uri
