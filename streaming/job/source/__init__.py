"""The source: a Spark streaming data source on kafka-python, format "evenkeel".

It reads the offsets log, the probe's events and its rounds, a whole number of rounds per batch, and returns packed
inputs per group. Spark's driver plans a batch (`planner.py`), tasks read their shares of it (`read.py`), and what the
probe's events say of groups and topics is put together in `observations/`.
"""

from __future__ import annotations

from streaming.job.source.exceptions import AnotherClusterError
from streaming.job.source.settings import SourceSettings
from streaming.job.source.source import EvenkeelSource

__all__ = ["AnotherClusterError", "EvenkeelSource", "SourceSettings"]
