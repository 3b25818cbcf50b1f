"""Strategies that change while probe and job run: a real group, a real job, and a replay."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streaming.config import JobSettings, KafkaSettings, ProbeSettings, load_settings
from streaming.demo.kafka_python_member import KafkaPythonMember
from streaming.demo.stage import Stage
from streaming.job.run import start_query
from streaming.probe import Probe
from streaming.records import MembershipRecord
from streaming.tables import DeltaLake, LakeReader
from tests.e2e.conftest import run_to_the_end
from tests.patience import unless_too_busy
from tests.real_groups.real_log import offsets_log, read_on

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(3),
]

_NOTHING = 'lake = "unused"\n'
_ROUND_ROBIN = '[[strategies]]\ngroups = "/./"\nstrategy = "roundrobin"\n'
_WRONG = '[[strategies]]\ngroups = "/(/"\n'


def _drift(lake: str) -> list[dict[str, Any]]:
    return LakeReader(lake).rows("SELECT * FROM drift ORDER BY round")


def test_a_changed_strategy_is_judged_in_the_running_job_and_the_same_in_a_replay(
    bootstrap: str, unique: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenkeel.toml"
    file.write_text(_NOTHING)
    monkeypatch.setenv("EVENKEEL_CONFIG", str(file))
    given: dict[str, Any] = {
        "cluster": unique,
        "lake": str(tmp_path / "lake"),
        "kafka": KafkaSettings(bootstrap_servers=bootstrap),
        "filters": {"groups": [unique]},
        "probe": ProbeSettings(
            interval_ms=1_000, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
        "job": JobSettings(trigger_ms=100),
    }
    settings = load_settings(**given)
    with ExitStack() as leaving, offsets_log(bootstrap) as log, Probe(settings) as probe:
        probe.round()
        _two_members(bootstrap, unique, tmp_path / "stage", leaving)
        while not any(_is_complete(record) for group, record in read_on(log) if group == unique):
            pass
        lake = DeltaLake(settings.lake)
        lake.create()
        running: list[StreamingQuery] = []
        leaving.callback(lambda: [query.stop() for query in running])

        def catch_up() -> None:
            if not running or not running[-1].isActive:
                running.append(start_query(spark, settings, lake))
            running[-1].processAllAvailable()

        def verdicts_after_a_round() -> list[tuple[str, str | None]]:
            probe.round()
            unless_too_busy(catch_up)
            rows = _drift(settings.lake)
            return [(row["verdict"], row["basis"]) for row in rows if row["decision"] == rows[-1]["decision"]]

        assert verdicts_after_a_round() == [("identical", None)]
        file.write_text(_ROUND_ROBIN)
        assert verdicts_after_a_round() == [("identical", None), ("drifted", "configured")]
        file.write_text(_WRONG)
        assert len(verdicts_after_a_round()) == 2, "a wrong file is refused, and the old one stays"
        file.write_text(_NOTHING)
        assert verdicts_after_a_round()[2:] == [("identical", None)]

    [changed] = [row for row in _drift(settings.lake) if row["basis"] == "configured"]
    # By hand: of four partitions range gives each member two neighbours, round robin every second one.
    assert {one["partition"] for one in changed["drifted_partitions"]} == {1, 2}
    assert changed["expected_strategy"] == "roundrobin"
    assert changed["configuration_version"] is not None
    replayed = load_settings(**given | {"lake": str(tmp_path / "again")})
    run_to_the_end(spark, replayed)
    assert _drift(replayed.lake) == _drift(settings.lake)


def _is_complete(record: MembershipRecord) -> bool:
    return len(record.members) == 2 and all(member.assigned for member in record.members)


def _two_members(bootstrap: str, group: str, folder: Path, leaving: ExitStack) -> None:
    topic = f"{group}-orders"
    stage = Stage(bootstrap, folder)
    stage.admin.create_topics({topic: {"num_partitions": 4, "replication_factor": 1}}, wait_for_metadata=True)
    leaving.callback(stage.close)
    for name in ("a", "b"):
        stage.enter(KafkaPythonMember(stage, group, (topic,), name, session_timeout_ms=30_000))
