"""Probe and job of a RocketMQ cluster are killed again and again: the tables are those of a job that never stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.config import (
    Filters,
    JobSettings,
    KafkaSettings,
    ProbeSettings,
    RocketMQSettings,
    Settings,
    environment_of,
)
from streaming.groups import encode_rows
from streaming.job.operator import group_config
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_reader
from streaming.job.unpack import rows_by_table
from streaming.lifecycle import SUPERVISOR
from streaming.tables import DeltaLake, LakeReader
from tests.e2e.lakes import contents, differences
from tests.e2e.plain_job import PlainJob
from tests.rocketmq import recipes
from tests.rocketmq.servers import EmbeddedRocketMQ

pytestmark = [
    *(pytest.mark.java, pytest.mark.kafka, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1_800)),
    pytest.mark.xdist_group("rocketmq"),
]

_KILLS = 3
_PATIENCE_S = 400.0
_LEAST_ROUNDS = 5


class _Killed:
    """A program of ours in a process group of its own, which `kill` ends as a crash would."""

    def __init__(self, module: str, environment: Mapping[str, str], log: Path) -> None:
        self._module, self._environment, self._log = module, environment, log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                env={**os.environ, **self._environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def end(self, how: signal.Signals) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, how)
            self._process.wait(120)
            self._process = None


@contextmanager
def _running(*programs: _Killed) -> Iterator[None]:
    for program in programs:
        program.start()
    try:
        yield
    finally:
        for program in programs:
            program.end(signal.SIGKILL)


def _rounds(lake: str) -> int:
    return int(LakeReader(lake).rows("SELECT count(*) AS n FROM rounds")[0]["n"])


def _wait_for_rounds(lake: str, least: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not Path(lake, "rounds", "_delta_log").exists() or _rounds(lake) < least:
        assert time.monotonic() < deadline, "no further rounds in the lake"
        time.sleep(1)


def test_the_tables_are_those_of_a_job_that_never_stopped(
    bootstrap: str, rocketmq: EmbeddedRocketMQ, unique: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    settings = Settings(
        cluster=unique,
        lake=str(lake),
        rocketmq=RocketMQSettings(name_servers=rocketmq.addresses[0]),
        bus=KafkaSettings(bootstrap_servers=bootstrap),
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(
            interval_ms=1_000, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", replication_factor=1
        ),
        job=JobSettings(max_rounds=3, trigger_ms=500, checkpoint=str(tmp_path / "checkpoint")),
    )
    environment = environment_of(settings) | {SUPERVISOR: unique}  # (this test)
    probe = _Killed("streaming.probe", environment, tmp_path / "probe.log")
    job = _Killed("streaming.job", environment, tmp_path / "job.log")
    with rocketmq.commands() as commands:
        commands.create_topic(unique, 4)
    first = rocketmq.addresses[:1]
    with recipes.steady(first, unique, unique, count=2) as members, _running(probe, job):
        seen = 0
        for kill in range(_KILLS):
            _wait_for_rounds(str(lake), seen + _LEAST_ROUNDS)
            members[-1].use("AVG_BY_CIRCLE" if kill % 2 == 0 else "AVG")
            job.end(signal.SIGKILL)
            probe.end(signal.SIGKILL)
            seen = _rounds(str(lake))
            probe.start()
            job.start()
        _wait_for_rounds(str(lake), seen + _LEAST_ROUNDS)
        probe.end(signal.SIGTERM)
        plain = PlainJob(SourceSettings.of(settings), kept_reader, config=group_config(settings))
        plain.run()
        _wait_for_rounds(str(lake), len(plain.rows.rounds))
        job.end(signal.SIGTERM)
    other = DeltaLake(str(tmp_path / "other"))
    other.create()
    for name, rows in rows_by_table([encode_rows(plain.rows)]).items():
        other.append(name, rows, "test", 0)
    assert differences(contents(lake), contents(tmp_path / "other")) == {}
    assert len(plain.rows.rounds) == len({row.round for row in plain.rows.rounds})
    said = {finding.finding for row in plain.rows.group_health for finding in row.findings}
    # (After each kill its two members run different strategies: that is a split brain.)
    assert said <= {"mixed_strategies", "doubly_held", "held_by_nobody", "split_brain"}
