"""Real and forged Connect workers, which start, crash, leave and return, with a file source and a sink.

Whenever the group is at rest, what the core says each of them runs is what their REST API says.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.coordinator.base import BaseCoordinator

from assignors.connect import Unit
from streaming.config import KafkaSettings
from streaming.probe.clients import open_reader
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.connect_groups import ConfigTail
from streaming.records import group_key
from tests.groups.connect.workers import by_connector, connector, url
from tests.offsets_log.connect_bytes import worker_assignment, worker_state
from tests.probe.witness import Cluster
from tests.real_groups.both_modes import BothModes
from tests.real_groups.connect_worker import ConnectWorker, Units
from tests.real_groups.followed import Followed, until
from tests.real_groups.real_log import offsets_log, read_on
from tests.real_groups.recorded import Recording

PARTITIONS, RECORDS = 4, 5


@pytest.mark.kafka
@pytest.mark.java
@pytest.mark.soak
@pytest.mark.timeout(900)
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
            verdicts = ("verdict", "verdict_reason")  # met with its assignment
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


_DELAY_MS = 4_000
"""`scheduled.rebalance.max.delay.ms`: long enough that rounds see it, short enough to wait for its end."""

_SETTLED_S = 3.0
"""A change that makes a decision makes it within a second or two."""


@pytest.mark.kafka
@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_what_is_said_of_real_workers_is_what_their_rest_api_says(bootstrap: str, unique: str, tmp_path: Path) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    cluster = Cluster(bootstrap, unique, admin)
    topic = cluster.topic("lines", 2)
    group = f"{unique}-workers"
    recording = Recording(tmp_path / "connect.jsonl")
    with ExitStack() as stack:
        log = stack.enter_context(offsets_log(bootstrap))
        followed = stack.enter_context(
            Followed(bootstrap, unique, connect_config_topics={group: f"{group}-config"}, interval_ms=1_000)
        )

        def keep(name: str, key: bytes, value: bytes | None, at: int) -> None:
            if name == group:
                recording.saw(key, value, at)

        def said() -> Units:
            return frozenset(
                (row.client_host, of.topic, number)
                for row in followed.members(group).values()
                for of in row.partitions or ()
                for number in of.partitions
            )

        def at_rest(worker: ConnectWorker, units: int, workers: int) -> None:
            def agree() -> bool:
                followed.round()
                told, health = worker.running(), followed.health(group)
                findings = {one.finding for one in health.findings} - {"idle_members"}
                return health.members == workers and not findings and len(told) == units and said() == told

            until(agree)
            list(read_on(log, keep=keep))
            recording.round({})
            assert followed.health(group).assigned_partitions == units

        def done(asked: Callable[[], bool]) -> None:
            until(asked, followed.round)

        one, two, three = (
            ConnectWorker(bootstrap, group, tmp_path / name, delay_ms=_DELAY_MS) for name in ("one", "two", "three")
        )
        # The first one leads. A leader that follows on one that crashed waits for nobody.
        stack.enter_context(one)
        until(one.answers)
        stack.enter_context(two)
        until(two.answers)
        for name in ("first", "second"):
            done(lambda name=name: one.source(f"{unique}-{name}", topic))
        done(lambda: one.sink(f"{unique}-sink", topic, tasks=3))
        at_rest(one, 2 * 2 + 4, 2)

        stack.enter_context(three)
        until(three.answers)
        at_rest(one, 8, 3)

        done(lambda: one.sink(f"{unique}-sink", topic, tasks=6))
        at_rest(one, 11, 3)

        two.crash()
        at_rest(one, 11, 2)
        pending = [row for row in followed.churn(group) if row.partitions_pending_handover and row.left]
        assert pending, "the leader waited for the worker that crashed"

        stack.enter_context(two)  # rolled: each leaves and returns
        until(two.answers)
        at_rest(two, 11, 3)
        one.leave()
        stack.enter_context(one)
        until(one.answers)
        at_rest(two, 11, 3)

        done(lambda: two.delete(f"{unique}-first"))
        at_rest(two, 9, 3)

        def says_what_rest_says(expected: Mapping[str, tuple[int, str]]) -> None:
            reader = ConfigTail(f"{group}-config", partial(open_reader, KafkaSettings(bootstrap_servers=bootstrap)))

            def agree() -> bool:
                followed.round()
                ends = admin.list_partition_offsets({TopicPartition(reader.topic, 0): OffsetSpec.LATEST})
                (end,) = [of.offset for of in ends.values()]
                assert reader.read_to({0: end}, None, Deadline.after(30)) is None
                told = {of.name: (of.tasks, of.state) for of in reader.configs.connectors}
                return told == two.configured() == expected

            until(agree)
            reader.close()

        second, sink = f"{unique}-second", f"{unique}-sink"
        says_what_rest_says({second: (1, "STARTED"), sink: (6, "STARTED")})
        done(lambda: two.put(second, "pause"))
        done(lambda: two.put(sink, "stop"))
        says_what_rest_says({second: (1, "PAUSED"), sink: (0, "STOPPED")})
        done(lambda: two.put(sink, "resume"))
        says_what_rest_says({second: (1, "PAUSED"), sink: (6, "STARTED")})
        found = {one.finding for row in followed.rows[group_key(group)].group_health for one in row.findings}
        assert found.isdisjoint({"unassigned", "no_such_partition"})

        verdicts = Counter(row.verdict for row in followed.drift(group).values())
        assert verdicts["drifted"] == 0
        assert verdicts["identical"] >= 0.8 * verdicts.total(), verdicts
        moves = sum(row.partitions_moved or 0 for row in followed.churn(group))
        assert moves > 0
    admin.close()


@pytest.mark.kafka
@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.timeout(3_000)
def test_no_decision_of_real_workers_whose_connectors_and_members_change_is_drifted(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    wanted = int(os.environ.get("GENERATIONS", "30"))
    group, sink, dice = f"{unique}-workers", f"{unique}-sink", Random(7)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    topic = Cluster(bootstrap, unique, admin).topic("lines", 2)
    with ExitStack() as stack:
        followed = stack.enter_context(Followed(bootstrap, unique, interval_ms=1_000))
        one, two = (ConnectWorker(bootstrap, group, tmp_path / name, delay_ms=500) for name in ("one", "two"))
        for worker in (one, two):
            stack.enter_context(worker)
            until(worker.answers)
        while len(followed.drift(group)) < wanted:
            before = len(followed.churn(group))
            change = dice.random()
            if change < 0.05:
                two.leave()
                stack.enter_context(two)
                until(two.answers)
            elif change < 0.2:
                until(lambda: one.source(f"{unique}-lines", topic), followed.round)
            elif change < 0.35 and f"{unique}-lines" in one.configured():
                until(lambda: one.delete(f"{unique}-lines"), followed.round)
            else:
                tasks = dice.randint(1, 6)
                until(lambda tasks=tasks: one.sink(sink, topic, tasks=tasks), followed.round)
            followed.round()
            # A change to what is configured already makes no decision.
            stop = time.monotonic() + _SETTLED_S
            while len(followed.churn(group)) == before and time.monotonic() < stop:
                followed.round()
        verdicts = Counter(row.verdict for row in followed.drift(group).values())
        assert verdicts["drifted"] == 0
        assert verdicts["identical"] >= 0.8 * verdicts.total(), verdicts
    admin.close()


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


@pytest.mark.kafka
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
