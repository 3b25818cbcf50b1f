"""The stream reader, driven as Spark drives it, on a real broker; `test_source.py` has what only Spark can show."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.structs import OffsetAndMetadata

from streaming.demo.broker import EmbeddedBroker
from streaming.events import encode
from streaming.offsets_log import partition_for
from streaming.records import (
    GroupInput,
    LogGap,
    QuarantinedRecord,
)
from tests.job.source.fake_probe import FakeProbe, commit_key, commit_value
from tests.job.source.runs import ReaderRun, Run, write_rounds

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]


@pytest.fixture
def probe(bootstrap: str, unique: str) -> Iterator[FakeProbe]:
    made = FakeProbe(bootstrap, unique)
    yield made
    made.close()


def retention(admin: KafkaAdminClient, configs: dict[str, str]) -> None:
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "__consumer_offsets", configs)])


def test_any_read_limit_gives_the_same_inputs(probe: FakeProbe) -> None:
    write_rounds(probe, 7)
    at_once = ReaderRun(probe.settings(max_rounds=60)).now()
    one_by_one = ReaderRun(probe.settings(max_rounds=1)).now()
    assert len(at_once.batches) < len(one_by_one.batches)

    def everything(run: Run) -> list[tuple[str, GroupInput]]:
        return sorted(run.inputs(), key=repr)

    assert everything(at_once) == everything(one_by_one)
    assert at_once.rounds() == one_by_one.rounds()


def test_without_rounds_the_log_is_read_and_available_now_ends(probe: FakeProbe) -> None:
    for number in range(100):
        probe.commit("g", "t", 0, number)
    probe.log_ends()
    run = ReaderRun(probe.settings()).now()
    assert run.commits() == {("g", "t", 0): 100}
    assert run.rounds() == []


def test_when_rounds_stop_membership_goes_on_and_rounds_are_taken_again_later(probe: FakeProbe) -> None:
    probe.interval_ms = 300
    run = ReaderRun(probe.settings())
    made = write_rounds(probe, 2)
    run.until(lambda: len(run.rounds()) == 2)
    late = probe.open_round()
    for number in range(10):
        probe.commit("silent", "t", 0, number)
        made["silent", "t", 0] += 1
    probe.log_ends()
    run.until(lambda: run.commits() == made)
    assert len(run.rounds()) == 2
    probe.close_round(late, {"silent": {"t": 1}})
    newer = probe.round({"silent": {"t": 1}})
    run.until(lambda: newer.round in run.rounds())
    assert len(run.rounds()) == 3, "the round that was open during the fallback is passed over"
    assert [number for group, number in run.observations() if group == "silent"] == [newer.round]
    assert run.commits() == made


def test_a_log_partition_that_appears_later_is_read_from_its_beginning(probe: FakeProbe) -> None:
    write_rounds(probe, 1)
    settings = probe.settings()
    before = ReaderRun(settings).now()
    probe.grow_log(4)
    group = next(name for name in map(str, range(100)) if partition_for(name, 4) == 3)
    for number in range(20):
        probe.commit(group, "t", 0, number)
    probe.round({group: {"t": 1}})
    run = ReaderRun(settings, before.offsets).now()
    assert run.commits() == {(group, "t", 0): 20}
    assert list(run.observations()) == [(group, run.rounds()[0])]
    assert run.told(probe.log_topic, 3) == []


def test_junk_everywhere_is_told_once_and_stops_nothing(probe: FakeProbe) -> None:
    made = write_rounds(probe, 2)
    probe.log_record(1, b"\x00\x01\xff", b"?")
    probe.log_record(1, None, b"no key")
    probe.log_record(1, commit_key("g0", "t", 0), commit_value(7)[:-1])
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
        (65_536, 70_000)
    ] * 2
    assert len(run.told(probe.rounds_topic, 0)) == 2


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


@pytest.mark.nightly
def test_the_real_offsets_log_is_read_and_its_deleted_records_are_a_gap(tmp_path: Path) -> None:
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
        before = ReaderRun(settings).now()
        assert before.commits() == {("real", "t", 0): 25}
        assert len(before.observations()) == 1
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
        run = ReaderRun(settings, before.offsets).now()
        assert sum(run.commits().values()) == end - begin
        gaps = [item for item in run.told("__consumer_offsets", home) if isinstance(item, LogGap)]
        assert [(gap.from_offset, gap.to_offset) for gap in gaps] == [(25, begin)]
        member.close(autocommit=False)
        probe.close()
        admin.close()
