"""Alerter and page over a long life of generated rounds: clocks jump both ways, a table breaks and heals, the receiver
fails and returns, alerter and page are restarted now and then, and maintenance joins files below them. The expected
messages follow from the life itself, by rules that are as short as the life's own.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboards.lake import PageLake
from streaming.alerts import Alerter, open_targets
from streaming.config import AlertSettings, JobSettings, Settings
from streaming.maintain import Maintainer
from streaming.tables import ALL_TABLES, LakeReader
from tests.alerts.build import DRIFT, INTERVAL, SILENCE, START, UNEVEN, Writer, rules
from tests.alerts.receiver import Receiver
from tests.maintain.build import NOW

pytestmark = pytest.mark.turn(6)

GROUPS = 12
DAY_MS = 86_400_000
HEARTBEAT_ROUNDS = 60

# Rounds for which a table stays broken: fewer than would end the alerter.
BROKEN_ROUNDS = 20

# More than there are between the life's days, which are fixed, and today.
KEEP_DAYS = 36_500

# A transition is decided with the batch that shows it (at most eight rounds), or when the table is intact again.
MUTED_AT_MOST_S = (BROKEN_ROUNDS + 8) * INTERVAL / 1000


@dataclass
class Life:
    """The groups' events: their present state, and the messages that people must get.

    Attributes:
        drifted: By group: whether its newest verdict is `drifted`.
        uneven_since: By group: for how many rounds it has been uneven; 0 when it is even.
        expected: Rule, group and state in order, with the deciding round.
    """

    chance: random.Random
    drifted: dict[str, bool] = field(default_factory=dict)
    uneven: dict[str, int] = field(default_factory=dict)
    expected: list[tuple[str, str, str, int]] = field(default_factory=list)
    decisions: int = 0

    def round(self, number: int) -> dict[str, list[dict[str, Any]]]:
        """Rows of one round."""
        health, drift = [], []
        for place in range(GROUPS):
            group = f"g{place}"
            first = group not in self.drifted
            if first or self.chance.random() < 0.01:
                self.decisions += 1
                now = not first and not self.drifted[group]
                drift.append(
                    {"group_id": group, "verdict": "drifted" if now else "identical", "decision": self.decisions}
                )
                if not first:
                    self.expected.append(("drift", group, "firing" if now else "resolved", number))
                self.drifted[group] = now
            rounds = self.uneven.get(group, 0)
            changes = self.chance.random() < (0.2 if rounds else 0.02)
            # `for: 2 rounds`: pending at the first, firing at the third.
            after = (0 if rounds else 1) if changes else (rounds + 1 if rounds else 0)
            if rounds and not after and rounds >= 3:
                self.expected.append(("uneven", group, "resolved", number))
            elif after == 3:
                self.expected.append(("uneven", group, "firing", number))
            if first or changes or number % HEARTBEAT_ROUNDS == place:
                health.append({"group_id": group, "imbalance": 3.0 if after else 0.0})
            self.uneven[group] = after
        return {"group_health": health, "drift": drift}


class World:
    """A lake, an alerter and a page on it, a receiver, and a clock."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self.writer = Writer(folder)
        self.made = rules(folder, SILENCE, DRIFT, UNEVEN)
        self.steady_s = 0.0
        self.receiver = receiver
        self.settings = Settings(
            cluster="c",
            lake=self.writer.root,
            alerts=AlertSettings(
                targets={"hook": receiver.url},
                start_grace_ms=0,
                longest_retry_ms=1_000,
                timeout_ms=2_000,
            ),
            job=JobSettings(heartbeat_ms=HEARTBEAT_ROUNDS * INTERVAL),
        )
        self.decided_at: dict[str, float] = {}
        self.start()

    def start(self) -> None:
        """Start alerter and page."""
        targets = open_targets(self.settings)
        self.alerter = Alerter(self.settings, self.made, targets, lambda: START / 1000 + self.steady_s, self._steady)
        self.alerter.__enter__()
        span = timedelta(milliseconds=HEARTBEAT_ROUNDS * INTERVAL)
        self.page = PageLake(self.writer.root, timedelta(hours=1), span, timedelta(seconds=1), steady=self._steady)

    def stop(self) -> None:
        """Stop the alerter."""
        self.alerter.__exit__(None, None, None)

    def poll(self) -> None:
        """Let both poll."""
        for decided in self.alerter.poll():
            self.decided_at[decided.transition_id] = self.steady_s
        self.page.poll()
        while self.page.read_on():
            pass

    def maintain(self) -> int:
        """Join small files, and write checkpoints; returns how many pieces of work there were.

        (What was joined is deleted after hours of real time, which no life here lasts.)
        """
        keep = {table.name: KEEP_DAYS for table in ALL_TABLES}
        return len(list(Maintainer(self.writer.root, keep, now=lambda: NOW).work()))

    def _steady(self) -> float:
        return self.steady_s


# In a short life everything goes wrong five times as often as in a long one.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("rounds", "often"),
    [(120, 5), pytest.param(10_000, 1, marks=[pytest.mark.soak, pytest.mark.timeout(7_200), pytest.mark.turn(0)])],
)
def test_over_a_long_life_nothing_is_muted_and_each_transition_arrives(tmp_path: Path, rounds: int, often: int) -> None:
    chance = random.Random(4711)
    life, silences, maintained = Life(chance), 0, 0
    broken: tuple[Path, bytes, int] | None = None
    written_at: dict[int, float] = {}
    with Receiver() as receiver:
        world = World(tmp_path, receiver)
        number = 0
        while number < rounds:
            first, number = number, number + chance.choice([1, 2, 4, 8])
            jump_ms = chance.choice([DAY_MS, -DAY_MS, 45_000, -5]) if chance.random() < 0.05 else 0
            if chance.random() < 0.02:
                world.writer.shift_ms = chance.choice([0, 0, DAY_MS, -DAY_MS, 45_000])
            batch = [life.round(place) for place in range(first, number)]
            world.writer.write(first, *batch, jump_ms=jump_ms)
            world.steady_s += len(batch) * INTERVAL / 1000
            if broken is None and any(rows["group_health"] for rows in batch) and chance.random() < 0.01 * often:
                broken = (*_break_newest(Path(world.writer.root, "group_health")), number)
            elif broken is not None and number - broken[2] >= BROKEN_ROUNDS:
                broken[0].write_bytes(broken[1])
                broken = None
            if chance.random() < 0.02:
                receiver.codes += [503] * 5  # it fails for a while, and returns
            written_at |= dict.fromkeys(range(first, number), world.steady_s)
            world.poll()
            if broken is None:
                names = world.page.ask("groups", {"cluster": None, "group_id": None, "imbalance": 0.5})
                assert len(names) == GROUPS, f"round {number}"
                assert world.page.quiet_s("c") <= INTERVAL / 1000, f"round {number}"
            else:
                assert world.page.problem is not None, f"round {number}"
            # Not after the last round: nothing would end it.
            if broken is None and number < rounds and chance.random() < 0.01 * often:
                silences += 1
                world.steady_s += 31
                world.poll()
                assert world.alerter._judge.is_silent, f"round {number}"
                assert world.page.quiet_s("c") >= 31
            if broken is None and chance.random() < 0.03 * often:
                maintained += world.maintain()
            if broken is None and chance.random() < 0.005 * often:
                world.stop()
                world.start()
                world.poll()
        if broken is not None:
            broken[0].write_bytes(broken[1])
        world.poll()
        deadline = time.monotonic() + 120
        while not world.alerter.idle and time.monotonic() < deadline:
            world.alerter.wake.wait(0.2)
            world.alerter.wake.clear()
            world.poll()
        world.stop()
        arrived = {message["id"] for message in receiver.messages}

    assert maintained > 0
    rows = world.writer.transitions()
    told = [row for row in rows if row["state"] == "firing" or (row["ended"] and row["from_state"] == "firing")]
    found = sorted((r["rule"], r["group_id"], r["state"], r["round"]) for r in told if r["rule"] != "silence")
    assert found == sorted(life.expected)
    assert [row["state"] for row in told if row["rule"] == "silence"] == ["firing", "resolved"] * silences
    delivered, skipped = _outcomes(world.writer.root)
    # A firing that was found late and is already over is not delivered, and then its end is not either.
    late = [row for row in told if row["late"] and not row["ended"]]
    over = {row["transition_id"] for row in late} & skipped["it was found late and is no longer true"]
    needless = {row["alert_id"] for row in late if row["transition_id"] in over}
    ends = {row["transition_id"] for row in told if row["ended"] and row["alert_id"] in needless}
    assert skipped == {"it was found late and is no longer true": over, "its firing was not sent": ends}
    assert {row["transition_id"] for row in told} - (delivered & arrived) == over | ends
    delays = {
        row["transition_id"]: world.decided_at[row["transition_id"]] - written_at[row["round"]]
        for row in told
        if row["rule"] != "silence"
    }
    assert max(delays.values()) <= MUTED_AT_MOST_S
    assert sum(row["late"] for row in told) <= len(told) / 20


def _break_newest(table: Path) -> tuple[Path, bytes]:
    newest = max(table.rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    whole = newest.read_bytes()
    newest.write_bytes(b"PAR1")
    return newest, whole


def _outcomes(lake: str) -> tuple[set[str], dict[str, set[str]]]:
    """Transitions that were delivered, and those that were skipped, by reason."""
    delivered: set[str] = set()
    skipped: dict[str, set[str]] = {"it was found late and is no longer true": set(), "its firing was not sent": set()}
    sql = "SELECT transition_id, outcome, reason FROM alert_deliveries WHERE outcome NOT IN ('failed', 'added')"
    for row in LakeReader(lake).rows(sql):
        if row["outcome"] == "delivered":
            delivered.add(row["transition_id"])
        else:
            skipped.setdefault(row["reason"], set()).add(row["transition_id"])
    return delivered, skipped
