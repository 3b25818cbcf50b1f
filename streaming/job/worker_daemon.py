"""Spark's daemon of Python workers, with everything that our tasks use imported before it forks them.

Spark's own daemon imports nothing, and each worker imports 60 MB in a second of processor time. Forked from this one
they share both. Only where Spark runs on this machine: an executor elsewhere gets our packages after its daemon has
started.

Spark imports in the workers because a library's threads are not in a fork (a comment in `pyspark/daemon.py`, 4.2.0).
Among these imports OpenBLAS and Arrow's jemalloc start some, and both take care of forks by themselves.
"""

from __future__ import annotations

import gc

import pandas as pd  # noqa: F401 - pyspark imports it where it wraps an operator like ours
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import streaming.job.data_source
import streaming.job.operator
import streaming.job.source.read  # noqa: F401

if __name__ == "__main__":
    # What is never collected is never written to, and stays shared.
    gc.collect()
    gc.freeze()
    manager()
