"""Rules, rows and lakes for the tests of the alerter, and alerters on them in a time that a test moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from streaming.alerts import Alerter
from streaming.alerts.delivery.messages import PEOPLE, AttemptOutcome, Message
from streaming.alerts.rules.rules import Rule, load_rules
from streaming.alerts.transitions import Transition
from streaming.config import AlertSettings, JobSettings, Owner, ServeSettings, Settings
from streaming.process.lease import ALERTER, TTL_S, Lease, LeaseObjects
from streaming.tables import LakeReader, table_named
from tests.empty_lake import empty_lake
from tests.patience import until

START = 1_800_000_000_000
"""Time of round 0 in ms."""

INTERVAL = 10_000

UNEVEN = """\
  - name: uneven
    view: group_health_current
    when: imbalance > 1
    for: {hold}
    value: imbalance
    severity: warning
    message: "{{group_id}} is uneven: {{value}}"
"""

DRIFT = """\
  - name: drift
    view: drift_current
    when: verdict = 'drifted'
    severity: critical
    message: "{group_id} drifted"
"""

BEHIND = """\
  - name: behind
    view: lag_current
    when: lag > 100 AND subscribed
    value: lag
    severity: critical
    labels: {team: "{client_id}"}
    message: "{topic} {partition} of {group_id} is {value} behind"
"""

HELD = """\
  - name: held
    view: open_transactions_current
    when: held AND groups > 0
    for: 2 rounds
    severity: warning
    message: "no progress on partition {log_partition} since {held_since}: {transactional_id}"
"""

SILENCE = """\
  - name: silence
    view: rounds_current
    when: silent_s > greatest(3 * interval_ms / 1000, 20)
    severity: critical
    message: "{cluster} is silent"
"""


def rules(folder: Path, *texts: str, hold: str = "2 rounds") -> tuple[Rule, ...]:
    """Rules from some of the texts above, or from others."""
    file = folder / "alerts.yaml"
    file.write_text("rules:\n" + "".join(t.format(hold=hold) if t is UNEVEN else t for t in texts), encoding="utf-8")
    return load_rules(file)


def held_rules(folder: Path, **holds: str) -> dict[str, Rule]:
    """The rule "uneven" under each of these names, with its `for`."""
    made = {name: rules(folder, UNEVEN, hold=hold)[0] for name, hold in holds.items()}
    return {name: replace(rule, name=name) for name, rule in made.items()}


def time_of(number: int) -> int:
    """Time of a round in ms."""
    return START + number * INTERVAL


def transition(state: str = "firing", **other: Any) -> Transition:
    """A transition of an alert of the rule "lag" about the group "billing"."""
    usual = {
        "alert_id": "e5cca8409104fd8c0f84ff24a071abe2",
        "cluster": "main",
        "rule": "lag",
        "severity": "critical",
        "group_id": "billing",
        "since": 1_700_000_000_000,
        "round": 4711,
        "round_time": 1_700_000_020_000,
        "value": 1200.0,
        "message": "billing is stalled",
        "decided_time": 1_700_000_021_000,
    }
    return Transition(**usual | {"state": state, **other})  # type: ignore[arg-type]


class Writer:
    """Writes a lake as the job does: all tables of a batch, `rounds` last."""

    def __init__(self, folder: Path, cluster: str = "c") -> None:
        self.root = str(folder / "lake")
        self.cluster = cluster
        self.shift_ms = 0
        """Error of the brokers' clock, until it is corrected."""
        self._lake = empty_lake(self.root)
        self._batch = 0
        self._groups: set[str] = set()
        self._last: tuple[int, int] | None = None
        self._elapsed = 0

    def write(self, first: int, *rounds: dict[str, list[dict[str, Any]]], jump_ms: int = 0) -> None:
        """Write one batch: rows by table of a round and of those after it; `jump_ms` is the first one's clock error."""
        rows: dict[str, list[list[Any]]] = {}
        for number, tables in enumerate(rounds, start=first):
            time = time_of(number) + self.shift_ms + (jump_ms if number == first else 0)
            when = {"round": number, "round_time": time, "event_date": time // 86_400_000}
            # A group with a verdict has a state as well.
            health = [*tables.get("group_health", ())]
            self._groups |= {row["group_id"] for row in health}
            unseen = {row["group_id"] for row in tables.get("drift", ())} - self._groups
            health += [{"group_id": group} for group in sorted(unseen)]
            self._groups |= unseen
            closed = {"interval_ms": INTERVAL, "closed_time": time + 200, "elapsed_ms": self._passed(number, time)}
            for table, found in {**tables, "group_health": health, "rounds": [closed]}.items():
                for row in found:
                    named = {"cluster": self.cluster, **_DEFAULTS.get(table, {}), **when, **row}
                    rows.setdefault(table, []).append([named.get(c.name) for c in table_named(table).columns])
        for table, found_rows in rows.items():
            self._lake.append(table, found_rows, f"job of {self.cluster}", self._batch)
        self._batch += 1

    def _passed(self, number: int, time: int) -> int:
        """Elapsed time as the job sums it: each step between none and three intervals."""
        if self._last is not None and number > self._last[0]:
            self._elapsed += max(0, min(time - self._last[1], 3 * INTERVAL))
        self._last = (number, time)
        return self._elapsed

    def transitions(self) -> list[dict[str, Any]]:
        """The alerter's rows, in order."""
        return LakeReader(self.root).rows("SELECT * FROM alerts ORDER BY decision, round, rule, entity")


_DEFAULTS: dict[str, dict[str, Any]] = {
    "group_health": {"ended": False, "findings": [], "state": "Stable", "members": 3},
    "lag": {"ended": False, "subscribed": True, "lag_status": "ok"},
    "drift": {"drifted_partitions": []},
}


class Inbox:
    """A target that takes every message and notes when.

    Attributes:
        reads: The form of its messages.
        messages: The messages taken, in order.
        minutes: When each was taken, by the given clock.
        fails: Reasons of the next failures.
    """

    def __init__(self, reads: str = PEOPLE, minute: Callable[[], float] = lambda: 0.0) -> None:
        self.reads = reads
        self._minute = minute
        self.messages: list[Message] = []
        self.minutes: list[float] = []
        self.fails: list[str] = []

    def send(self, message: Message) -> AttemptOutcome:
        if self.fails:
            return AttemptOutcome(self.fails.pop(0), 1)
        self.messages.append(message)
        self.minutes.append(self._minute())
        return AttemptOutcome(None, 1)

    @property
    def titles(self) -> list[str]:
        """Titles of the messages."""
        return [message.title for message in self.messages]


class Watched:
    """A lake, an alerter on it, and two clocks that a test controls: the wall clock and steady time."""

    def __init__(self, folder: Path, *texts: str, **alerts: Any) -> None:
        self.writer = Writer(folder)
        self.made = rules(folder, *texts)
        self.wall_ms, self.steady_s = float(START), 0.0
        self.target = Inbox()
        self.alerts = AlertSettings(**{"start_grace_ms": 0, **alerts})
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

    def at(self, seconds: float) -> list[tuple[str, str | None, str]]:
        """Poll so many seconds after round 0, by steady time."""
        return self.after(seconds - self.steady_s)

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
        self.inboxes = {name: Inbox((reads or {}).get(name, PEOPLE), lambda: self.minute) for name in targets}
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

    def titles(self, target: str = "ops") -> list[str]:
        """Titles of the messages that a target has taken."""
        return self.inboxes[target].titles

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
