"""A real Kafka Connect cluster: its workers' group, and the group of its sink's tasks, in both modes."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from tests.probe.witness import Cluster
from tests.real_groups.both_modes import BothModes
from tests.real_groups.connect_worker import ConnectWorker
from tests.real_groups.followed import until

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(900)]

PARTITIONS, RECORDS = 4, 5


def test_workers_own_connectors_and_tasks_and_a_sink_is_a_group_like_any_other(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    cluster = Cluster(bootstrap, unique, admin)
    topic = cluster.topic("orders", PARTITIONS)
    cluster.produce(topic, [RECORDS] * PARTITIONS)
    workers, sink = f"{unique}-workers", f"{unique}-sink"
    with (
        BothModes(bootstrap, unique) as modes,
        ConnectWorker(bootstrap, workers, tmp_path / "first") as first,
    ):
        until(first.answers)
        until(lambda: first.sink(sink, topic, tasks=2))
        until(lambda: first.running_tasks(sink) == 2)
        _read_to_the_end(admin, sink)
        modes.round()
        modes.round()
        for group in (workers, sink):
            verdicts = ("verdict", "verdict_reason")  # (met with its assignment)
            found = {at: of for at, of in modes.differing(group, decided=False).items() if set(of) - set(verdicts)}
            assert found == {}
        assert _shape(modes, workers) == (1, 3, "identical")
        assert _shape(modes, sink)[:2] == (2, PARTITIONS)

        with ConnectWorker(bootstrap, workers, tmp_path / "second") as second:
            until(second.answers)
            until(lambda: modes.round() or _shape(modes, workers)[:2] == (2, 3))
            # Tasks are said to run until the workers have agreed who runs them from now on, and start again then.
            until(lambda: modes.round() or _shape(modes, sink) == (2, PARTITIONS, "identical"))
            until(lambda: first.running_tasks(sink) == 2)
            _read_to_the_end(admin, sink)
            modes.round()
            modes.round()
            assert modes.differing(workers, decided=False) == {}
            assert modes.differing(sink, decided=False) == {}
            assert _shape(modes, workers) == (2, 3, "identical")
            assert _shape(modes, sink) == (2, PARTITIONS, "identical")
        for mode in (modes.log, modes.admin):
            assert all(row.verdict != "drifted" for group in (workers, sink) for row in mode.drift(group).values())
            assert mode.health(workers).findings == mode.health(sink).findings == ()
    admin.close()


def _shape(modes: BothModes, group: str) -> tuple[int, int, str]:
    """Members, assigned partitions and verdict, the same in both modes."""
    by_log, seen = modes.log.health(group), modes.admin.health(group)
    shape = (by_log.members, by_log.assigned_partitions, by_log.verdict)
    return shape if (seen.members, seen.assigned_partitions) == shape[:2] else (-1, -1, seen.verdict)


def _read_to_the_end(admin: KafkaAdminClient, group: str) -> None:
    def read() -> bool:
        offsets = admin.list_group_offsets(group)
        of_group = offsets.get(group, offsets)
        return sorted(meta.offset for meta in of_group.values()) == [RECORDS] * PARTITIONS

    until(read)
