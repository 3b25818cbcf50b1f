"""A Spark session on this machine or a cluster, with Delta's own library where Spark writes tables."""

from __future__ import annotations

from streaming.spark.delta import jars_for, names_delta
from streaming.spark.session import start_spark

__all__ = ["jars_for", "names_delta", "start_spark"]
