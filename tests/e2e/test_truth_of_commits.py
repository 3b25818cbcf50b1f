"""Commits that do not count, offsets that go back, recreated topics: real clients on a real broker, the real probe, the
job without Spark, and the shipped alert rules over its tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer as LibrdkafkaConsumer
from confluent_kafka import TopicPartition as LibrdkafkaPartition
from kafka import KafkaConsumer, TopicPartition

from streaming.alerts import Alerter
from streaming.alerts.rules.rules import load_rules
from streaming.alerts.transitions import Transition
from streaming.config import SHIPPED_RULES, Filters, KafkaSettings, ProbeSettings, Settings
from streaming.demo.librdkafka_member import transactional_producer
from streaming.groups import Rows
from streaming.groups.rows import GroupHealthRow, LagRow
from streaming.job.source.connection import kept_readers
from streaming.job.source.settings import SourceSettings
from streaming.offsets_log import partition_for
from streaming.probe import Probe
from streaming.probe.kafka.holds import HELD_ROUNDS
from streaming.records import RoundClosed
from streaming.tables import TABLES, DeltaLake
from tests.e2e.plain_job import PlainJob
from tests.probe.witness import Cluster
from tests.process.kept import until

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]

_FOR_ROUNDS = 12
"""The value of `offsets_blocked` in conf/alerts.yaml."""

_MARKER_S = 30.0
"""The coordinator writes a transaction's markers after its answer: milliseconds later, on a busy machine more."""


class Monitor:
    """Probe, job and alerter for one test's groups; each makes a step when called.

    Attributes:
        told: The alerter's decisions, in order.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        unique = cluster.unique
        self.settings = Settings(
            cluster=unique,
            lake=str(folder / "lake"),
            kafka=KafkaSettings(bootstrap_servers=cluster.bootstrap),
            filters=Filters(groups=(f"/^{unique}/",)),
            probe=ProbeSettings(
                interval_ms=200, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
            ),
        )
        self.told: list[Transition] = []
        self._probe = Probe(self.settings)
        self._job = PlainJob(SourceSettings.of(self.settings), kept_readers)
        self._lake = DeltaLake(self.settings.lake)
        self._lake.create()
        # Rounds are 200 ms apart here: a busy machine makes gaps between them, and the rule that reports gaps is right.
        rules = [rule for rule in load_rules(SHIPPED_RULES) if not rule.by_clock and rule.name != "gap"]
        self._alerter = Alerter(self.settings, rules, {})
        self._batch = 0

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._probe.__exit__(None, None, None)

    def round(self) -> RoundClosed:
        """One round of the probe."""
        return self._probe.round()

    def look(self) -> Rows:
        """Let the job process all rounds, and the alerter poll; returns the new rows."""
        before = {table: len(getattr(self._job.rows, table)) for table in Rows.__struct_fields__}
        self._job.run()
        new = Rows(**{table: getattr(self._job.rows, table)[count:] for table, count in before.items()})
        for table in TABLES:
            if rows := msgspec.msgpack.decode(msgspec.msgpack.encode(getattr(new, table.name))):
                self._lake.append(table.name, rows, "test", self._batch)
        self._batch += 1
        self.told += self._alerter.poll()
        return new

    @property
    def rows(self) -> Rows:
        """All rows so far."""
        return self._job.rows

    def lag(self, group: str, topic: str, partition: int = 0) -> LagRow:
        """Newest row of a partition."""
        found = [r for r in self.rows.lag if (r.group_id, r.topic, r.partition) == (group, topic, partition)]
        return found[-1]

    def findings(self, group: str) -> dict[str, str]:
        """Present findings of a group, with their details."""
        newest: GroupHealthRow = [row for row in self.rows.group_health if row.group_id == group][-1]
        return {f.finding: f.detail for f in newest.findings}


@pytest.fixture
def monitor(cluster: Cluster, tmp_path: Path) -> Iterator[Monitor]:
    with Monitor(cluster, tmp_path) as running:
        yield running


class Booker:
    """A transactional producer that commits offsets for a group without members."""

    def __init__(self, cluster: Cluster, group: str, topic: str, out: str) -> None:
        self.transactional_id = f"{group}-producer"
        self._topic, self._out = topic, out
        self._consumer = LibrdkafkaConsumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
        self.producer = transactional_producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "transactional.id": self.transactional_id,
                # The broker's maximum: it must not abort the transaction for us.
                "transaction.timeout.ms": 900_000,
            }
        )

    def begin(self, offset: int) -> None:
        """Open a transaction that contains an offset of partition 0."""
        self.producer.begin_transaction()
        self.producer.produce(self._out, b"value", partition=0)
        offsets = [LibrdkafkaPartition(self._topic, 0, offset)]
        self.producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), 60)
        self.producer.flush(60)

    def commit(self, offset: int) -> None:
        self.begin(offset)
        self.producer.commit_transaction(60)

    def close(self) -> None:
        self._consumer.close()


def _neighbour(group: str, prefix: str, *, same: bool) -> str:
    """A group id in the same log partition as another group, or in another one."""
    names = (f"{prefix}-neighbour-{n}" for n in range(10_000))
    return next(n for n in names if (partition_for(n, 50) == partition_for(group, 50)) is same)


def _round_once_readable(monitor: Monitor, partition: int) -> None:
    """A round once the markers of all transactions are written. (Rounds before that would rightly see one open.)"""
    closed = monitor.round()
    if closed.log[partition] < closed.log_end[partition]:
        _wait_until_readable(monitor.settings.kafka.bootstrap_servers, partition)
        closed = monitor.round()
    # A round asks for the ends first: a marker written in between makes the position the greater of the two.
    assert closed.log[partition] >= closed.log_end[partition]


def _wait_until_readable(bootstrap: str, partition: int) -> None:
    at = TopicPartition("__consumer_offsets", partition)
    committed = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, isolation_level="read_committed")
    everything = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, isolation_level="read_uncommitted")
    with closing(committed), closing(everything):
        until(lambda: committed.end_offsets([at]) == everything.end_offsets([at]), _MARKER_S)


@pytest.mark.nightly
def test_transactional_commits_count_when_committed_and_a_hanging_one_is_one_alert(
    cluster: Cluster, monitor: Monitor
) -> None:
    unique = cluster.unique
    topic, out = cluster.topic("in", 1), cluster.topic("out", 1)
    cluster.produce(topic, [100])
    group = f"{unique}-eos"
    partition = partition_for(group, 50)
    near, far = _neighbour(group, unique, same=True), _neighbour(group, unique, same=False)
    for other in (near, far):
        cluster.commit(other.removeprefix(f"{unique}-"), topic, [3])
    booker = Booker(cluster, group, topic, out)

    # Committed ones count, aborted ones never.
    booker.commit(10)
    _round_once_readable(monitor, partition)
    booker.begin(1_000_010)
    booker.producer.abort_transaction(60)
    _round_once_readable(monitor, partition)
    monitor.look()
    row = monitor.lag(group, topic)
    assert (row.committed_offset, row.lag, row.ahead_by, row.commits) == (10, 90, 0, 1)

    # Short transactions, each open during a round, are not reported.
    for offset in range(11, 13 + HELD_ROUNDS):
        booker.begin(offset)
        closed = monitor.round()
        assert closed.log[partition] < closed.log_end[partition]
        booker.producer.commit_transaction(60)
        _round_once_readable(monitor, partition)
    last = 12 + HELD_ROUNDS
    rows = monitor.look()
    assert monitor.lag(group, topic).committed_offset == last
    assert (rows.open_transactions, monitor.told) == ([], [])
    assert {row.reason for row in monitor.rows.lag} == {None}

    # One hangs. A commit of another group in the same partition waits behind it.
    booker.begin(50)
    cluster.commit(near.removeprefix(f"{unique}-"), topic, [7])
    first = monitor.round()
    for _ in range(HELD_ROUNDS + _FOR_ROUNDS + 1):
        monitor.round()
    cluster.commit(far.removeprefix(f"{unique}-"), topic, [9])
    monitor.round()
    rows = monitor.look()
    listed = [t for of_broker in cluster.admin.list_transactions().values() for t in of_broker]
    [witness] = [t for t in listed if t.transactional_id == booker.transactional_id]
    [hold] = rows.open_transactions
    assert (hold.log_partition, hold.held, hold.groups) == (partition, True, 2)
    assert (hold.held_since, hold.held_offset) == (first.time, first.log[partition])
    assert (hold.producer_id, hold.transactional_id) == (witness.producer_id, booker.transactional_id)
    assert hold.waiting >= 2
    for of in (group, near):
        row = monitor.lag(of, topic)
        assert (row.lag, row.lag_status, row.reason) == (None, "unknown", "offsets_blocked")
        assert monitor.findings(of)["offsets_blocked"] == (
            f"lag is unknown, transaction '{booker.transactional_id}' is open: "
            f"no progress on partition {partition} of the offsets log"
        )
    assert (monitor.lag(far, topic).lag, monitor.findings(far)) == (91, {})
    fired = [(d.rule, d.state, d.group_id) for d in monitor.told]
    assert fired == [("offsets_blocked", "pending", None), ("offsets_blocked", "firing", None)]
    assert f"no progress on partition {partition} of the offsets log since " in monitor.told[-1].message
    assert booker.transactional_id in monitor.told[-1].message
    assert "the lag of 2 groups is unknown" in monitor.told[-1].message

    # It ends: everything continues, nothing was lost, its own offset never counts.
    booker.producer.abort_transaction(60)
    _round_once_readable(monitor, partition)
    booker.commit(60)
    _round_once_readable(monitor, partition)
    rows = monitor.look()
    assert [(h.log_partition, h.held, h.held_since) for h in rows.open_transactions] == [(partition, False, first.time)]
    assert [(d.rule, d.state) for d in monitor.told[2:]] == [("offsets_blocked", "resolved")]
    found = cluster.admin.list_group_offsets([group, near, far])
    for of, offset in ((group, 60), (near, 7), (far, 9)):
        assert found[of][TopicPartition(topic, 0)].offset == offset
        row = monitor.lag(of, topic)
        assert (row.committed_offset, row.lag, row.reason) == (offset, 100 - offset, None)
        assert monitor.findings(of) == {}
    committed = {row.committed_offset for row in monitor.rows.lag if row.group_id == group}
    assert committed == {10, *range(11, last + 1), 60}
    assert sum(row.commits for row in monitor.rows.lag if row.group_id == group) == len(committed)
    booker.close()
