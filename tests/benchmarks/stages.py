"""The stages of a batch, each alone on one core: the job's own functions, called without Spark.

The rest of a batch's cost is Spark's: its plan, its tasks, the transfer of rows between JVM and Python, the state
store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from streaming.config import Settings
from streaming.groups import encode_rows
from streaming.job.operator import advance_key, group_config
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_readers
from streaming.job.source.planner import Planner
from streaming.job.source.positions import INITIAL
from streaming.job.source.read import task_rows
from streaming.job.unpack import rows_by_table
from streaming.tables import DeltaLake

__all__ = ["STAGES", "stage_seconds"]

STAGES = {
    "plan": "closing records and ends asked for, shared out among tasks",
    "source": "fetch, walk, decode, compact; events to observations",
    "core": "state unpacked, advance, state and rows packed",
    "unpack": "rows unpacked, sorted by table, made columns",
    "append": "six Delta tables, by delta-rs",
}
"""Names and contents of the stages."""


class _Clock:
    """Processor seconds of this process, by stage."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        # The time of the whole process, because delta-rs uses its own threads.
        began = time.process_time()
        yield
        self.seconds[name] += time.process_time() - began


def stage_seconds(settings: Settings, folder: Path, batches: int) -> dict[str, float]:
    """Processor seconds of each stage: the median over the last batches, of one round each.

    Args:
        settings: Those of the measured job.
        folder: Folder for a lake.
        batches: Number of batches that count; those before them are for warming up.
    """
    source = SourceSettings.of(settings).model_copy(update={"max_rounds": 1})
    reader = kept_readers(source)
    planner = Planner(source, kept_readers)
    planner.available_now()
    config = group_config(settings)
    lake = DeltaLake(str(folder / "stages"))
    lake.create()
    states: dict[str, Any] = {}
    took: list[dict[str, float]] = []
    start: dict[str, Any] = INITIAL
    while True:
        clock = _Clock()
        with clock.stage("plan"):
            end = planner.latest(start, 1)
            tasks = planner.tasks(start, end)
        if not tasks:
            break
        payloads: dict[str, list[bytes]] = {}
        with clock.stage("source"):
            for task in tasks:
                for key, payload in task_rows(task, source, reader):
                    payloads.setdefault(key, []).append(payload)
        packed: list[bytes] = []
        with clock.stage("core"):
            for key, of_key in payloads.items():
                states[key], rows = advance_key(key, of_key, states.get(key), config)
                if rows:
                    packed.append(encode_rows(rows))
        with clock.stage("unpack"):
            tables = rows_by_table(packed)
        with clock.stage("append"):
            for table, of_table in tables.items():
                lake.append(table, of_table, "stages", len(took))
        took.append(clock.seconds)
        start = end
    counted = took[-batches:]
    return {name: median(seconds[name] for seconds in counted) for name in STAGES}
