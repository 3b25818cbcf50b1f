"""The source inside Spark, on a real broker; `test_stream_reader.py` drives its reader without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streaming.demo.broker import EmbeddedBroker
from streaming.job.source import SourceSettings
from streaming.offsets_log import partition_for
from streaming.records import (
    ROUNDS_KEY,
    GroupObservation,
    decode_closed_rounds,
)
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

    def start(self) -> StreamingQuery:
        return self._writer.trigger(processingTime="100 milliseconds").start()

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


def until(condition: Callable[[], bool], query: StreamingQuery, seconds: float = 90.0) -> None:
    """Wait until the condition holds; fails if the query fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert query.exception() is None, query.exception()
        assert time.monotonic() < deadline, f"not within {seconds} s; last progress: {query.lastProgress}"
        query.awaitTermination(1)


def stop(query: StreamingQuery) -> None:
    while query.status["isTriggerActive"]:
        query.awaitTermination(1)
    query.stop()


@pytest.mark.nightly
def test_every_commit_and_round_comes_exactly_once_in_batches_of_whole_rounds(
    spark: SparkSession, probe: FakeProbe, tmp_path: Path
) -> None:
    made = write_rounds(probe, 10)
    run = SparkRun(spark, probe.settings(max_rounds=3), tmp_path / "c").now()
    assert run.commits() == made
    assert len(run.rounds()) == len(set(run.rounds())) == 10
    assert set(run.observations().values()) == {1}
    assert len(run.observations()) == 10 * 5
    assert sorted(len(decode_closed_rounds(p)) for k, p in run.rows() if k == ROUNDS_KEY) == [1, 3, 3, 3]
    # Windows end at the rounds: an observation's position separates them.
    for group, item in run.inputs():
        if isinstance(item, GroupObservation):
            assert item.log_partition == partition_for(group, 3)


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


@pytest.mark.nightly
def test_a_broker_that_restarts_under_the_stream_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker") as own:
        probe = FakeProbe(own.bootstrap, "p")
        # However long the restart takes, it must not count as silence, in which the log would be read on without
        # rounds.
        probe.interval_ms = 600_000
        run = SparkRun(spark, probe.settings(), tmp_path / "c")
        query = run.start()
        made = write_rounds(probe, 3)
        until(lambda: len(run.rounds()) == 3, query)
        own.kill()
        for _ in range(3):
            before = query.lastProgress
            query.awaitTermination(1)
            assert query.exception() is None, (query.exception(), before)
        own.start()
        made.update(write_rounds(probe, 3))
        until(lambda: len(run.rounds()) == 6, query)
        stop(query)
        assert run.commits() == made
        assert set(run.observations().values()) == {1}
        probe.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, 'needs the option "settings"'),
        ({"settings": "{}"}, "is wrong at cluster: Field required"),
        ({"settings": SourceSettings(cluster="c", kafka={}).option(), "maxRounds": "none"}, 'The option "maxRounds"'),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(spark: SparkSession, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        spark.readStream.format("evenkeel").options(**options).load()
