"""A month of some groups that are well and unwell at random, with an alerter that runs all the time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from streaming.alerts import Alerter, load_rules
from streaming.config import Settings
from streaming.config.settings import AlertSettings
from streaming.tables import LakeReader, table_named
from tests.empty_lake import empty_lake

CLUSTER = "c"
START = 1_800_000_000_000
INTERVAL = 600_000
"""A round every ten minutes."""

RULES = """\
rules:
  - name: drift
    view: drift_current
    when: verdict = 'drifted'
    severity: critical
    message: "{group_id} drifted at {decision}"
  - name: lag
    view: group_health_current
    when: nullif(lag_status, 'unknown') IN ('stopped', 'falling_behind') AND nullif(members, 0) > 0
    for: 2 rounds
    value: lag_total
    severity: critical
    message: "{group_id} is {lag_status}: {value}"
  - name: uneven
    view: group_health_current
    when: imbalance - imbalance_optimal > 0.5
    for: 45m
    value: imbalance
    severity: warning
    message: "{group_id} is {value} uneven"
  - name: unassigned
    view: group_health_current
    when: has_finding(findings, 'unassigned')
    severity: critical
    message: "{group_id}: {findings}"
  - name: behind
    view: group_health_current
    when: time_behind_seconds_min > 7200
    for: 1 rounds
    value: time_behind_seconds_min
    severity: warning
    message: "{group_id} is {value} s behind"
  - name: partition
    view: lag_current
    when: lag > 900 AND subscribed
    value: lag
    severity: warning
    message: "{topic} {partition} of {group_id}: {value}"
  - name: held
    view: open_transactions_current
    when: held AND groups > 0
    for: 3 rounds
    severity: warning
    message: "no progress on {log_partition}"
  - name: silence
    view: rounds_current
    when: silent_s > 1e12
    severity: critical
    message: "{cluster} is silent"
"""


class Clock:
    """The time of the newest round."""

    def __init__(self) -> None:
        self.ms = START

    def __call__(self) -> float:
        return self.ms / 1000


class Month:
    """Writes a lake batch by batch.

    Attributes:
        settings: Its settings, with the rules' file.
        lake: The lake.
    """

    def __init__(self, folder: Path, seed: str, groups: int = 20) -> None:
        file = folder / "alerts.yaml"
        file.write_text(RULES, encoding="utf-8")
        self.settings = Settings(cluster=CLUSTER, lake=str(folder / "lake"), alerts=AlertSettings(rules=file))
        self.lake = empty_lake(self.settings.lake)
        self._random = Random(seed)
        self._groups = {f"g{n}": self._new_group(n) for n in range(groups)}
        self._elapsed = 0
        self._number = 0
        self._batch = 0

    def _new_group(self, incarnation: int) -> dict[str, Any]:
        return {"incarnation": incarnation, "members": 3, "lag_status": "ok", "lag_total": 5, "imbalance": 0.1,
                "imbalance_optimal": 0.0, "findings": [], "behind": None, "ended": False}  # fmt: skip

    def write(self, rounds: int, clock: Clock) -> None:
        """Write one batch of rounds, `rounds` last; some numbers are passed over, and some rounds come late."""
        tables: dict[str, list[dict[str, Any]]] = {
            name: [] for name in ("lag", "group_health", "drift", "open_transactions", "rounds")
        }
        for _ in range(rounds):
            self._number += 1 if self._random.random() < 0.97 else 3
            step = INTERVAL if self._random.random() < 0.98 else self._random.choice((0, 7)) * INTERVAL
            clock.ms += step
            self._elapsed += min(step, 3 * INTERVAL)
            self._round(tables, self._number, clock.ms)
        for name, rows in tables.items():
            columns = [column.name for column in table_named(name).columns]
            if rows:
                self.lake.append(name, [[row.get(c) for c in columns] for row in rows], "job", self._batch)
        self._batch += 1

    def _round(self, tables: dict[str, list[dict[str, Any]]], number: int, time: int) -> None:
        random = self._random
        when = {"cluster": CLUSTER, "round": number, "round_time": time, "event_date": time // 86_400_000}
        tables["rounds"].append({**when, "interval_ms": INTERVAL, "elapsed_ms": self._elapsed})
        for place, name in enumerate(self._groups):
            group = self._groups[name]
            # The first groups are never unwell: their rows are what a replay may leave out.
            if place > 4 and random.random() < 0.15:
                self._change(group)
            if not random.random() < 0.6 and not group["ended"]:
                continue
            row = {k: v for k, v in group.items() if k != "behind"}
            row["lag_total"] = row["lag_total"] + random.randrange(50)
            if group["behind"] is not None:
                row |= {"time_behind_seconds_min": group["behind"], "time_behind_seconds_max": group["behind"] + 600.0,
                        "time_behind_topic": "t"}  # fmt: skip
            tables["group_health"].append({**when, "group_id": name, "state": "Stable", **row})
            lag = {"topic": "t", "partition": place % 3, "lag": random.choice((1, 5, 950, 1_000, None)),
                   "subscribed": random.random() < 0.9, "lag_status": "ok", "ended": group["ended"]}  # fmt: skip
            if place > 4 and random.random() < 0.3:
                tables["lag"].append({**when, "group_id": name, **lag})
            if place > 4 and random.random() < 0.05 and not group["ended"]:
                verdict = random.choice(("identical", "drifted", "drifted", "unverified"))
                tables["drift"].append(
                    {**when, "group_id": name, "decision": number, "record_time": time, "verdict": verdict,
                     "incarnation": group["incarnation"], "drifted_partitions": []}
                )  # fmt: skip
            if group["ended"]:
                self._groups[name] = self._new_group(group["incarnation"] + 100)
        if random.random() < 0.2:
            held = random.random() < 0.6
            tables["open_transactions"].append({**when, "log_partition": 7, "held": held, "groups": 5 * held})

    def _change(self, group: dict[str, Any]) -> None:
        random = self._random
        match random.randrange(7):
            case 0:
                group["lag_status"] = random.choice(("ok", "stopped", "falling_behind", "unknown"))
            case 1:
                group["imbalance"] = random.choice((0.1, 0.9, 2.0, None))
            case 2:
                group["findings"] = random.choice(([], [("unassigned", START, "t 1")]))
            case 3:
                group["behind"] = random.choice((None, 10.0, 5_000.0, 9_000.0))
            case 4:
                group["members"] = random.choice((0, 3))
            case 5:
                group["lag_total"] = random.choice((5, 400, 90_000))
            case _:
                group["ended"] = random.random() < 0.3


def live(month: Month, batches: int, size: Callable[[], int]) -> list[tuple[Any, ...]]:
    """Run an alerter while a month is written; returns its transitions."""
    clock = Clock()
    month.write(1, clock)
    alerter = Alerter(month.settings, load_rules(month.settings.alerts.rules), {}, clock, clock)
    alerter.poll()
    for _ in range(batches):
        month.write(size(), clock)
        alerter.poll()
    rows = month.lake
    return [
        (row["round"], row["rule"], row["entity"], row["state"], row["from_state"], row["value"], row["message"],
         row["alert_id"], row["transition_id"])
        for row in LakeReader(rows.root).rows("SELECT * FROM alerts ORDER BY round, rule, entity, state")
    ]  # fmt: skip
