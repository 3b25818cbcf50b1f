"""Admin mode on a real broker while the probe is killed again and again: the rows stay true, however they are cut."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.groups import Rows
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_reader
from streaming.lifecycle import SUPERVISOR
from streaming.process import GuardedProcess
from tests.e2e.plain_job import PlainJob
from tests.e2e.recording import environment_of
from tests.oracle.java_members import JavaMembers
from tests.real_groups.followed import Followed, until
from tests.real_groups.party import RELEASE, Party, make_topics

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(900)]

_ROOT = Path(__file__).resolve().parents[2]
_KILLS = 6


@pytest.fixture(scope="module")
def java() -> Iterator[JavaMembers]:
    with JavaMembers(RELEASE) as members:
        yield members
        assert members.failures == []


def test_a_probe_that_is_killed_again_and_again_leaves_the_rows_of_an_undisturbed_one(
    bootstrap: str, unique: str, java: JavaMembers, tmp_path: Path
) -> None:
    topic = f"{unique}-orders"
    make_topics(bootstrap, {topic: 6})
    settings = Settings(
        cluster="killed",
        lake=str(tmp_path / "lake"),
        offsets_log="admin",
        kafka=KafkaSettings(bootstrap_servers=bootstrap),
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(
            interval_ms=200,
            events_topic=f"{unique}.killed.events",
            rounds_topic=f"{unique}.killed.rounds",
            cluster_topics=False,
        ),
    )
    environment = environment_of(settings, tmp_path) | {
        "EVENKEEL_OFFSETS_LOG": "admin",
        "EVENKEEL_FILTERS__GROUPS": f'["/^{unique}/"]',
        "EVENKEEL_PROBE__EVENTS_TOPIC": settings.probe.events_topic,
        "EVENKEEL_PROBE__ROUNDS_TOPIC": settings.probe.rounds_topic,
        "EVENKEEL_PROBE__CLUSTER_TOPICS": "false",
        SUPERVISOR: unique,  # (this test)
    }
    given = [f"{name}={value}" for name, value in environment.items()]
    job = PlainJob(SourceSettings.of(settings), kept_reader)

    def start() -> GuardedProcess:
        return GuardedProcess(
            ["env", *given, sys.executable, "-m", "streaming.probe"], log=tmp_path / "probe.log", cwd=_ROOT
        )

    def rounds() -> int:
        job.run()
        return len(job.rows.rounds)

    with (
        Followed(bootstrap, unique) as log,
        Party(bootstrap, java, f"{unique}-classic") as classic,
        Party(bootstrap, java, f"{unique}-consumer") as consumer,
    ):
        parties = (classic, consumer)
        polls = [party.poll for party in parties]
        classic.start([topic], "classic")
        consumer.start([topic])
        for number in range(_KILLS):
            probe = start()
            seen = rounds()
            until(lambda seen=seen: rounds() > seen + 1, *polls)  # type: ignore[misc]
            if number % 2:
                for party in parties:
                    party.stop(party.names[0])
            else:
                classic.start([topic], "classic")
                consumer.start([topic])
            seen = rounds()
            until(lambda seen=seen: rounds() > seen, *polls)  # type: ignore[misc]
            probe.kill()
            assert probe.wait(30) != 0
        probe = start()
        for party in parties:
            party.rest(6)
        log.round()
        log.round()
        seen = rounds()
        until(lambda: rounds() > seen + 2, *polls)
        probe.terminate()
        assert probe.wait(60) == 0, probe.last_line()
        rounds()

        whole = PlainJob(job.settings, kept_reader)
        whole.run()
        alone = PlainJob(job.settings, kept_reader, rounds_per_batch=1)
        alone.run()
        assert _rows(whole.rows) == _rows(alone.rows) == _rows(job.rows)

        assert {gap.kind for gap in job.rows.gaps} == {"rounds"}  # times without a round, and nothing else is missing
        assert len(job.rows.gaps) >= _KILLS
        numbers = [row.round for row in job.rows.rounds]
        assert numbers == sorted(set(numbers))
        assert {row.verdict for row in job.rows.drift} <= {"identical", "unverified"}
        assert not any(row.ended for row in job.rows.group_health)
        for party in parties:
            newest = [row for row in job.rows.group_health if row.group_id == party.group][-1]
            by_log = log.health(party.group)
            assert (newest.state, newest.members, newest.partitions) == ("Stable", by_log.members, 6)
            assert newest.findings == by_log.findings == ()
            members = {
                row.member_id: row for row in job.rows.members if row.group_id == party.group
            }  # the newest row of each
            there = {name: row for name, row in members.items() if not row.ended}
            expected = log.members(party.group)
            assert there.keys() == expected.keys()
            assert {name: row.partitions for name, row in there.items()} == {
                name: row.partitions for name, row in expected.items()
            }


def _rows(rows: Rows) -> dict[str, Counter[bytes]]:
    return {name: Counter(map(msgspec.json.encode, getattr(rows, name))) for name in Rows.__struct_fields__}
