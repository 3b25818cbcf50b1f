"""The Spark side: format "evenkeel", a streaming data source in Python.

Properties of pyspark 4.2.0 that shape it: the class must be in an importable module, otherwise worker processes cache
nothing; an exception from `latestOffset` ends the query for good; offsets are compared as JSON text, so "nothing new"
is the same dict object that came in; `initialOffset` is requested again after a crash in the first batch, so it is a
constant.

A job imports this module before the JVM starts, and all else meanwhile (`session.py`). So it is beside the package of
the source, which is imported where it plans and reads, and the settings stay a text until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from streaming.job.source.planner import Planner
    from streaming.job.source.settings import SourceSettings

_DDL = "key string, payload binary"


class EvenkeelSource(DataSource):  # type: ignore[misc]  # pyspark is not followed by mypy here
    """Reads the offsets log, the probe's events and rounds of one cluster.

    Option: `settings`, the text of `SourceSettings.option()`.

    Columns, one row per key and task (or a few): `key` and `payload`, the key's packed inputs, as
    `streaming.records.inputs` makes them.
    """

    def __init__(self, options: dict[str, str]) -> None:
        """Read the option."""
        super().__init__(options)
        self._settings = options["settings"]

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "evenkeel"

    def schema(self) -> str:
        """The columns."""
        return _DDL

    def streamReader(self, schema: StructType) -> EvenkeelStreamReader:  # noqa: ARG002, N802 - pyspark's signature
        """The reader."""
        return EvenkeelStreamReader(self._settings)


class EvenkeelStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Adapts `Planner` (in the driver's planning process) and `task_rows` (in the workers) to Spark.

    Spark pickles a fresh reader into the workers; the planner is created at its first use.
    """

    def __init__(self, settings: str) -> None:
        self._text = settings
        self._planner: Planner | None = None

    @property
    def _settings(self) -> SourceSettings:
        from streaming.job.source.settings import SourceSettings  # noqa: PLC0415

        return SourceSettings.model_validate_json(self._text)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - pyspark's name
        """A constant of the query."""
        from streaming.job.source.positions import INITIAL  # noqa: PLC0415

        return self._settings.start or INITIAL

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - pyspark's name
        """Rounds per batch, given as rows: pyspark has no limit of our own kind."""
        return ReadMaxRows(self._settings.max_rounds)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - pyspark's name
        """See `Planner.latest`."""
        return self._plans().latest(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802 - pyspark's name
        """See `Planner.backlog`: Spark shows it in the batch's progress, and uses it for nothing else."""
        return self._plans().backlog

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - pyspark's name
        """See `Planner.available_now`."""
        self._plans().available_now()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """See `Planner.tasks`."""
        return self._plans().tasks(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task."""
        from streaming.job.source.connection import kept_readers  # noqa: PLC0415
        from streaming.job.source.read import arrow_batches, task_rows  # noqa: PLC0415

        settings = self._settings
        yield from arrow_batches(task_rows(partition, settings, kept_readers(settings, settings.patience_s)))

    def _plans(self) -> Planner:
        from streaming.job.source.connection import kept_readers  # noqa: PLC0415
        from streaming.job.source.planner import Planner  # noqa: PLC0415

        if self._planner is None:
            self._planner = Planner(self._settings, kept_readers)
        return self._planner
