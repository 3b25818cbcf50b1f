"""The alerter's memory, read back from tables that other software maintains."""

from __future__ import annotations

import json
from pathlib import Path

from streaming.alerts.decisions import Decisions
from streaming.alerts.delivery.deliveries import Deliveries
from streaming.alerts.delivery.items import DELIVERED, Delivery
from streaming.alerts.judging.firing import FeedRound, FiringState, Observed, RuleRow, step
from tests.alerts.build import DRIFT, rules, time_of


def forget_statistics(lake: str, table: str) -> None:
    """Rewrite the table's log like an engine that keeps statistics of the first column only."""
    for commit in Path(lake, table, "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            if "add" in action:
                kept = json.loads(action["add"]["stats"])
                for bound in ("minValues", "maxValues"):
                    kept[bound] = {"transition_id": kept[bound].get("transition_id", "")}
                action["add"]["stats"] = json.dumps({name: kept[name] for name in kept if name != "nullCount"})
        commit.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")


def test_nothing_is_forgotten_where_files_have_no_statistics(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    drift = rules(tmp_path, DRIFT)[0]
    fired = Observed(FeedRound(7, time_of(7), 10_000, 0), (RuleRow("drift", '{"group_id":"g"}', True),))
    state, transitions = step(FiringState("c", {"drift": drift}), fired)
    decisions = Decisions(lake, "c")
    decisions.remember()
    decided = decisions.commit(transitions, 7, time_of(8), {"gaps": 3})
    assert [t.state for t in decided] == ["firing"]
    forget_statistics(lake, "alerts")

    again = Decisions(lake, "c")

    assert again.remember().active.keys() == state.active.keys()
    assert again.remember().versions == {"gaps": 3}
    assert again.after(0) == decided
    assert again.since(time_of(8)) == decided

    deliveries = Deliveries(lake, "c")
    assert deliveries.know(["pager"], [], time_of(8))["pager"].added == time_of(8)
    deliveries.write([Delivery(decided[0], "pager", 1, DELIVERED, None, 12, time_of(9), "key")])
    forget_statistics(lake, "alert_deliveries")
    known = Deliveries(lake, "c").know(["pager"], [decided[0].transition_id], time_of(10))["pager"]
    assert known.added == time_of(8)
    assert known.done == {decided[0].transition_id}
    assert known.sent == {decided[0].alert_id: "key"}
