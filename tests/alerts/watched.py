"""An alerter whose clocks and polls a test controls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streaming.alerts import Alerter
from streaming.config import AlertSettings, JobSettings, Settings
from tests.alerts.build import INTERVAL, START, Notebook, Writer, rules


class Watched:
    """A lake, an alerter on it, and two clocks that a test controls: the wall clock and steady time."""

    def __init__(self, folder: Path, *texts: str, **alerts: Any) -> None:
        self.writer = Writer(folder)
        self.made = rules(folder, *texts)
        self.wall_ms, self.steady_s = float(START), 0.0
        self.target = Notebook()
        self.alerts = AlertSettings(start_grace_ms=0, **alerts)
        self.alerter = self.start()

    def start(self) -> Alerter:
        settings = Settings(cluster="c", lake=self.writer.root, alerts=self.alerts, job=JobSettings())

        self.alerter = Alerter(
            settings, self.made, {"ops": self.target}, lambda: self.wall_ms / 1000, lambda: self.steady_s
        )
        return self.alerter

    @property
    def sent(self) -> list[str]:
        """First line of each message."""
        return [message.body.splitlines()[0] for message in self.target.messages]

    def after(self, seconds: float) -> list[tuple[str, str | None, str]]:
        """Poll once more after this many seconds."""
        self.wall_ms += seconds * 1000
        self.steady_s += seconds
        return [(d.rule, d.group_id, d.state) for d in self.alerter.poll()]

    def rounds(self, first: int, count: int) -> list[tuple[str, str | None, str]]:
        """Write rounds without news in one batch, and poll after their intervals."""
        self.writer.write(first, *({} for _ in range(count)))
        return self.after(count * INTERVAL / 1000)

    def round(self, number: int, jump_ms: int = 0, **tables: list[dict[str, Any]]) -> list[tuple[str, str | None, str]]:
        """Write a round, and poll after one interval."""
        self.writer.write(number, tables, jump_ms=jump_ms)
        return self.after(INTERVAL / 1000)
