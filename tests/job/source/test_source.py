"""The source inside Spark, on a real broker; `test_stream_reader.py` drives its reader without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from streaming.job.source import SourceSettings
from tests.job.source.fake_probe import FakeProbe
from tests.job.source.runs import Run, write_rounds
from tests.patience import unless_too_busy

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.xdist_group("recorded"), pytest.mark.turn(2)]


class SparkRun(Run):
    """A query whose batches are kept in memory.

    Attributes:
        fail_at: A batch that fails after its rows were seen; None for none.
    """

    def __init__(self, spark: SparkSession, settings: SourceSettings, checkpoint: Path) -> None:
        super().__init__()
        self.fail_at: int | None = None
        self._writer = (
            spark.readStream.format("evenkeel")
            .option("settings", settings.option())
            .load()
            .writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(checkpoint))
        )

    def now(self) -> SparkRun:
        """Read everything that is available now."""
        unless_too_busy(lambda: self._writer.trigger(availableNow=True).start().awaitTermination())
        return self

    def _keep(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = [(row.key, bytes(row.payload)) for row in frame.collect()]
        if number == self.fail_at:
            message = "failed on purpose"
            raise RuntimeError(message)


@pytest.fixture
def probe(bootstrap: str, unique: str) -> Iterator[FakeProbe]:
    made = FakeProbe(bootstrap, unique)
    yield made
    made.close()


@pytest.mark.nightly
def test_a_batch_that_failed_is_read_again_the_same_after_a_restart(
    spark: SparkSession, probe: FakeProbe, tmp_path: Path
) -> None:
    made = write_rounds(probe, 6)
    settings = probe.settings(max_rounds=2)
    first = SparkRun(spark, settings, tmp_path / "c")
    first.fail_at = 1
    with pytest.raises(Exception, match="failed on purpose"):
        first.now()
    probe.rounds_record(b"junk after the crash")
    probe.round({"g0": {"t": 3}})
    second = SparkRun(spark, settings, tmp_path / "c").now()
    assert sorted(second.batches[1]) == sorted(first.batches[1])
    second.batches[0] = first.batches[0]
    assert second.commits() == made
    assert len(second.rounds()) == 7
    assert len(second.told(probe.rounds_topic, 0)) == 1
