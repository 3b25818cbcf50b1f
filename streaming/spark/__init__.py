"""A Spark session on this machine or a cluster, with Delta's own library and Hadoop's S3A where they are needed."""

from __future__ import annotations

from streaming.spark.prepared import class_archive, use_prepared_home
from streaming.spark.session import as_s3a, start_spark

__all__ = ["as_s3a", "class_archive", "start_spark", "use_prepared_home"]
