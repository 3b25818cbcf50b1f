"""Deliveries of real share groups, beside Kafka's own tool: members accept, release, reject, crash and stall."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from streaming.demo.broker import EmbeddedBroker
from streaming.groups.rows import LagRow
from streaming.jars import classpath
from streaming.records import partition_key
from streaming.share_state import TOPIC
from tests.java_tools import share_group_offsets
from tests.oracle.java_classes import java_command
from tests.real_groups.followed import Followed, until
from tests.real_groups.party import make_topics

pytestmark = [pytest.mark.kafka, pytest.mark.nightly, pytest.mark.turn(2)]

_SOURCE = Path(__file__).resolve().parents[1] / "oracle" / "ShareMember.java"

LIMIT = 5
"""`group.share.delivery.count.limit`, Kafka's default."""

LOCK_S = 2


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a broker with short locks."""
    least, lock = "group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms"
    locks = {least: "1000", lock: str(1000 * LOCK_S)}
    with EmbeddedBroker(tmp_path_factory.mktemp("quick"), heap="384m", overrides=locks) as broker:
        yield broker.bootstrap


@contextmanager
def member(bootstrap: str, topic: str, group: str) -> Iterator[subprocess.Popen[bytes]]:
    """A member that does with a record what its value says (`ShareMember.java`); it crashes in the end."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group}
    told = [part for setting in settings.items() for part in setting]
    command = [*java_command(_SOURCE, classpath("broker"), "128m"), topic, *told]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet) as process:
        try:
            yield process
        finally:
            process.kill()


class World:
    """A topic whose records' values say what members do with them, and a share group that has begun to read it."""

    def __init__(self, bootstrap: str, name: str, followed: Followed, partitions: int = 1) -> None:
        make_topics(bootstrap, {name: partitions})
        self.bootstrap, self.topic, self.group, self.partitions = bootstrap, name, f"{name}-share", partitions
        self.followed = followed
        self._producer = KafkaProducer(bootstrap_servers=bootstrap)

    def say(self, partition: int, *words: str) -> None:
        for word in words:
            self._producer.send(self.topic, word.encode(), partition=partition)
        self._producer.flush()

    def member(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        return member(self.bootstrap, self.topic, self.group)

    def begin(self) -> None:
        """Write until the group has a start offset everywhere: it begins at the end of each partition."""

        def begun() -> bool:
            said = share_group_offsets(self.bootstrap, self.group)
            return len(said) == self.partitions and all(start is not None for start, _ in said.values())

        until(lambda: f"g:{self.group}" in self.followed.rows, self.followed.round)
        until(begun, lambda: [self.say(partition, "accept") for partition in range(self.partitions)])
        self.rest_with_lag(0)

    def rows(self) -> dict[int, LagRow]:
        return {partition: row for (_, partition), row in self.followed.lag(self.group).items()}

    def rest_with_lag(self, *lag: int) -> dict[int, LagRow]:
        """Make rounds until they show what the tool says, and that is this lag: one for all, or one a partition."""
        wanted = lag * self.partitions if len(lag) == 1 else lag

        def rests() -> bool:
            said = share_group_offsets(self.bootstrap, self.group)
            self.followed.round()
            seen = {place: (row.committed_offset, row.lag) for place, row in self.followed.lag(self.group).items()}
            return seen == said == share_group_offsets(self.bootstrap, self.group) and wanted == tuple(
                left for _, (_, left) in sorted(said.items())
            )

        until(rests)
        return self.rows()

    def await_delivery(self) -> None:
        """Make rounds until records have come back after one delivery more, or will not come back any more."""
        before = self.rows()[0].delivery_count_max

        def came_back() -> bool:
            row = self.rows()[0]
            return row.delivery_count_max != before or row.released_records == 0

        until(came_back, self.followed.round)

    def counted(self) -> tuple[int, int]:
        """Records given up, and other archived ones, over all rows."""
        rows = self.followed.rows[f"g:{self.group}"].lag
        return sum(row.given_up_records or 0 for row in rows), sum(row.rejected_records or 0 for row in rows)

    def findings(self) -> dict[str, str]:
        return {found.finding: found.detail for found in self.followed.health(self.group).findings}


def test_start_offset_lag_and_delivery_states_are_those_of_the_tool_whatever_members_do(
    bootstrap: str, unique: str
) -> None:
    with Followed(bootstrap, unique) as followed:
        world = World(bootstrap, unique, followed, 3)
        with world.member():
            world.begin()
            assert {(row.released_records, row.archived_records) for row in world.rows().values()} == {(0, 0)}
            world.say(0, "accept", "once", "reject", "release", "accept")
            world.say(1, *["accept"] * 7)
            rows = world.rest_with_lag(0)
            assert world.counted() == (1, 1)
            assert rows[0].delivery_count_max == 0
            assert world.findings() == {"records_given_up": f"archived after {LIMIT} deliveries: {unique} 0 (1 record)"}


def test_records_of_a_member_that_stalls_come_back_and_stand(quick: str, unique: str) -> None:
    with Followed(quick, unique, interval_ms=1_000) as followed:
        world = World(quick, unique, followed)
        with world.member():
            world.begin()
            world.say(0, "hold", "accept", "accept")
            # Its lock has run out, and nobody else asks for it.
            until(lambda: world.rows()[0].released_records, followed.round)
            row = world.rest_with_lag(3)[0]
            assert (row.released_records, row.delivery_count_max) == (3, 1)
            until(lambda: "stuck_deliveries" in world.findings(), followed.round)
            assert f"longer than {LIMIT} deliveries of {LOCK_S} s take" in world.findings()["stuck_deliveries"]
            # Both bounds of the backlog are known, because rounds saw it arrive.
            health = followed.health(world.group)
            assert health.time_behind_reason is None
            assert health.time_behind_seconds_min > LOCK_S


def test_records_whose_members_crash_go_round_until_they_are_given_up(quick: str, unique: str) -> None:
    with Followed(quick, unique, interval_ms=1_000) as followed:
        world = World(quick, unique, followed)
        with world.member():
            world.begin()
            world.say(0, "hold", "accept")
            until(lambda: world.rows()[0].released_records, followed.round)
        while world.counted() == (0, 0):
            # Where a member dies while it asks for records, these are delivered to it once more.
            with world.member():
                world.await_delivery()
        # A record of its last delivery comes by itself: the other one is accepted now, unless it went the same way.
        with world.member():
            world.rest_with_lag(0)
        assert world.counted() in {(1, 0), (2, 0)}
        shown = {found.finding for row in followed.rows[f"g:{world.group}"].group_health for found in row.findings}
        assert {"redelivering", "records_given_up"} <= shown


def test_a_probe_that_starts_again_counts_what_was_archived_in_between_once(bootstrap: str, unique: str) -> None:
    with Followed(bootstrap, unique) as followed:
        world = World(bootstrap, unique, followed)
        with world.member():
            world.begin()
            world.say(0, "reject", "release")
            world.rest_with_lag(0)
            assert world.counted() == (1, 1)
            followed.restart()
            world.say(0, "reject", "reject", "release")
            world.rest_with_lag(0)
            assert world.counted() == (2, 3)
            followed.restart()
            world.rest_with_lag(0)
            followed.round()
            assert world.counted() == (2, 3)


def test_without_the_log_start_offset_and_lag_are_those_of_the_tool(bootstrap: str, unique: str) -> None:
    with Followed(bootstrap, unique, offsets_log="admin") as followed:
        world = World(bootstrap, unique, followed, 2)
        with world.member():
            world.begin()
            world.say(0, "accept", "once", "reject", "release", "accept")
            rows = world.rest_with_lag(0)
            assert {(row.source, row.done_records, row.given_up_records) for row in rows.values()} == {
                ("admin", None, None)
            }
        world.say(1, "accept", "accept")
        assert [row.lag for row in world.rest_with_lag(0, 2).values()] == [0, 2]


def test_junk_in_the_state_of_share_groups_is_quarantined_once_and_stops_nothing(tmp_path: Path, unique: str) -> None:
    # Its share coordinator does not survive that, so this broker has no other test.
    with EmbeddedBroker(tmp_path, heap="384m") as broker, Followed(broker.bootstrap, unique) as followed:
        world = World(broker.bootstrap, unique, followed)
        with world.member():
            world.begin()
        before = world.rows()[0]
        # Only such a client may write to Kafka's internal topics.
        producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "__admin_client", "log_level": 0})
        for key, value in ((b"\0\0\0\1g", b"\0\0"), (b"\0\7", b"later"), *[(b"\0", b"junk")] * 5):
            producer.produce(TOPIC, value, key, partition=0)
        producer.flush()
        followed.round()
        # A probe that starts cannot ask for the topics' names, so it says that lag is unknown.
        followed.restart()
        followed.round()
        followed.round()
        rows = followed.rows[partition_key(TOPIC, 0)].quarantine
        assert {row.topic for row in rows} == {TOPIC}
        assert [(row.key_type, row.records) for row in rows if row.kind == "unknown"] == [(7, 1)]
        assert sum(row.records for row in rows if row.kind == "undecodable") == 6
        row = world.rows()[0]
        assert (before.lag, row.committed_offset) == (0, before.committed_offset)
        assert (row.lag, row.reason) in {(0, None), (None, "deliveries_not_told")}
