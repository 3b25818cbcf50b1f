"""A real Kafka Streams application with the classic protocol: instances join, crash and are deployed again."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from random import Random

import pytest
from kafka import KafkaAdminClient

from streaming.records import MembershipRecord, thread_of
from tests.probe.witness import Cluster
from tests.real_groups.followed import until
from tests.real_groups.real_classic_streams import ClassicStreams, Tasks, tasks_in
from tests.real_groups.real_log import core_verdicts, offsets_log, read_on
from tests.real_groups.recorded import Recording

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.nightly, pytest.mark.timeout(3600)]

COUNTED, READ, ALSO_READ = 4, 4, 3


# Decisions of the long run. Each change of members makes one or two.
DECISIONS = int(os.environ.get("DECISIONS", "60"))


def make_topics(bootstrap: str, unique: str) -> dict[str, int]:
    """Three topics, with their partition counts; the first one has records."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    cluster = Cluster(bootstrap, unique, admin)
    counts = {cluster.topic(name, count): count for name, count in (("a", COUNTED), ("b", READ), ("c", ALSO_READ))}
    cluster.produce(next(iter(counts)), [20] * COUNTED)
    admin.close()
    return counts


def test_threads_have_the_tasks_that_their_records_say_and_no_decision_is_drifted(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    """STREAMS_RECORDING names a file into which the group's records are written, for test_recorded_groups.py."""
    counts = make_topics(bootstrap, unique)
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


def test_no_decision_is_drifted_while_instances_come_and_go(bootstrap: str, unique: str, tmp_path: Path) -> None:
    """The environment variable DECISIONS sets how many are awaited: 300 take a quarter of an hour."""
    random = Random(unique)
    counts = make_topics(bootstrap, unique)
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
            if len(records) >= DECISIONS:
                break
            if len(running) < 2 or (len(running) < 5 and random.random() < 0.5):
                running.append(f"i{number}")
                instances.start(running[-1], random.randint(1, 3))
            else:
                instances.close(running.pop(random.randrange(len(running))))
            until(has_decided)
    verdicts = core_verdicts(records, counts)
    assert len(verdicts) >= DECISIONS
    assert {row.verdict for row in verdicts} == {"unverified"}
    assert {(row.reason or "")[:27] for row in verdicts} == {"Kafka Streams places tasks "}
    assert all(tasks_in(record) for record in records)
