"""Topics that were created again on a real broker, with the real probe and a job without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.job.source.connection import kept_readers
from streaming.job.source.settings import SourceSettings
from streaming.probe import Probe
from tests.e2e.plain_job import PlainJob
from tests.probe.witness import Cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900), pytest.mark.turn(5)]


def test_a_probe_s_topics_that_are_created_again_are_taken_up_and_no_number_comes_twice(
    cluster: Cluster, tmp_path: Path
) -> None:
    unique = cluster.unique
    settings = Settings(
        cluster=unique,
        lake=str(tmp_path / "lake"),
        kafka=KafkaSettings(bootstrap_servers=cluster.bootstrap),
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(
            interval_ms=200, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
    )
    topics = [settings.probe.events_topic, settings.probe.rounds_topic]
    group = cluster.commit("g", cluster.topic("orders", 1), [0])
    job = PlainJob(SourceSettings.of(settings), kept_readers)
    with Probe(settings) as probe:
        for _ in range(4):
            probe.round()
    job.run()
    before = [row.round for row in job.rows.rounds]
    assert before == [0, 2, 4, 6]

    cluster.admin.delete_topics(topics)
    with Probe(settings) as probe:
        for _ in range(6):
            probe.round()
    cluster.commit("g", f"{unique}-orders", [5])
    with Probe(settings) as probe:
        probe.round()
    # The client's metadata is some seconds old, as in a running job.
    kept_readers(SourceSettings.of(settings)).bus.partitions(settings.probe.rounds_topic)
    job.run()

    rounds = job.rows.rounds
    numbers = [row.round for row in rounds]
    assert numbers == sorted(set(numbers))
    # At 12 is the mark that the second probe ended.
    assert [row.opened_offset for row in rounds] == [0, 2, 4, 6, 0, 2, 4, 6, 8, 10, 13]
    assert all(row.round - row.opened_offset == 8 for row in rounds[4:])
    assert {(gap.kind, gap.topic, gap.from_offset) for gap in job.rows.gaps if gap.kind != "rounds"} >= {
        ("recreated", settings.probe.rounds_topic, 8)
    }
    newest = [row for row in job.rows.lag if row.group_id == group][-1]
    assert (newest.round, newest.committed_offset) == (numbers[-1], 5)
