"""All topics of a real broker: who reads them, their bytes, and that they end; down to the rows of the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from kafka.admin import ACLOperation, ACLResourcePatternType, ResourceType

from streaming.config import KafkaSettings, Settings
from streaming.events import ClusterTopicEvent
from streaming.groups import encode_rows
from streaming.job.batch import rows_by_table
from streaming.job.operator import advance_key, group_config
from streaming.job.source.events import EventReader, EventRound
from streaming.probe import Probe
from streaming.probe.kafka.cluster_topics import ABSENT_ROUNDS
from streaming.records import ClosedRound, ClusterTopicObservation, RoundClosed, encode_inputs, topic_key
from streaming.tables import DeltaLake
from tests.probe.secured import Secured
from tests.probe.witness import Cluster, MakeSettings, read, read_round

pytestmark = pytest.mark.kafka

HEARTBEAT_MS = 1
"""Each topic is looked at in each round."""


class Followed:
    """The job's parts after the probe, without Spark: events to observations to rows."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._states: dict[str, tuple[int, bytes] | None] = {}
        self.packed: list[bytes] = []

    def take(self, closed: RoundClosed) -> None:
        for partition, (first, end) in closed.events.items():
            taken = ClosedRound(closed, closed.round, closed.round + 1, closed.time, closed.time, 0)
            reader = EventReader("events", int(partition), [EventRound(taken, first, end)], first, bool, bool)
            topic, kafka = self._settings.probe.events_topic, self._settings.kafka.bootstrap_servers
            for record in read(kafka, topic, int(partition), first, end):
                reader.add((record.offset, record.timestamp, record.key, record.value))
            for name, looks in reader.take()[1].items():
                key = topic_key(name)
                payloads = [encode_inputs(looks)]
                after, rows = advance_key(key, payloads, self._states.get(key), group_config(self._settings))
                self._states[key] = after
                self.packed.append(encode_rows(rows))
            assert reader.unreadable.inputs() == []


def test_topics_are_told_from_the_broker_to_the_table(
    cluster: Cluster, make_settings: MakeSettings, tmp_path: Path
) -> None:
    orders, audit = cluster.topic("orders", 2), cluster.topic("audit", 1)
    cluster.topic("left-out", 1)
    cluster.produce(orders, [3, 2])
    group = cluster.commit("billing", orders, [1, 1])
    filters = {"topics": (f"/^{cluster.unique}-(orders|audit)/",), "groups": (), "ignore_groups": ()}
    settings = make_settings(cluster_topics=True, **filters)
    settings = settings.model_copy(update={"job": settings.job.model_copy(update={"heartbeat_ms": HEARTBEAT_MS})})
    followed = Followed(settings)
    with Probe(settings) as probe:
        followed.take(probe.round())
        cluster.produce(orders, [10, 0])
        followed.take(probe.round())
        cluster.admin.delete_topics([audit])
        for _ in range(ABSENT_ROUNDS):
            followed.take(probe.round())

    lake = DeltaLake(str(tmp_path))
    lake.create()
    lake.append("topics", rows_by_table(followed.packed)["topics"], "query", 0)
    rows = DeltaTable(tmp_path / "topics").to_pyarrow_table().sort_by("round").to_pylist()
    assert {row["topic"] for row in rows} == {orders, audit}
    first, second, *_ = [row for row in rows if row["topic"] == orders]
    assert (first["partitions"], first["records_max"], first["produced_reason"]) == (2, 5, "first_look")
    assert (first["groups"], first["readers"], first["read_by_nobody"]) == (1, [group], False)
    assert second["records_max"] == 15
    assert second["produced_per_second"] == pytest.approx(10 / second["rates_over_seconds"])
    assert second["log_bytes"] > first["log_bytes"] > 0
    written = (second["log_bytes"] - first["log_bytes"]) / second["rates_over_seconds"]
    assert second["produced_bytes_per_second_min"] == pytest.approx(written)
    unread = [row for row in rows if row["topic"] == audit]
    assert unread[0]["groups"] == 0
    # Another test may have left a share group on this broker; what it reads is asked for a moment only, each round.
    asked = [row for row in unread[:2] if row["read_by_nobody_reason"] != "share_groups"]
    assert len(asked) == 2 or cluster.admin.list_groups(types_filter=["share"])
    assert all((row["read_by_nobody"], row["read_by_nobody_reason"]) == (True, None) for row in asked)
    assert all(row["read_by_nobody_since"] == asked[0]["round_time"] for row in asked)
    assert [row["ended_reason"] for row in unread] == [None, None, "deleted"]


def test_a_new_probe_ends_topics_that_were_deleted_meanwhile(cluster: Cluster, make_settings: MakeSettings) -> None:
    audit = cluster.topic("audit", 1)
    settings = make_settings(cluster_topics=True, topics=(audit,))
    with Probe(settings) as probe:
        probe.round()
    cluster.admin.delete_topics([audit])
    found: list[ClusterTopicEvent] = []
    with Probe(settings) as probe:
        for _ in range(ABSENT_ROUNDS):
            found += events_of(settings, probe.round())
    assert [(event.key, event.saw.gone) for event in found] == [(audit, "deleted")]


def events_of(settings: Settings, closed: RoundClosed) -> list[ClusterTopicEvent]:
    return [event for event in read_round(settings, closed).events if isinstance(event, ClusterTopicEvent)]


@pytest.mark.xdist_group("secured")
def test_without_the_rights_bytes_and_readers_are_unknown_and_with_them_they_are_told(secured: Secured) -> None:
    literal = ACLResourcePatternType.LITERAL
    own = [
        (operation, ResourceType.TOPIC, "evenkeel.", ACLResourcePatternType.PREFIXED)
        for operation in (ACLOperation.CREATE, ACLOperation.READ, ACLOperation.WRITE)
    ]
    secured.grant(
        (ACLOperation.READ, ResourceType.TOPIC, "__consumer_offsets", literal),
        (ACLOperation.DESCRIBE, ResourceType.GROUP, "billing", literal),
        (ACLOperation.DESCRIBE, ResourceType.TOPIC, "orders", literal),
        *own,
    )
    settings = secured.settings(cluster_topics=True, rounds_topic="evenkeel.t-rounds", events_topic="evenkeel.t-events")
    without = first_of(settings, secured)
    assert (without.sizes, without.unsized, without.hidden, without.groups) == (None, "no_right", "no_right", 1)
    secured.grant(
        (ACLOperation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster", literal),
        (ACLOperation.DESCRIBE, ResourceType.GROUP, "*", literal),
    )
    # (New topics of ours: a probe that reads its last round back waits for the topic's turn.)
    fresh = {"rounds_topic": "evenkeel.u-rounds", "events_topic": "evenkeel.u-events"}
    told = first_of(secured.settings(cluster_topics=True, **fresh), secured)
    assert (told.unsized, told.hidden, told.groups, told.readers) == (None, None, 1, ("billing",))
    assert told.sizes[0] > 0 == told.sizes[1]


def first_of(settings: Settings, broker: Secured) -> ClusterTopicObservation:
    """What a new probe tells of "orders" in its first round, as somebody with all rights reads it."""
    with Probe(settings) as probe:
        closed = probe.round()
    plain = KafkaSettings(bootstrap_servers=broker.broker.bootstrap)
    found = events_of(settings.model_copy(update={"kafka": plain}), closed)
    return next(event.saw for event in found if event.key == "orders")
