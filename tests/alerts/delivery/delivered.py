"""A lake whose verdicts a test writes, alerters on it, and what they delivered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streaming.alerts import Alerter, open_targets
from streaming.config import AlertSettings, JobSettings, Settings
from streaming.tables import LakeReader
from tests.alerts.build import DRIFT, Writer, rules


def _verdict(group: str, verdict: str) -> dict[str, Any]:
    return {"group_id": group, "verdict": verdict, "decision": 1}


class Lake:
    """A lake with present rounds, and alerters on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer = Writer(folder)
        self.rules = rules(folder, DRIFT)
        self._round = (round(time.time() * 1000) - 1_800_000_000_000) // 10_000

    def write(self, **verdicts: str) -> None:
        self._round += 1
        self.writer.write(self._round, {"drift": [_verdict(group, verdict) for group, verdict in verdicts.items()]})

    def settings(self, **targets: str) -> Settings:
        alerts = AlertSettings(targets=targets, poll_ms=100, rules=self.folder / "alerts.yaml")
        return Settings(cluster="c", lake=self.writer.root, alerts=alerts, job=JobSettings())

    @contextmanager
    def alerter(self, **targets: str) -> Iterator[Alerter]:
        settings = self.settings(**targets)
        with Alerter(settings, self.rules, open_targets(settings)) as alerter:
            yield alerter

    def deliveries(self, target: str) -> list[tuple[str, str, int | None, str | None]]:
        rows = LakeReader(self.writer.root).rows(
            "SELECT outcome, state, attempt, reason FROM alert_deliveries WHERE target = ? AND outcome <> 'added' "
            "ORDER BY attempt_time, attempt",
            [target],
        )
        return [(row["outcome"], row["state"], row["attempt"], row["reason"]) for row in rows]


def until_idle(alerter: Alerter) -> None:
    deadline = time.monotonic() + 60
    while not alerter.idle and time.monotonic() < deadline:
        alerter.wake.wait(1)
        alerter.wake.clear()
        alerter.poll()
