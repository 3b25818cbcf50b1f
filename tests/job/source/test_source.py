"""The source on a real broker: its reader, driven as Spark drives it, and inside Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition
from pyspark.sql import DataFrame, SparkSession

from streaming.events import encode
from streaming.job.source.settings import SourceSettings
from streaming.offsets_log import partition_for
from streaming.records import (
    GroupInput,
    LogGap,
    QuarantinedRecord,
)
from tests.job.source.fake_probe import FakeProbe, commit_value
from tests.job.source.runs import ReaderRun, Run, write_rounds
from tests.offsets_log.written import offset_key
from tests.patience import unless_too_busy


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
            raise RuntimeError("failed on purpose")


@pytest.fixture
def probe(bootstrap: str, unique: str) -> Iterator[FakeProbe]:
    made = FakeProbe(bootstrap, unique)
    yield made
    made.close()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.xdist_group("recorded")
@pytest.mark.turn(2)
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


@pytest.mark.kafka
@pytest.mark.turn(6)
def test_any_read_limit_gives_the_same_inputs(probe: FakeProbe) -> None:
    write_rounds(probe, 7)
    at_once = ReaderRun(probe.settings(max_rounds=60)).now()
    one_by_one = ReaderRun(probe.settings(max_rounds=1)).now()
    assert len(at_once.batches) < len(one_by_one.batches)

    def everything(run: Run) -> list[tuple[str, GroupInput]]:
        return sorted(run.inputs(), key=repr)

    assert everything(at_once) == everything(one_by_one)
    assert at_once.rounds() == one_by_one.rounds()


@pytest.mark.kafka
@pytest.mark.turn(6)
def test_junk_everywhere_is_told_once_and_stops_nothing(probe: FakeProbe) -> None:
    made = write_rounds(probe, 2)
    probe.log_record(1, b"\x00\x01\xff", b"?")
    probe.log_record(1, None, b"no key")
    probe.log_record(1, offset_key("g0", "t", 0), commit_value(7)[:-1])
    for partition in range(2):
        probe.producer.send(probe.events_topic, value=b"\xff" * 70_000, partition=partition)
    probe.rounds_record(b"junk")
    probe.rounds_record(encode(probe.close_round(probe.open_round(), {}, close=False))[:-5])
    for more in (write_rounds(probe, 2), write_rounds(probe, 1)):
        made.update(more)
    run = ReaderRun(probe.settings(max_rounds=1)).now()
    assert run.commits() == made
    assert len(run.rounds()) == 5
    assert len(run.told(probe.log_topic, 1)) == 3
    events = [item for partition in range(2) for item in run.told(probe.events_topic, partition)]
    assert [(len(e.value or b""), e.value_size) for e in events if isinstance(e, QuarantinedRecord)] == [
        (16_384, 70_000)
    ] * 2
    assert len(run.told(probe.rounds_topic, 0)) == 2


@pytest.mark.kafka
@pytest.mark.turn(6)
def test_a_log_that_was_deleted_in_part_gives_a_gap_and_goes_on(probe: FakeProbe) -> None:
    partition = partition_for("g", 3)
    settings = probe.settings()
    probe.commit("g", "t", 0, 1)
    probe.round({"g": {"t": 1}})
    before = ReaderRun(settings).now()
    for number in range(10):
        probe.commit("g", "t", 0, number)
    probe.log_ends()
    probe.admin.delete_records({TopicPartition(probe.log_topic, partition): 6})
    probe.round({"g": {"t": 1}})
    run = ReaderRun(settings, before.offsets).now()
    gaps = [i for i in run.told(probe.log_topic, partition) if isinstance(i, LogGap)]
    assert [(gap.from_offset, gap.to_offset) for gap in gaps] == [(1, 6)]
    assert run.commits() == {("g", "t", 0): 5}
    # A new query reads from the beginning, wherever that is, so nothing that it requests is missing.
    fresh = ReaderRun(settings).now()
    assert fresh.told(probe.log_topic, partition) == []
    assert fresh.commits() == {("g", "t", 0): 5}
