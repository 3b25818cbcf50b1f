"""Rules, rows and lakes for the tests of the alerter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streaming.alerts.delivery.messages import PEOPLE, AttemptOutcome, Message
from streaming.alerts.rules.rules import Rule, load_rules
from streaming.alerts.transitions import Transition
from streaming.tables import LakeReader, table_named
from tests.empty_lake import empty_lake

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


class Notebook:
    """A target that takes every message, in the form for people.

    Attributes:
        messages: The messages taken, in order.
    """

    reads = PEOPLE

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def send(self, message: Message) -> AttemptOutcome:
        self.messages.append(message)
        return AttemptOutcome(None, 1)

    def titles(self) -> list[str]:
        """Titles of the messages."""
        return [message.title for message in self.messages]
