"""Probe and job beside brokers of other releases: a group rebalances, commits, and its admin client is the witness."""

from __future__ import annotations

import operator
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from tenacity import Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from streaming import jars
from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.demo import broker as embedded
from streaming.demo.broker import EmbeddedBroker
from streaming.job.source.connection import kept_readers
from streaming.job.source.settings import SourceSettings
from streaming.probe import Probe, check
from tests.e2e.plain_job import PlainJob, present

pytestmark = [pytest.mark.kafka, pytest.mark.soak, pytest.mark.timeout(900)]

# Their jars are fetched by this test alone: `make setup` does without them.
_JARS = Path(__file__).with_name("brokers.toml")
_PARTITIONS, _RECORDS = 6, 10


class _OtherRelease(EmbeddedBroker):
    """A broker that formats its folder itself: the prepared one has metadata of the newest release."""

    def _format(self) -> None:
        tool = ["kafka.tools.StorageTool", "format", "-t", embedded._cluster_id(), "-c", self._properties]
        subprocess.run([*self._java(), *tool], check=True, capture_output=True)


@pytest.fixture(params=["3.9.1", "4.1.1"])
def release(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EmbeddedBroker]:
    """A broker of another release than the demo's."""
    with monkeypatch.context() as patch, ExitStack() as undone:
        undone.callback(jars.jar_sets.cache_clear)
        patch.setattr(jars, "_JARS_FILE", _JARS)
        jars.jar_sets.cache_clear()
        jars.fetch([request.param])
        paths = jars.classpath(request.param)
    monkeypatch.setattr(embedded, "classpath", lambda _: paths)
    monkeypatch.setattr(EmbeddedBroker, "jvm", ())
    monkeypatch.setattr(embedded, "_START_S", 400.0)  # it has no archive of classes
    with _OtherRelease(tmp_path / "broker") as running:
        yield running


@contextmanager
def _reading(bootstrap: str) -> Iterator[Callable[[], None]]:
    """Gives what begins another member of the group "billing", which reads and commits until the end of the block."""
    stop, members = threading.Event(), list[threading.Thread]()

    def read() -> None:
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=bootstrap, group_id="billing", auto_offset_reset="earliest",
            auto_commit_interval_ms=200,
        )  # fmt: skip
        while not stop.is_set():
            consumer.poll(timeout_ms=200)
        consumer.close()

    def begin() -> None:
        members.append(threading.Thread(target=read))
        members[-1].start()

    try:
        yield begin
    finally:
        stop.set()
        for member in members:
            member.join()


def _members(admin: KafkaAdminClient) -> int:
    """How many members a stable group has."""
    described = admin.describe_groups(["billing"])["billing"]
    return len(described["members"]) if described["group_state"] == "Stable" else 0


def _committed(admin: KafkaAdminClient) -> dict[int, int]:
    return {place.partition: found.offset for place, found in admin.list_group_offsets("billing")["billing"].items()}


_until = Retrying(
    retry=retry_if_result(operator.not_) | retry_if_exception_type(KafkaError),
    wait=wait_fixed(0.2),
    stop=stop_after_delay(240),
    reraise=True,
)


def test_rows_beside_a_broker_of_another_release_say_what_its_admin_client_says(release: EmbeddedBroker) -> None:
    bootstrap = release.bootstrap
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({"orders": {"num_partitions": _PARTITIONS, "replication_factor": 1}}, wait_for_metadata=True)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(_PARTITIONS * _RECORDS):
        producer.send("orders", b"value", partition=number % _PARTITIONS)
    producer.flush()
    settings = Settings(
        cluster="release",
        kafka=KafkaSettings(bootstrap_servers=bootstrap),
        filters=Filters(groups=("billing",)),
        probe=ProbeSettings(interval_ms=200, cluster_topics=False),
    )
    assert check(settings) == []
    with Probe(settings) as probe, _reading(bootstrap) as begin_another:
        begin_another()
        _until(lambda: _members(admin) == 1)
        probe.round()
        begin_another()  # which rebalances
        _until(lambda: _members(admin) == 2 and _committed(admin) == dict.fromkeys(range(_PARTITIONS), _RECORDS))
        probe.round()
        probe.round()
        described = admin.describe_groups(["billing"])["billing"]
    job = PlainJob(SourceSettings.of(settings), kept_readers)
    job.run()

    now = present(job.rows)
    committed = {key[2]: row["committed_offset"] for key, row in now["lag"].items()}
    assert committed == dict.fromkeys(range(_PARTITIONS), _RECORDS)
    assert {row["lag"] for row in now["lag"].values()} == {0}
    assert {key[1] for key in now["members"]} == {member["member_id"] for member in described["members"]}
    assert len(now["members"]) == 2
    # Not applicable: on a busy machine a member may come back after a moment in which the group had none.
    assert {row.verdict for row in job.rows.drift} - {"not_applicable"} == {"identical"}
    assert len({row.generation for row in job.rows.rebalance_churn}) >= 2
    assert job.rows.quarantine == []
    admin.close()
    producer.close()
