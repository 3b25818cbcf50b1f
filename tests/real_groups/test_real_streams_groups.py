"""Real streams groups, and Kafka Streams with the classic protocol, beside Kafka's own tool and what threads say.

`RECORDS=folder` keeps the records of the long test's group (recorded.py).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka import KafkaAdminClient

from streaming.records import MembershipRecord, thread_of
from tests.probe.witness import Cluster
from tests.real_groups.followed import Followed, until
from tests.real_groups.party import make_topics, produce
from tests.real_groups.real_classic_streams import ClassicStreams, Tasks, tasks_in
from tests.real_groups.real_log import core_verdicts, offsets_log, read_on, record_group
from tests.real_groups.real_streams import Machine, configure_group, describe_streams_group
from tests.real_groups.recorded import Recording

DECISIONS = 300
PARTITIONS = 5


class App:
    """One application on two machines, and what the core says of its group."""

    def __init__(self, bootstrap: str, unique: str, first: Machine, second: Machine, followed: Followed) -> None:
        self.bootstrap, self.group, self.topic = bootstrap, f"{unique}-app", unique
        self.first, self.second, self.followed = first, second, followed

    def rests(self, members: int) -> bool:
        """Whether the group has these members, and all of them have their target and have read everything."""
        if f"g:{self.group}" not in self.followed.rows:
            return False
        health = self.followed.health(self.group)
        settled = health.state == "Stable" and not health.findings and health.members == members
        return settled and health.lag_total == 0 and health.lag_unknown == 0

    def rest(self, members: int) -> None:
        """Make rounds until it rests; then every figure is what the tool shows."""
        self.followed.round_until(lambda: self.rests(members))
        told = describe_streams_group(self.bootstrap, self.group)
        self.followed.round()
        health, lag = self.followed.health(self.group), self.followed.lag(self.group)
        assert (health.group_type, health.state, health.generation) == ("streams", told.state, told.target_epoch)
        assert told.epoch == told.target_epoch
        shown = {}
        for name, row in self.followed.members(self.group).items():
            tasks: dict[str, dict[str, set[int]]] = {}
            for of in row.tasks or ():
                tasks.setdefault(of.kind, {})[of.subtopology] = set(of.tasks)
            shown[name] = row.client_id, tasks
        assert shown == {name: (of.client_id, of.target) for name, of in told.members.items()}
        assert all(of.current == of.target for of in told.members.values())
        assert {at: (row.committed_offset, row.high_watermark, row.lag) for at, row in lag.items()} == told.offsets
        owned = {(row.subtopology, row.partition): row.member_id for row in lag.values()}
        assert owned == {
            (part, number): name
            for name, of in told.members.items()
            for part, numbers in of.current.get("active", {}).items()
            for number in numbers
        }

    def verdicts(self) -> list[tuple[str, str | None]]:
        drift = self.followed.drift(self.group)
        churn = [row for row in self.followed.churn(self.group) if row.kind == "rebalance"]
        return [(drift[row.decision].verdict, drift[row.decision].reason) for row in churn if row.decision in drift]


@contextmanager
def application(bootstrap: str, unique: str, folder: Path) -> Iterator[App]:
    with ExitStack() as stack:
        machines = [folder / "first", folder / "second"]
        first, second = (stack.enter_context(Machine(bootstrap, f"{unique}-app", one)) for one in machines)
        yield App(bootstrap, unique, first, second, stack.enter_context(Followed(bootstrap, unique)))


@pytest.mark.kafka
@pytest.mark.turn(2)
@pytest.mark.nightly
def test_an_application_scaled_rolled_and_killed_is_as_the_broker_says(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    make_topics(bootstrap, {unique: 4})
    produce(bootstrap, {unique: 4})
    with application(bootstrap, unique, tmp_path) as app:
        configure_group(bootstrap, app.group, streams_num_standby_replicas="1", streams_session_timeout_ms="6000")
        one = app.first.run(unique)
        app.rest(1)
        app.second.run(unique)
        app.rest(2)
        produce(bootstrap, {unique: 4})
        app.first.run(unique, threads=2)
        app.rest(4)
        app.first.stop(one)
        assert app.first.closed(one).wait(60)
        app.first.run(unique)
        app.rest(4)
        app.second.kill()
        app.rest(3)
        configure_group(bootstrap, app.group, streams_num_standby_replicas="0")
        app.followed.round_until(lambda: len(app.verdicts()) >= 7)
        app.rest(3)
        assert set(app.verdicts()) == {("identical", None)}
        churn = app.followed.churn(app.group)
        assert churn[0].joined is not None
        assert [c.evidence for c in churn[-1].causes or ()] == ["num.standby.replicas was 1 and is 0"]
        assert {row.partitions for row in churn if row.members} == {8}


@pytest.mark.kafka
@pytest.mark.turn(2)
@pytest.mark.nightly
def test_a_topology_whose_topics_are_wrong_or_gone_is_told(bootstrap: str, unique: str, tmp_path: Path) -> None:
    make_topics(bootstrap, {unique: 2})
    produce(bootstrap, {unique: 2})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with application(bootstrap, unique, tmp_path) as app:
        app.first.run(unique)
        app.rest(1)

        def details() -> dict[str, str]:
            return {one.finding: one.detail for one in app.followed.health(app.group).findings}

        admin.create_partitions([NewPartitions(unique, 4)])[unique].result(30)
        app.followed.round_until(lambda: "wrong_partition_counts" in details())
        assert f"{app.group}-store-repartition (needs 4, has 2)" in details()["wrong_partition_counts"]
        assert describe_streams_group(bootstrap, app.group).state == app.followed.health(app.group).state == "NotReady"
        admin.delete_topics([unique])[unique].result(30)
        app.followed.round_until(lambda: "missing_topics" in details())
        assert details()["missing_topics"] == f"the topology needs topics that do not exist: {unique} (source)"
        assert "drifted" not in {verdict for verdict, _ in app.verdicts()}


@pytest.mark.kafka
@pytest.mark.turn(2)
@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_no_decision_under_churn_is_called_drifted(bootstrap: str, unique: str, tmp_path: Path) -> None:
    chance = Random(unique)
    make_topics(bootstrap, {unique: PARTITIONS})
    produce(bootstrap, {unique: PARTITIONS})
    with application(bootstrap, unique, tmp_path) as app:
        configure_group(bootstrap, app.group, streams_num_standby_replicas="1")
        running: list[tuple[Machine, str]] = []

        def decisions() -> int:
            if f"g:{app.group}" not in app.followed.rows:
                return 0
            return len(app.followed.churn(app.group))

        while decisions() < DECISIONS:
            before = decisions()
            if running and chance.random() < 0.1 + 0.15 * len(running):
                machine, name = running.pop(chance.randrange(len(running)))
                machine.stop(name)
            else:
                machine = chance.choice((app.first, app.second))
                running.append((machine, machine.run(unique, threads=chance.randint(1, 3))))
            app.followed.round()
            until(lambda made=before: decisions() > made, app.followed.round)  # type: ignore[misc]
        if not running:
            app.first.run(unique)
        app.followed.round_until(lambda: app.followed.health(app.group).state == "Stable")
        if folder := os.environ.get("RECORDS"):
            topics = (unique, f"{app.group}-store-repartition", f"{app.group}-store-changelog")
            path = Path(folder) / "streams-sticky.jsonl"
            record_group(bootstrap, app.group, dict.fromkeys(topics, PARTITIONS), path)
        counted = Counter(app.verdicts())
        assert "drifted" not in {verdict for verdict, _ in counted}
        assert counted["identical", None] >= 0.9 * counted.total(), counted


COUNTED, READ, ALSO_READ = 4, 4, 3


# Decisions of the long run. Each change of members makes one or two.
CLASSIC_DECISIONS = int(os.environ.get("DECISIONS", "60"))


def classic_topics(bootstrap: str, unique: str) -> dict[str, int]:
    """Three topics, with their partition counts; the first one has records."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    cluster = Cluster(bootstrap, unique, admin)
    counts = {cluster.topic(name, count): count for name, count in (("a", COUNTED), ("b", READ), ("c", ALSO_READ))}
    cluster.produce(next(iter(counts)), [20] * COUNTED)
    admin.close()
    return counts


@pytest.mark.kafka
@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_threads_have_the_tasks_that_their_records_say_and_no_decision_is_drifted(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    """STREAMS_RECORDING names a file into which the group's records are written, for test_recorded_groups.py."""
    counts = classic_topics(bootstrap, unique)
    recording = Recording(Path(os.environ.get("STREAMS_RECORDING", tmp_path / "records.jsonl")))
    records: list[MembershipRecord] = []

    def keep(group: str, key: bytes, value: bytes | None, time: int) -> None:
        if group == unique:
            recording.saw(key, value, time)

    with (
        offsets_log(bootstrap) as log,
        ClassicStreams(bootstrap, unique, counts, tmp_path / "one") as one,
        ClassicStreams(bootstrap, unique, counts, tmp_path / "two") as two,
    ):

        def said_by(*processes: ClassicStreams) -> Tasks | None:
            told = [process.tasks() for process in processes]
            if None in told:
                return None
            return {client: tasks for of in told for client, tasks in (of or {}).items()}

        def rests(threads: int, *processes: ClassicStreams) -> None:
            """Wait until the newest record has what the threads say, and they are all."""
            known = len(records)

            def agree() -> bool:
                records.extend(record for group, record in read_on(log, keep=keep) if group == unique)
                if len(records) == known or len(records[-1].members) != threads:
                    return False
                tasks = tasks_in(records[-1])
                active = sorted(task for active, _ in tasks.values() for task in active)
                return tasks == said_by(*processes) and len(active) == COUNTED + max(READ, ALSO_READ)

            until(agree)
            recording.round(counts, tasks_in(records[-1]))

        one.start("first", 2)
        rests(2, one)
        one.start("second", 1)
        rests(3, one)
        two.start("third", 2)
        rests(5, one, two)
        one.close("second")
        one.start("second", 1)
        rests(5, one, two)
        two.kill()
        rests(3, one)
    verdicts = core_verdicts(records, counts)
    assert {row.verdict for row in verdicts} == {"unverified"}
    assert {(row.reason or "")[:27] for row in verdicts} == {"Kafka Streams places tasks "}
    threads = [thread_of(member) for record in records for member in record.members]
    assert {thread.version for thread in threads if thread is not None} == {11}
    # The threads of one instance are of one process.
    assert len({thread.process for thread in threads if thread is not None}) == 4
    assert any(thread.standby for thread in threads if thread is not None)


@pytest.mark.kafka
@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_no_decision_is_drifted_while_instances_come_and_go(bootstrap: str, unique: str, tmp_path: Path) -> None:
    """The environment variable DECISIONS sets how many are awaited: 300 take a quarter of an hour."""
    random = Random(unique)
    counts = classic_topics(bootstrap, unique)
    records: list[MembershipRecord] = []
    with (
        offsets_log(bootstrap) as log,
        ClassicStreams(bootstrap, unique, counts, tmp_path / "one", leaves=True) as instances,
    ):

        def has_decided() -> bool:
            known = len(records)
            records.extend(record for group, record in read_on(log) if group == unique)
            return len(records) > known

        running: list[str] = []
        for number in count():
            if len(records) >= CLASSIC_DECISIONS:
                break
            if len(running) < 2 or (len(running) < 5 and random.random() < 0.5):
                running.append(f"i{number}")
                instances.start(running[-1], random.randint(1, 3))
            else:
                instances.close(running.pop(random.randrange(len(running))))
            until(has_decided)
    verdicts = core_verdicts(records, counts)
    assert len(verdicts) >= CLASSIC_DECISIONS
    assert {row.verdict for row in verdicts} == {"unverified"}
    assert {(row.reason or "")[:27] for row in verdicts} == {"Kafka Streams places tasks "}
    assert all(tasks_in(record) for record in records)
