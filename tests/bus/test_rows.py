"""The rows of a RocketMQ cluster whose bus is a folder: those of a Kafka as the bus, and what is lost is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from streaming.bus import FolderObjects, FolderReader
from streaming.config import Filters, KafkaSettings, ProbeSettings, RocketMQSettings, Settings
from streaming.groups import Rows
from streaming.job.operator import group_config
from streaming.job.source.connection import Readers, kept_readers
from streaming.job.source.settings import SourceSettings
from streaming.probe import RoundAbandonedError, rounds_probe
from streaming.probe.bus import Acknowledged, FolderAppender, KeyValue
from streaming.probe.clients import open_reader
from streaming.probe.deadline import AnotherProbeError, Deadline
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.observe import RocketMQLook
from streaming.probe.rocketmq.run import RocketMQProbe
from streaming.probe.standby.others import Identity
from streaming.records import RoundClosed
from tests.e2e.plain_job import PlainJob
from tests.job.source.fake_reader import FakeReader
from tests.rocketmq.recorded import Recorded

RECORDED = Path(__file__).parents[1] / "rocketmq" / "data"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    # A name server and brokers that nobody listens on: no test asks them.
    return Settings(
        cluster="mq",
        lake=str(tmp_path / "lake"),
        kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"),
        rocketmq=RocketMQSettings(name_servers="127.0.0.1:1"),
        probe=ProbeSettings(interval_ms=200),
    )


def looks() -> Iterator[RocketMQLook]:
    """What rounds see: a recorded cluster at rest, then without a member, then with all of them again."""
    with Recorded(max(RECORDED.glob("*.jsonl"))) as client:
        whole = RocketMQCluster(client, ["127.0.0.1:9876"], Filters()).observe_groups(
            [], frozenset(), 1_000, Deadline.after(60)
        )
    [(group, seen)] = whole.groups.items()
    left = tuple(replace_struct(broker, clients=broker.clients[:2]) for broker in seen.brokers)
    fewer = replace_struct(seen, members=seen.members[:2], brokers=left)
    for look in (seen, seen, seen, fewer, fewer, fewer, seen, seen, seen):
        yield replace(whole, groups={group: look})


def replace_struct(value: Any, **changes: object) -> Any:
    return msgspec.structs.replace(value, **changes)


class ScriptedProbe(RocketMQProbe):
    """Sees what a script says; everything else is the probe's own."""

    def __init__(
        self,
        settings: Settings,
        script: Iterator[RocketMQLook],
        probe: str = "one",
        supervisor: str | None = "the tests",
    ) -> None:
        super().__init__(settings, who=Identity(probe, supervisor))
        self._script = script

    def _prepare(self, *_: object) -> None:
        self._cluster = self  # type: ignore[assignment]

    def observe_groups(self, *_: object) -> RocketMQLook:
        return next(self._script)


class Mirror(Protocol):
    def write(self, topic: str, record: KeyValue, at: Acknowledged) -> None: ...

    def readers(self) -> Readers: ...


class InMemory:
    """Both topics in memory, with what the folder gave each record."""

    def __init__(self) -> None:
        self._reader = FakeReader()

    def write(self, topic: str, record: KeyValue, at: Acknowledged) -> None:
        assert self._reader.append(topic, at.partition, record[1], record[0], at.timestamp) == at.offset

    def readers(self) -> Readers:
        return Readers(None, self._reader)  # type: ignore[arg-type]


class OnKafka:
    """Both topics on a real broker, which keeps the times that the folder gave."""

    def __init__(self, bootstrap: str, topics: Iterable[str]) -> None:
        self._bootstrap = bootstrap
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        if new := [NewTopic(topic, 1, 1) for topic in topics]:
            admin.create_topics(new)
        admin.close()
        self._producer = KafkaProducer(bootstrap_servers=bootstrap)

    def write(self, topic: str, record: KeyValue, at: Acknowledged) -> None:
        sent = self._producer.send(topic, record[1], record[0], partition=0, timestamp_ms=at.timestamp)
        assert sent.get(30).offset == at.offset

    def readers(self) -> Readers:
        return Readers(None, open_reader(KafkaSettings(bootstrap_servers=self._bootstrap)))


class Mirrored(FolderAppender):
    """A folder's appender that writes the same to a mirror."""

    def __init__(self, settings: Settings, mirror: Mirror) -> None:
        assert settings.bus_folder is not None
        super().__init__(FolderObjects(settings.bus_folder, settings.cluster), settings.probe.retention_ms)
        self._mirror = mirror

    def append(
        self, topic: str, records: Iterable[KeyValue], timestamp: int | None, deadline: Deadline
    ) -> list[Acknowledged]:
        some = list(records)
        got = super().append(topic, some, timestamp, deadline)
        for record, at in zip(some, got, strict=True):
            self._mirror.write(topic, record, at)
        return got


def job(settings: Settings, readers: Readers | None = None, rounds_per_batch: int = 60) -> PlainJob:
    source = SourceSettings.of(settings)
    connect = kept_readers if readers is None else lambda *_: readers
    return PlainJob(source, connect, rounds_per_batch, config=group_config(settings))


def as_after_a_start(settings: Settings) -> Readers:
    return Readers(None, FolderReader(FolderObjects(str(settings.bus_folder), settings.cluster), 0.0))


def counted(rows: Rows) -> dict[str, list[str]]:
    return {table: sorted(map(repr, getattr(rows, table))) for table in Rows.__struct_fields__}


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def mirror(request: pytest.FixtureRequest) -> Mirror:
    if request.param == "memory":
        return InMemory()
    # The test names its topics: other tests find Evenkeel's own, as a probe makes them, on the broker that they share.
    return OnKafka(request.getfixturevalue("bootstrap"), ())


def test_rows_are_those_of_a_kafka_as_the_bus_however_rounds_are_cut(
    settings: Settings, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    if isinstance(mirror, OnKafka):
        names = {"rounds_topic": f"{unique}.rounds", "events_topic": f"{unique}.events"}
        settings = settings.model_copy(update={"probe": settings.probe.model_copy(update=names)})
        mirror = OnKafka(mirror._bootstrap, names.values())
    monkeypatch.setattr(rounds_probe, "open_appender", lambda settings: Mirrored(settings, mirror))
    with ScriptedProbe(settings, looks()) as probe:
        closed = [probe.round() for _ in range(9)]
    on_kafka = job(settings, mirror.readers())
    on_kafka.run()
    expected = counted(on_kafka.rows)
    assert len(expected["rounds"]) == len(closed) == 9
    assert expected["lag"]
    assert {row.kind for row in on_kafka.rows.rebalance_churn} >= {"created"}
    for rounds in (1, 4, 60):
        in_folder = job(settings, rounds_per_batch=rounds)
        in_folder.run()
        assert counted(in_folder.rows) == expected
    # Restarted from its checkpoint after each of its runs, in a process that knows nothing.
    stopped = job(settings)
    for _ in range(5):
        stopped.connect = lambda *_: as_after_a_start(settings)
        stopped.run(rounds=2)
    assert counted(stopped.rows) == expected
    assert stopped.offsets["rounds"] == 2 * 9


class Killed(Exception):
    """As `kill -9`: nothing that follows is done."""


@pytest.mark.parametrize("after", [1, 2], ids=["after the opening", "after the events"])
def test_a_round_whose_probe_was_killed_between_two_objects_counts_for_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    script = list(looks())
    with ScriptedProbe(settings, iter(script[:2])) as probe:
        before = [probe.round() for _ in range(2)]
    append, left = FolderAppender.append, after

    def killed(*arguments: Any) -> list[Acknowledged]:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        return append(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(FolderAppender, "append", killed)
        dies = ScriptedProbe(settings, iter(script[2:]), "dies")
        with pytest.raises(Killed):
            dies.round()
    # Started again by the same supervisor: nobody waits.
    with ScriptedProbe(settings, iter(script[2:]), "next") as probe:
        later = [probe.round() for _ in range(3)]
    done = job(settings)
    done.run()
    assert [row.round for row in done.rows.rounds] == [closed.round for closed in (*before, *later)]
    assert later[0].round - before[-1].round > 2
    assert not done.rows.quarantine
    assert not done.rows.gaps


def test_of_two_probes_one_makes_the_rounds_and_the_other_takes_over_when_it_ends(settings: Settings) -> None:
    script = looks()
    with ScriptedProbe(settings, script, "second", None) as second:
        with ScriptedProbe(settings, script, "first", None) as first:
            one = first.round()
            with pytest.raises(AnotherProbeError, match="probe first makes the rounds"):
                second.round()
            two = first.round()
        second.stand_by()
        three = second.round()
    assert [closed.probe for closed in (one, two, three)] == ["first", "first", "second"]
    done = job(settings)
    done.run()
    assert [row.round for row in done.rows.rounds] == [one.round, two.round, three.round]


def test_what_retention_deleted_before_it_was_read_is_a_gap(settings: Settings) -> None:
    script = looks()
    with ScriptedProbe(settings, script) as probe:
        probe.round()
        late = job(settings)
        late.run()
        probe.round()
        closed = [probe.round() for _ in range(3)]
    folder = Path(str(settings.bus_folder)) / "mq"
    for topic, end in ((settings.probe.rounds_topic, closed[0].round), (settings.probe.events_topic, 3)):
        for path in (folder / topic).iterdir():
            if int(path.name[:20]) < end:
                path.unlink()
    late.connect = lambda *_: as_after_a_start(settings)
    late.run()
    told = {(row.topic, row.from_offset, row.to_offset): row.kind for row in late.rows.gaps}
    assert {(settings.probe.rounds_topic, 2, closed[0].round)} <= told.keys()
    assert [row.round for row in late.rows.rounds][1:] == [each.round for each in closed]


def test_a_folder_that_was_deleted_is_a_new_bus_for_probe_and_job(settings: Settings) -> None:
    script = looks()
    with ScriptedProbe(settings, script) as probe:
        first = [probe.round() for _ in range(2)]
        done = job(settings)
        done.run()
        folder = Path(str(settings.bus_folder))
        folder.rename(folder.with_name("aside"))
        with pytest.raises(RoundAbandonedError, match="has another bus than before"):
            probe.round()
        later: list[RoundClosed] = [probe.round() for _ in range(2)]
    done.run()
    done.run()
    assert {row.kind for row in done.rows.gaps} == {"recreated"}
    numbers = [row.round for row in done.rows.rounds]
    assert len(numbers) == len(first) + len(later)
    assert numbers == sorted(set(numbers))
