"""The same job on a Spark cluster: packed, and submitted with `spark-submit`."""

from __future__ import annotations

from streaming.cluster.spark_submit import submit

__all__ = ["submit"]
