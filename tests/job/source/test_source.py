"""The source inside Spark, on a real broker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.structs import OffsetAndMetadata
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streaming.demo.broker import EmbeddedBroker
from streaming.events import encode_round
from streaming.job.source import SourceSettings
from streaming.offsets_log import partition_for
from streaming.records import (
    ROUNDS_KEY,
    CommitWindow,
    GroupInput,
    GroupObservation,
    LogGap,
    PartitionInput,
    QuarantinedRecord,
    decode_closed_rounds,
    decode_inputs,
    decode_partition_inputs,
    group_of,
    partition_key,
)
from tests.job.source.fake_probe import FakeProbe, commit_key, commit_value

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.xdist_group("session"), pytest.mark.turn(2)]

Row = tuple[str, bytes]


class Run:
    """A query whose batches are kept in memory, by batch number; a repeated batch replaces the first one.

    Attributes:
        batches: Rows per batch.
        fail_at: A batch that fails after its rows were seen; None for none.
    """

    def __init__(self, spark: SparkSession, settings: SourceSettings, checkpoint: Path) -> None:
        self.batches: dict[int, list[Row]] = {}
        self.fail_at: int | None = None
        self._writer = (
            spark.readStream.format("evenkeel")
            .option("settings", settings.option())
            .load()
            .writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(checkpoint))
        )

    def now(self) -> Run:
        """Read everything that is available now."""
        query = self._writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return self

    def start(self) -> StreamingQuery:
        return self._writer.trigger(processingTime="100 milliseconds").start()

    def _keep(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = [(row.key, bytes(row.payload)) for row in frame.collect()]
        if number == self.fail_at:
            message = "failed on purpose"
            raise RuntimeError(message)

    def rows(self) -> list[Row]:
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    def inputs(self) -> Iterator[tuple[str, GroupInput]]:
        for key, payload in self.rows():
            group = group_of(key)
            if group is not None:
                for item in decode_inputs(payload):
                    yield group, item

    def commits(self) -> Counter[tuple[str, str, int]]:
        found: Counter[tuple[str, str, int]] = Counter()
        for group, item in self.inputs():
            if isinstance(item, CommitWindow):
                found[group, item.topic, item.partition] += item.commits
        return found

    def observations(self) -> Counter[tuple[str, int]]:
        return Counter((group, item.round) for group, item in self.inputs() if isinstance(item, GroupObservation))

    def rounds(self) -> list[int]:
        return [r.round for key, payload in self.rows() if key == ROUNDS_KEY for r in decode_closed_rounds(payload)]

    def told(self, topic: str, partition: int) -> list[PartitionInput]:
        key = partition_key(topic, partition)
        return [item for found, payload in self.rows() if found == key for item in decode_partition_inputs(payload)]


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


def retention(admin: KafkaAdminClient, configs: dict[str, str]) -> None:
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "__consumer_offsets", configs)])


def write_rounds(probe: FakeProbe, count: int, groups: int = 5) -> Counter[tuple[str, str, int]]:
    """Write rounds with commits between them; returns the commits."""
    made: Counter[tuple[str, str, int]] = Counter()
    for number in range(count):
        for place in range(40):
            group, partition = f"g{place % groups}", place % 3
            probe.commit(group, "t", partition, number * 40 + place)
            made[group, "t", partition] += 1
        probe.round({f"g{group}": {"t": 3, "u": 1} for group in range(groups)})
    return made


def test_every_commit_and_round_comes_exactly_once_in_batches_of_whole_rounds(
    spark: SparkSession, probe: FakeProbe, tmp_path: Path
) -> None:
    made = write_rounds(probe, 10)
    run = Run(spark, probe.settings(max_rounds=3), tmp_path / "c").now()
    assert run.commits() == made
    assert len(run.rounds()) == len(set(run.rounds())) == 10
    assert set(run.observations().values()) == {1}
    assert len(run.observations()) == 10 * 5
    assert sorted(len(decode_closed_rounds(p)) for k, p in run.rows() if k == ROUNDS_KEY) == [1, 3, 3, 3]
    # Windows end at the rounds: an observation's position separates them.
    for group, item in run.inputs():
        if isinstance(item, GroupObservation):
            assert item.log_partition == partition_for(group, 3)


def test_any_read_limit_gives_the_same_inputs(spark: SparkSession, probe: FakeProbe, tmp_path: Path) -> None:
    write_rounds(probe, 7)
    at_once = Run(spark, probe.settings(max_rounds=60), tmp_path / "a").now()
    one_by_one = Run(spark, probe.settings(max_rounds=1), tmp_path / "b").now()
    assert len(at_once.batches) < len(one_by_one.batches)

    def everything(run: Run) -> list[tuple[str, GroupInput]]:
        return sorted(run.inputs(), key=repr)

    assert everything(at_once) == everything(one_by_one)
    assert at_once.rounds() == one_by_one.rounds()


def test_a_batch_that_failed_is_read_again_the_same_after_a_restart(
    spark: SparkSession, probe: FakeProbe, tmp_path: Path
) -> None:
    made = write_rounds(probe, 6)
    settings = probe.settings(max_rounds=2)
    first = Run(spark, settings, tmp_path / "c")
    first.fail_at = 1
    with pytest.raises(Exception, match="failed on purpose"):
        first.now()
    probe.rounds_record(b"junk after the crash")
    probe.round({"g0": {"t": 3}})
    second = Run(spark, settings, tmp_path / "c").now()
    assert sorted(second.batches[1]) == sorted(first.batches[1])
    second.batches[0] = first.batches[0]
    assert second.commits() == made
    assert len(second.rounds()) == 7
    assert len(second.told(probe.rounds_topic, 0)) == 1


def test_without_rounds_the_log_is_read_and_available_now_ends(
    spark: SparkSession, probe: FakeProbe, tmp_path: Path
) -> None:
    for number in range(100):
        probe.commit("g", "t", 0, number)
    probe.log_ends()
    run = Run(spark, probe.settings(), tmp_path / "c").now()
    assert run.commits() == {("g", "t", 0): 100}
    assert run.rounds() == []


def test_when_rounds_stop_membership_goes_on_and_rounds_are_taken_again_later(
    spark: SparkSession, probe: FakeProbe, tmp_path: Path
) -> None:
    probe.interval_ms = 300
    run = Run(spark, probe.settings(), tmp_path / "c")
    query = run.start()
    made = write_rounds(probe, 2)
    until(lambda: len(run.rounds()) == 2, query)
    late = probe.open_round()
    for number in range(10):
        probe.commit("silent", "t", 0, number)
        made["silent", "t", 0] += 1
    probe.log_ends()
    until(lambda: run.commits() == made, query)
    assert len(run.rounds()) == 2
    probe.close_round(late, {"silent": {"t": 1}})
    newer = probe.round({"silent": {"t": 1}})
    until(lambda: newer.round in run.rounds(), query)
    stop(query)
    assert len(run.rounds()) == 3, "the round that was open during the fallback is passed over"
    assert [number for group, number in run.observations() if group == "silent"] == [newer.round]
    assert run.commits() == made


def test_a_log_partition_that_appears_later_is_read_from_its_beginning(
    spark: SparkSession, probe: FakeProbe, tmp_path: Path
) -> None:
    write_rounds(probe, 1)
    settings = probe.settings()
    Run(spark, settings, tmp_path / "c").now()
    probe.grow_log(4)
    group = next(name for name in map(str, range(100)) if partition_for(name, 4) == 3)
    for number in range(20):
        probe.commit(group, "t", 0, number)
    probe.round({group: {"t": 1}})
    run = Run(spark, settings, tmp_path / "c").now()
    assert run.commits() == {(group, "t", 0): 20}
    assert list(run.observations()) == [(group, run.rounds()[0])]
    assert run.told(probe.log_topic, 3) == []


def test_junk_everywhere_is_told_once_and_stops_nothing(spark: SparkSession, probe: FakeProbe, tmp_path: Path) -> None:
    made = write_rounds(probe, 2)
    probe.log_record(1, b"\x00\x01\xff", b"?")
    probe.log_record(1, None, b"no key")
    probe.log_record(1, commit_key("g0", "t", 0), commit_value(7)[:-1])
    for partition in range(2):
        probe.producer.send(probe.events_topic, value=b"\xff" * 70_000, partition=partition)
    probe.rounds_record(b"junk")
    probe.rounds_record(encode_round(probe.close_round(probe.open_round(), {}, close=False))[:-5])
    for more in (write_rounds(probe, 2), write_rounds(probe, 1)):
        made.update(more)
    run = Run(spark, probe.settings(max_rounds=1), tmp_path / "c").now()
    assert run.commits() == made
    assert len(run.rounds()) == 5
    assert len(run.told(probe.log_topic, 1)) == 3
    events = [item for partition in range(2) for item in run.told(probe.events_topic, partition)]
    assert [(len(e.value or b""), e.value_size) for e in events if isinstance(e, QuarantinedRecord)] == [
        (65_536, 70_000)
    ] * 2
    assert len(run.told(probe.rounds_topic, 0)) == 2


def test_a_log_that_was_deleted_in_part_gives_a_gap_and_goes_on(
    spark: SparkSession, probe: FakeProbe, tmp_path: Path
) -> None:
    partition = partition_for("g", 3)
    settings = probe.settings()
    probe.commit("g", "t", 0, 1)
    probe.round({"g": {"t": 1}})
    Run(spark, settings, tmp_path / "c").now()
    for number in range(10):
        probe.commit("g", "t", 0, number)
    probe.log_ends()
    probe.admin.delete_records({TopicPartition(probe.log_topic, partition): 6})
    probe.round({"g": {"t": 1}})
    run = Run(spark, settings, tmp_path / "c").now()
    gaps = [i for i in run.told(probe.log_topic, partition) if isinstance(i, LogGap)]
    assert [(gap.from_offset, gap.to_offset) for gap in gaps] == [(1, 6)]
    assert run.commits() == {("g", "t", 0): 5}
    # A new query reads from the beginning, wherever that is, so nothing that it requests is missing.
    fresh = Run(spark, settings, tmp_path / "new").now()
    assert fresh.told(probe.log_topic, partition) == []
    assert fresh.commits() == {("g", "t", 0): 5}


def test_the_real_offsets_log_is_read_and_its_deleted_records_are_a_gap(spark: SparkSession, tmp_path: Path) -> None:
    often = {"log.retention.check.interval.ms": "200", "log.initial.task.delay.ms": "100"}
    with EmbeddedBroker(tmp_path / "broker", overrides=often) as own:
        admin = KafkaAdminClient(bootstrap_servers=own.bootstrap)
        admin.create_topics([NewTopic("t", 1, 1)])
        partition = TopicPartition("t", 0)
        member = KafkaConsumer(bootstrap_servers=own.bootstrap, group_id="real", enable_auto_commit=False)
        member.assign([partition])

        def commit(count: int) -> None:
            for offset in range(count):
                member.commit({partition: OffsetAndMetadata(offset, "", -1)})

        commit(25)
        probe = FakeProbe(own.bootstrap, "p", 50, "__consumer_offsets")
        settings = probe.settings()
        probe.round({"real": {"t": 1}})
        run = Run(spark, settings, tmp_path / "c").now()
        assert run.commits() == {("real", "t", 0): 25}
        assert len(run.observations()) == 1
        commit(10)
        home = partition_for("real", 50)
        ends = probe.log_ends()
        # Brokers refuse DeleteRecords for the offsets log; retention has the same effect, and is the real cause.
        retention(admin, {"cleanup.policy": "delete", "retention.ms": "1"})
        asker = KafkaConsumer(bootstrap_servers=own.bootstrap)
        deadline = time.monotonic() + 60
        place = TopicPartition("__consumer_offsets", home)
        while asker.beginning_offsets([place])[place] < ends[home]:
            assert time.monotonic() < deadline
        retention(admin, {"cleanup.policy": "compact", "retention.ms": "-1"})
        commit(5)
        # The broker may have deleted once more before it applied the old settings.
        begin, end = asker.beginning_offsets([place])[place], asker.end_offsets([place])[place]
        asker.close()
        probe.round({"real": {"t": 1}})
        run = Run(spark, settings, tmp_path / "c").now()
        assert sum(run.commits().values()) == end - begin
        gaps = [item for item in run.told("__consumer_offsets", home) if isinstance(item, LogGap)]
        assert [(gap.from_offset, gap.to_offset) for gap in gaps] == [(25, begin)]
        member.close(autocommit=False)
        probe.close()
        admin.close()


def test_a_broker_that_restarts_under_the_stream_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker") as own:
        probe = FakeProbe(own.bootstrap, "p")
        # However long the restart takes, it must not count as silence, in which the log would be read on without
        # rounds.
        probe.interval_ms = 600_000
        run = Run(spark, probe.settings(), tmp_path / "c")
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
