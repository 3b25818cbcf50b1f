"""An alerter with several targets on a lake, in a time that a test moves: what was sent to whom, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streaming.alerts import Alerter
from streaming.alerts.delivery.messages import PEOPLE, AttemptOutcome, Message
from streaming.config import AlertSettings, JobSettings, Owner, ServeSettings, Settings
from streaming.process.lease import ALERTER, TTL_S, Lease, LeaseObjects
from streaming.tables import LakeReader
from tests.alerts.build import INTERVAL, START, Notebook, Writer, rules, time_of
from tests.patience import until


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


def lease_elsewhere(lake: str, cluster: str, machine: str, clock: Callable[[], float], ttl_s: float = TTL_S) -> Lease:
    """The alerter's lease as on another machine."""
    return Lease(ALERTER, LeaseObjects(lake, f"_locks/{cluster}/{ALERTER}"), clock, ttl_s, machine)


class Inbox:
    """A target that takes every message and notes when, in minutes after round 0.

    Attributes:
        reads: The form of its messages.
        messages: The messages with their minutes, in order.
        fails: Reasons of the next failures.
    """

    def __init__(self, living: Living, reads: str = PEOPLE) -> None:
        self._living = living
        self.reads = reads
        self.messages: list[tuple[float, Message]] = []
        self.fails: list[str] = []

    def send(self, message: Message) -> AttemptOutcome:
        if self.fails:
            return AttemptOutcome(self.fails.pop(0), 1)
        self.messages.append((self._living.minute, message))
        return AttemptOutcome(None, 1)

    @property
    def told(self) -> list[tuple[float, str]]:
        """Minute and title of each message."""
        return [(minute, message.title) for minute, message in self.messages]

    @property
    def last(self) -> Message:
        """The newest message."""
        return self.messages[-1][1]


class Living:
    """The alerter of the cluster "c", and its clock, which stands at a round or some seconds after it."""

    def __init__(
        self,
        folder: Path,
        *texts: str,
        targets: Sequence[str] = ("ops",),
        owners: Sequence[Owner] = (),
        reads: Mapping[str, str] | None = None,
        public_url: str | None = None,
        machine: str | None = None,
        **alerts: Any,
    ) -> None:
        self.writer = Writer(folder)
        self.rules = rules(folder, *texts)
        self.wall_ms = float(START)
        self.inboxes = {name: Inbox(self, (reads or {}).get(name, PEOPLE)) for name in targets}
        self.settings = Settings(
            cluster="c",
            lake=self.writer.root,
            alerts=AlertSettings(**{"start_grace_ms": 0, **alerts}),
            owners=tuple(owners),
            job=JobSettings(),
            serve=ServeSettings(public_url=public_url),
        )
        self.alerter: Alerter | None = None
        self._machine = machine
        self.start()

    @property
    def minute(self) -> float:
        """Minutes after round 0."""
        return round((self.wall_ms - START) / 60_000, 1)

    def start(self) -> None:
        """End the alerter, if one runs, and start another one, as after a restart."""
        self.stop()
        steady: Callable[[], float] = lambda: self.wall_ms / 1000  # noqa: E731
        turn = None if self._machine is None else lease_elsewhere(self.writer.root, "c", self._machine, steady)
        self.alerter = Alerter(self.settings, self.rules, self.inboxes, steady, steady, turn)
        self.alerter.__enter__()

    def stop(self) -> None:
        """End the alerter."""
        if self.alerter is not None:
            self.alerter.__exit__(None, None, None)
            self.alerter = None

    def round(self, number: int, **tables: list[dict[str, Any]]) -> None:
        """Write a round, and poll a second after it."""
        self.writer.write(number, tables)
        self.poll(time_of(number) + 1_000)

    def poll(self, wall_ms: float | None = None) -> None:
        """Poll at a time, until everything that may be sent has been sent."""
        self.wall_ms = self.wall_ms if wall_ms is None else wall_ms
        self.alerter.poll()
        until_idle(self.alerter)
        self.alerter.poll()

    def deliveries(self, target: str, *columns: str) -> list[tuple[Any, ...]]:
        """Rows of a target in `alert_deliveries`, in order."""
        rows = LakeReader(self.writer.root).rows(
            "SELECT * FROM alert_deliveries WHERE target = ? AND outcome <> 'added' ORDER BY attempt_time, attempt",
            [target],
        )
        return [tuple(row[column] for column in columns) for row in rows]


def until_idle(alerter: Alerter) -> None:
    """Poll until nothing is left that may be sent."""
    until(lambda: alerter.idle, alerter.poll, pause_s=0.01, told="something is neither sent nor held back")


def drifted(*groups: str, verdict: str = "drifted") -> list[dict[str, Any]]:
    """Rows of `drift`."""
    return [{"group_id": group, "verdict": verdict, "decision": 1} for group in groups]
