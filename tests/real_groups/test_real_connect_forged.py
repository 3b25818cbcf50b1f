"""Forged Connect workers on a real broker: a unit that their leader deals to nobody, and one that it deals twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.coordinator.base import BaseCoordinator

from assignors.connect import Unit
from tests.groups.connect.workers import by_connector, connector, url
from tests.offsets_log.connect_bytes import worker_assignment, worker_state
from tests.real_groups.followed import Followed, until

pytestmark = pytest.mark.kafka

_TIMEOUT_MS = 4_000
"""Rebalance timeout of the workers: until it is over, a unit may be dealt with the next rebalance."""

Deal = Callable[[Sequence[str]], Mapping[str, Sequence[Unit]]]
"""Who gets what, by the ids of those who joined."""


class ForgedWorker(BaseCoordinator):  # type: ignore[misc]  # kafka-python has no types
    """A worker that joins with nothing, and leads by a rule of its own. A context manager."""

    def __init__(self, bootstrap: str, group: str, deal: Deal) -> None:
        self._deal = deal
        self._ended = threading.Event()
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        super().__init__(
            self._consumer._client,
            group_id=group,
            session_timeout_ms=30_000,
            heartbeat_interval_ms=200,
            max_poll_interval_ms=_TIMEOUT_MS,
            api_version=self._consumer.config["api_version"],
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self.close(timeout_ms=5_000)
        self._consumer.close()

    def protocol_type(self) -> str:
        return "connect"

    def group_protocols(self) -> list[tuple[str, bytes]]:
        return [("sessioned", worker_state(2, url("w"), 9))]

    def _perform_assignment(self, leader_id: str, protocol: str, members: Sequence[Any]) -> dict[str, bytes]:
        assert protocol == "sessioned"
        dealt = self._deal([member.member_id for member in members])
        return {
            name: worker_assignment(2, leader_id, url("w"), 9, by_connector(dealt.get(name, ())))
            for name in [member.member_id for member in members]
        }

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            self.ensure_active_group(timeout_ms=1_000)
            self.poll_heartbeat()


def test_a_unit_that_a_leader_deals_to_nobody_is_missing_and_one_that_it_deals_twice_is_drift(
    bootstrap: str, unique: str
) -> None:
    group, topic = f"{unique}-workers", f"{unique}-configs"
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for name in ("files", "db"):
        for key, value in (
            (f"connector-{name}", {"properties": {}}),
            (f"task-{name}-0", {"properties": {}}),
            (f"commit-{name}", {"tasks": 1}),
        ):
            producer.send(topic, json.dumps(value).encode(), key.encode())
    producer.flush()
    producer.close()
    admin.close()

    files = connector("files", 0)

    def deal(members: Sequence[str]) -> Mapping[str, Sequence[Unit]]:
        return dict.fromkeys(members, files)

    with (
        Followed(bootstrap, unique, connect_config_topics={group: topic}, interval_ms=1_000) as followed,
        ForgedWorker(bootstrap, group, deal),
    ):

        def findings() -> dict[str, str]:
            rows = followed.rows[f"g:{group}"].group_health
            return {one.finding: one.detail for row in rows[-1:] for one in row.findings}

        until(lambda: any(row.verdict == "identical" for row in followed.drift(group).values()), followed.round)
        assert findings() == {}
        until(findings, followed.round)
        assert findings() == {"unassigned": f"configured in topic {topic}, and run by nobody: connector db, task db-0"}
        with ForgedWorker(bootstrap, group, deal):
            until(lambda: followed.health(group).verdict == "drifted", followed.round)
            (row,) = [row for row in followed.drift(group).values() if row.verdict == "drifted"]
            assert (row.basis, row.reason) == ("invariant", "connectors or tasks run on two workers")
            assert {(of.topic, of.partition, of.kind) for of in row.drifted_partitions} == {
                ("files", -1, "doubly_assigned"), ("files", 0, "doubly_assigned")
            }  # fmt: skip
