"""Rounds on a real broker, compared with kafka-python's and librdkafka's own clients."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer as LibrdkafkaConsumer
from confluent_kafka import TopicPartition as LibrdkafkaPartition
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import OffsetSpec

from streaming.config import Settings
from streaming.demo.librdkafka_member import transactional_producer
from streaming.events import decode_round
from streaming.offsets_log import partition_for
from streaming.probe import Probe
from streaming.probe.kafka.holds import HELD_ROUNDS
from streaming.records import RoundClosed, RoundOpened, pack_offsets
from tests.patience import until
from tests.probe.witness import Cluster, read, read_round

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]


@pytest.fixture
def probe(settings: Settings) -> Iterator[Probe]:
    with Probe(settings) as running:
        yield running


def test_a_round_is_complete(cluster: Cluster, settings: Settings, probe: Probe) -> None:
    orders, audit = cluster.topic("orders"), cluster.topic("audit", 1)
    a = cluster.commit("a", orders, [1, 2, 3])
    cluster.commit("a", audit, [0])
    b = cluster.commit("b", orders, [4])
    closed = probe.round()

    records = read(settings.kafka.bootstrap_servers, settings.probe.rounds_topic, 0, 0, 2)
    opened = decode_round(records[0].value)
    assert isinstance(opened, RoundOpened)
    assert decode_round(records[1].value) == closed
    # The broker's append time and offset of the opening record are the round's.
    assert (closed.round, closed.time) == (records[0].offset, records[0].timestamp)
    assert records[0].timestamp_type == 1  # LogAppendTime

    round_ = read_round(settings, closed)
    assert set(round_.groups) == {a, b}
    assert set(round_.topics(a)) == {orders, audit}
    assert set(round_.topics(b)) == {orders}
    assert (closed.groups, closed.written) == (2, len(round_.events)) == (2, 2)
    assert {event.saw.round for event in round_.events} == {closed.round}
    # One record holds both; its key is the first group's.
    assert round_.keys == [a.encode()] * 2
    for event in round_.groups.values():
        assert event.time == closed.time
        # The place in the log follows from the closing record.
        assert (event.state, event.log_partition, event.log_position) == ("Empty", -1, -1)


def test_values_are_those_of_the_admin_client(cluster: Cluster, settings: Settings, probe: Probe) -> None:
    orders = cluster.topic("orders", 3)
    cluster.produce(orders, [5, 0, 7])
    cluster.admin.delete_records({TopicPartition(orders, 2): 4})
    group = cluster.commit("g", orders, [1, 0, 5])
    closed = probe.round()

    round_ = read_round(settings, closed)
    topic = round_.topics(group)[orders]
    places = [TopicPartition(orders, partition) for partition in range(3)]

    def offsets(spec: OffsetSpec) -> tuple[int, ...]:
        found = cluster.admin.list_partition_offsets(dict.fromkeys(places, spec))
        return tuple(found[place].offset for place in places)

    [described] = cluster.admin.describe_topics([orders])
    assert topic.partitions == len(described["partitions"]) == 3
    assert topic.high_watermarks == topic.last_stable_offsets
    assert tuple(topic.ends) == offsets(OffsetSpec.LATEST) == (5, 0, 7)
    assert tuple(topic.starts) == offsets(OffsetSpec.EARLIEST) == (0, 0, 4)
    assert topic.racks is None
    [listed] = [entry for entry in cluster.admin.list_groups() if entry["group_id"] == group]
    event = round_.groups[group]
    assert (event.state, event.protocol_type, event.group_type) == (
        listed["group_state"],
        listed["protocol_type"],
        listed["group_type"].lower(),
    )
    assert event.cluster_id == closed.cluster_id == cluster.admin.describe_cluster()["cluster_id"]
    log = [TopicPartition("__consumer_offsets", partition) for partition in range(len(closed.log))]
    now = cluster.admin.list_partition_offsets(dict.fromkeys(log, OffsetSpec.LATEST))
    home = partition_for(group, len(closed.log))
    assert closed.log[home] == now[log[home]].offset
    assert all(position <= now[place].offset for position, place in zip(closed.log, log, strict=True))


def test_the_position_of_a_round_covers_the_commits_before_it(
    cluster: Cluster, settings: Settings, probe: Probe
) -> None:
    orders = cluster.topic()
    group = cluster.commit("g", orders, [1, 1, 1])
    first = probe.round()
    partition = partition_for(group, len(first.log))
    cluster.commit("g", orders, [2, 2, 2])
    second = probe.round()
    records = read(
        settings.kafka.bootstrap_servers, "__consumer_offsets", partition, first.log[partition], second.log[partition]
    )
    assert len(records) == 3
    assert second.round > first.round
    assert second.time >= first.time


def test_members_and_their_topics_are_seen_before_anything_is_committed(
    cluster: Cluster, settings: Settings, probe: Probe
) -> None:
    orders, missing = cluster.topic(), f"{cluster.unique}-not-there"
    group = f"{cluster.unique}-members"
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
    )
    consumer.subscribe([orders, missing])
    until(consumer.assignment, lambda: consumer.poll(timeout_ms=100))
    round_ = read_round(settings, probe.round())
    consumer.close()

    event, topics = round_.groups[group], round_.topics(group)
    assert (event.state, event.protocol_type, event.group_type) == ("Stable", "consumer", "classic")
    assert topics[orders].partitions == 3
    # A topic that does not exist is reported as missing, not left out, and not created.
    assert (topics[missing].partitions, topics[missing].high_watermarks) == (None, b"")
    assert missing not in cluster.admin.list_topics()


@pytest.mark.parametrize("pattern", [False, True], ids=["names", "regular expression"])
def test_a_group_of_the_new_protocol_has_its_topics_before_anything_is_committed(
    cluster: Cluster, settings: Settings, probe: Probe, pattern: bool
) -> None:
    orders = cluster.topic()
    cluster.produce(orders, [1, 1, 1])
    group = f"{cluster.unique}-848"
    consumer = LibrdkafkaConsumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([f"^{cluster.unique}-ord.*" if pattern else orders])
    assert consumer.poll(30) is not None
    round_ = read_round(settings, probe.round())
    consumer.close()
    event = round_.groups[group]
    assert (event.group_type, event.protocol_type, event.state) == ("consumer", "consumer", "Stable")
    assert set(round_.topics(group)) == {orders}


def test_a_group_that_was_deleted_while_no_probe_ran_is_gone_once(cluster: Cluster, settings: Settings) -> None:
    orders = cluster.topic()
    group, other = cluster.commit("g", orders, [1]), cluster.commit("other", orders, [1])
    with Probe(settings) as first:
        first.round()
    cluster.delete_group(group)
    with Probe(settings) as second:
        round_ = read_round(settings, second.round())
    assert (set(round_.gone), set(round_.groups)) == ({group}, {other})
    with Probe(settings) as third:
        assert read_round(settings, third.round()).gone == {}


def test_an_open_transaction_holds_the_position_and_is_told_after_some_rounds(
    cluster: Cluster, settings: Settings, probe: Probe
) -> None:
    orders, out = cluster.topic("orders"), cluster.topic("out", 1)
    group = f"{cluster.unique}-eos"
    consumer = LibrdkafkaConsumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    consumer.subscribe([orders])
    consumer.poll(0)
    until(consumer.assignment, lambda: consumer.poll(0.1))
    producer = transactional_producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": cluster.unique})
    producer.begin_transaction()
    producer.produce(out, b"value", partition=0)
    producer.send_offsets_to_transaction(
        [LibrdkafkaPartition(orders, 0, 0), LibrdkafkaPartition(out, 0, 0)], consumer.consumer_group_metadata(), 30
    )
    producer.flush(30)

    rounds = [probe.round() for _ in range(HELD_ROUNDS + 1)]
    partition = partition_for(group, len(rounds[0].log))
    assert all(closed.log[partition] < closed.log_end[partition] for closed in rounds)
    assert len({closed.log[partition] for closed in rounds}) == 1
    assert read_round(settings, rounds[-2]).groups[group].held_since is None
    event = read_round(settings, rounds[-1]).groups[group]
    assert event.held_since == rounds[0].time

    producer.commit_transaction(30)
    # The transaction coordinator writes the marker after its answer.
    deadline = time.monotonic() + 90
    while (after := probe.round()).log[partition] < after.log_end[partition]:
        assert time.monotonic() < deadline
    round_ = read_round(settings, after)
    assert round_.groups[group].held_since is None
    assert set(round_.topics(group)) == {orders, out}
    consumer.close()


def test_the_last_stable_offset_of_a_topic_stays_behind_an_open_transaction(
    cluster: Cluster, settings: Settings, probe: Probe
) -> None:
    out = cluster.topic("out", 1)
    group = cluster.commit("g", out, [0])
    producer = transactional_producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": cluster.unique})
    producer.begin_transaction()
    producer.produce(out, b"value", partition=0)
    producer.flush(30)
    topic = read_round(settings, probe.round()).topics(group)[out]
    assert (topic.high_watermarks, topic.last_stable_offsets) == (pack_offsets([1]), pack_offsets([0]))
    producer.abort_transaction(30)


def test_a_wrong_clock_shifts_nothing(cluster: Cluster, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.commit("g", cluster.topic(), [1])
    real = time.time
    before = int(real() * 1000)
    monkeypatch.setattr(time, "time", lambda: real() - 86_400.0 * 365)
    with Probe(settings) as probe:
        closed = probe.round()
    monkeypatch.undo()
    # The broker runs on this machine, with the same clock.
    assert before <= closed.time <= int(real() * 1000)
    for partition, (first, end) in closed.events.items():
        for record in read(settings.kafka.bootstrap_servers, settings.probe.events_topic, int(partition), first, end):
            assert record.timestamp >= closed.time


def test_the_probe_is_no_group(cluster: Cluster, settings: Settings) -> None:
    before = {entry["group_id"] for entry in cluster.admin.list_groups()}
    with Probe(settings) as first:
        first.round()
    with Probe(settings) as second:  # reads back the first one's rounds
        second.round()
    assert {entry["group_id"] for entry in cluster.admin.list_groups()} == before


def test_a_round_that_fails_has_no_closing_record(
    cluster: Cluster, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.commit("g", cluster.topic(), [1])
    with Probe(settings) as probe:
        first = probe.round()

        def fail(*_: object) -> None:
            raise RuntimeError("on purpose")

        with monkeypatch.context() as patch:
            patch.setattr("streaming.probe.kafka.run.round_events", fail)
            with pytest.raises(RuntimeError, match="on purpose"):
                probe.round()
        third = probe.round()
    records = read(settings.kafka.bootstrap_servers, settings.probe.rounds_topic, 0, 0, third.round + 2)
    kinds = [type(decode_round(record.value)) for record in records]
    assert kinds == [RoundOpened, RoundClosed, RoundOpened, RoundOpened, RoundClosed]
    assert (first.round, third.round) == (0, 3)
