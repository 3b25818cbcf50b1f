"""From a real RocketMQ cluster through a folder in the lake to the tables: probe, source, core, rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.config import Filters, JobSettings, KafkaSettings, ProbeSettings, RocketMQSettings, Settings
from streaming.groups import Rows, encode_rows
from streaming.job.batch import rows_by_table
from streaming.job.operator import group_config
from streaming.job.source.connection import kept_readers
from streaming.job.source.settings import SourceSettings
from streaming.probe.rocketmq.run import RocketMQProbe
from streaming.tables import DeltaLake, LakeReader
from tests.e2e.plain_job import PlainJob
from tests.rocketmq import recipes
from tests.rocketmq.look import holders, look_until
from tests.rocketmq.servers import EmbeddedRocketMQ

pytestmark = [
    pytest.mark.java,
    pytest.mark.xdist_group("broker"),
    pytest.mark.turn(10),
    pytest.mark.timeout(600),
]


@pytest.fixture
def settings(rocketmq: EmbeddedRocketMQ, unique: str, tmp_path: Path) -> Settings:
    return Settings(
        cluster=unique,
        lake=str(tmp_path / "lake"),
        # An address that nobody listens on: the job must not ask for a Kafka cluster that is not watched.
        kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"),
        rocketmq=RocketMQSettings(name_servers=rocketmq.addresses[0]),
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(interval_ms=200),
        job=JobSettings(max_rounds=2, trigger_ms=0),
    )


def some_rounds(settings: Settings, rocketmq: EmbeddedRocketMQ, group: str, topic: str) -> dict[str, list[str]]:
    """Rounds over a group that settles, consumes and is joined by a third member; the owners at the end."""
    first = rocketmq.addresses[:1]

    def deals(members: int) -> dict[str, list[str]]:
        seen = look_until(
            first,
            group,
            lambda seen: (
                [len(of) for of in holders(seen, topic).values()] == [1] * 8
                and len({of[0] for of in holders(seen, topic).values()}) == members
                and len(holders(seen, f"%RETRY%{group}")) == 2
                and all(
                    len(queues.committed or ()) == 4
                    for one in seen.topics
                    if one.topic == topic
                    for queues in one.queues
                )
            ),
        )
        return holders(seen, topic)

    with rocketmq.commands() as commands, RocketMQProbe(settings) as probe:
        commands.create_topic(topic, 4)
        with recipes.steady(first, group, topic, count=2):
            for broker in rocketmq.brokers:
                for queue in range(4):
                    commands.send(topic, broker, queue, [b"x"] * 5)
            deals(2)
            for _ in range(3):
                probe.round()
        with recipes.steady(first, group, topic, count=3):
            owners = deals(3)
            for _ in range(3):
                probe.round()
    return owners


@pytest.mark.nightly
def test_rows_are_those_of_the_group_however_its_rounds_are_cut_into_batches(
    settings: Settings, rocketmq: EmbeddedRocketMQ, unique: str
) -> None:
    owners = some_rounds(settings, rocketmq, unique, unique)
    one_by_one, at_once = (
        PlainJob(SourceSettings.of(settings), kept_readers, rounds_per_batch=rounds, config=group_config(settings))
        for rounds in (1, 60)
    )
    one_by_one.run()
    at_once.run()
    rows = at_once.rows
    for table in Rows.__struct_fields__:
        assert sorted(map(repr, getattr(one_by_one.rows, table))) == sorted(map(repr, getattr(rows, table))), table

    health = rows.group_health[-1]
    assert (health.source, health.group_type, health.members, health.verdict) == (
        "rocketmq",
        "rocketmq",
        3,
        "identical",
    )
    assert (health.generation, health.log_partition, health.commits, health.findings) == (None, None, None, ())
    assert (health.lag_total, health.partitions, health.topics) == (0, 10, 2)
    newest = max(row.decision for row in rows.members)
    held = {
        f"{(given.broker or '')[-1]}{queue}": [member.member_id]
        for member in rows.members
        if member.decision == newest and not member.ended
        for given in member.partitions or ()
        if given.topic == unique
        for queue in given.partitions
    }
    assert held == owners
    assert rows.rebalance_churn[0].kind == "created"
    assert {cause.cause for row in rows.rebalance_churn for cause in row.causes or ()} >= {"member_joined"}
    lag = {
        (row.broker, row.partition): (row.committed_offset, row.high_watermark, row.lag)
        for row in rows.lag
        if row.topic == unique
    }
    assert lag == {(broker, queue): (5, 5, 0) for broker in rocketmq.brokers for queue in range(4)}
    assert {row.source for row in rows.rounds} == {"rocketmq"}

    # And the tables take every one of these rows.
    lake = DeltaLake(settings.lake)
    lake.create()
    for name, arrow in rows_by_table([encode_rows(rows)]).items():
        lake.append(name, arrow, "test", 0)
    tables = LakeReader(settings.lake)
    [told] = tables.rows("SELECT verdict, members FROM group_health_current")
    assert told == {"verdict": "identical", "members": 3}
