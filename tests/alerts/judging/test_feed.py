"""New rows of the lake, even while Delta changes the tables."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from streaming.alerts.decisions import Decisions, Deliveries
from streaming.alerts.delivery.items import DELIVERED, Delivery
from streaming.alerts.judging.feed import Chunk, EventFeed, Feed
from streaming.alerts.judging.firing import FeedRound, FiringState, Observed, RuleRow, step
from streaming.tables import LakeUnreadableError, named_to_arrow, table_named
from tests.alerts.build import DRIFT, Writer, rules, time_of
from tests.empty_lake import empty_lake


def _feed(root: str, **columns: str) -> Feed:
    return Feed(root, "c", {t: frozenset(names.split()) for t, names in columns.items()}, heartbeat_ms=600_000)


def _row(group: str, **more: Any) -> dict[str, Any]:
    return {"group_id": group, **more}


def _groups(chunk: Chunk | None, table: str = "group_health") -> list[tuple[int, str]]:
    rows = chunk.rows[table]
    return sorted(zip(rows["round"].to_pylist(), rows["group_id"].to_pylist(), strict=True))


def test_a_feed_may_begin_before_anything_is_there(tmp_path: Path) -> None:
    feed = _feed(str(tmp_path / "lake"), group_health="verdict")
    assert list(feed.begin(None, 3_600_000)) == []
    assert feed.poll(None) is None
    writer = Writer(tmp_path)
    assert feed.poll(None) is None
    writer.write(0, {"group_health": [_row("a", verdict="pending")]})
    chunk = feed.poll(None)
    assert [r.number for r in chunk.rounds] == [0]
    assert chunk.rows["group_health"]["verdict"].to_pylist() == ["pending"]


def test_a_beginning_shows_what_was_current_and_then_what_came(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(0, {"group_health": [_row("a"), _row("b")]}, {"group_health": [_row("a")]}, {})
    writer.write(3, {"group_health": [_row("b")]}, {"group_health": [_row("c")]})
    feed = _feed(writer.root, group_health="verdict")
    current, later = list(feed.begin(2, 0))
    assert _groups(current) == [(0, "b"), (1, "a")]
    assert [r.number for r in later.rounds] == [3, 4]
    assert _groups(later) == [(3, "b"), (4, "c")]
    writer.write(5, {"group_health": [_row("d")]})
    assert _groups(feed.poll(4)) == [(5, "d")]
    assert feed.poll(5) is None


def test_without_a_round_a_beginning_goes_back_as_far_as_it_may(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(0, *[{} for _ in range(10)])
    chunks = list(_feed(writer.root).begin(None, 30_000))
    assert [r.number for chunk in chunks for r in chunk.rounds] == [6, 7, 8, 9]


def test_a_round_that_is_gone_is_a_beginning_without_one(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(100, {}, {})
    (chunk,) = _feed(writer.root).begin(5, 0)
    assert [r.number for r in chunk.rounds] == [101]


def test_compaction_and_vacuum_show_no_row_twice_and_lose_none(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    for number in range(4):
        writer.write(number, {"group_health": [_row(f"g{number}")]})
    feed = _feed(writer.root, group_health="verdict")
    list(feed.begin(None, 3_600_000))
    writer.write(4, {"group_health": [_row("g4")]})
    table = DeltaTable(f"{writer.root}/group_health")
    table.optimize.compact()
    writer.write(5, {"group_health": [_row("g5")]})
    assert _groups(feed.poll(3)) == [(4, "g4"), (5, "g5")]
    table.update_incremental()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    writer.write(6, {"group_health": [_row("g6")]})
    assert _groups(feed.poll(5)) == [(6, "g6")]


def test_a_first_start_takes_no_old_event_for_new_although_compaction_wrote_it_again(tmp_path: Path) -> None:
    lake = empty_lake(tmp_path / "lake", [table_named("gaps")])
    now = time.time_ns() // 1_000_000
    for batch, name in enumerate(("old", "older", "new")):
        row = {"cluster": "c", "kind": "rounds", "from_time": now, "to_time": now, "reason": name}
        lake.append("gaps", named_to_arrow(table_named("gaps"), [row]), "query", batch)
    folder = Path(lake.path("gaps"))
    for commit in sorted((folder / "_delta_log").glob("*.json"))[:3]:
        os.utime(commit, (now / 1000 - 7_200, now / 1000 - 7_200))
    DeltaTable(folder).optimize.compact()
    feed = EventFeed(lake.root, "c", {"gaps": frozenset({"reason"})})
    feed.begin({}, now - 3_600_000)
    assert feed.poll()["gaps"]["reason"].to_pylist() == ["new"]
    assert feed.poll() == {}


def test_commits_that_were_cleaned_up_under_a_sleeper_mean_a_new_beginning(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(0, {})
    sleeper = _feed(writer.root)
    list(sleeper.begin(None, 3_600_000))
    writer.write(1, {})
    writer.write(2, {})
    DeltaTable(f"{writer.root}/rounds").create_checkpoint()
    for file in Path(writer.root, "rounds", "_delta_log").glob("*.json"):
        file.unlink()

    def sleep() -> None:
        for _ in range(100):
            assert sleeper.poll(0) is None

    with pytest.raises(LakeUnreadableError, match="cleaned up"):
        sleep()
    assert [r.number for chunk in sleeper.begin(0, 0) for r in chunk.rounds] == [0, 1, 2]


@pytest.mark.parametrize("jump_ms", [86_400_000, -86_400_000, -5])
def test_a_round_of_a_wrong_time_hides_neither_itself_nor_those_after_it(tmp_path: Path, jump_ms: int) -> None:
    writer = Writer(tmp_path)
    writer.write(0, {"group_health": [_row("a")]})
    feed = _feed(writer.root, group_health="verdict")
    list(feed.begin(None, 0))
    writer.write(1, {"group_health": [_row("odd")]}, jump_ms=jump_ms)
    writer.write(2, {"group_health": [_row("later")]})
    chunk = feed.poll(0)
    assert _groups(chunk) == [(1, "odd"), (2, "later")]
    assert [r.time for r in chunk.rounds] == [time_of(1) + jump_ms, time_of(2)]
    # A start finds the same, whatever the odd round is before or after.
    current, *rest = _feed(writer.root, group_health="verdict").begin(0, 0)
    assert _groups(current) == [(0, "a")]
    assert [_groups(chunk) for chunk in rest] == [[(1, "odd"), (2, "later")]]
    (newest,) = _feed(writer.root, group_health="verdict").begin(2, 0)
    assert _groups(newest) == [(0, "a"), (1, "odd"), (2, "later")]


@pytest.mark.parametrize("hours", [1, 30])
def test_what_is_current_needs_no_more_of_a_long_history_than_the_last_heartbeats(tmp_path: Path, hours: int) -> None:
    writer = Writer(tmp_path)
    step = 60  # a heartbeat of ten minutes
    newest = hours * 6 * step
    for number in (0, newest - 2 * step, newest - step):
        writer.write(number, {"group_health": [_row("alive")], "drift": [_row("alive", verdict="identical")]})
    writer.write(newest, {})
    current, *_ = _feed(writer.root, group_health="verdict", drift="verdict").begin(None, 0)
    assert _groups(current) == [(newest - step, "alive")]
    assert _groups(current, "drift") == [(newest - step, "alive")]


# The alerter's memory, read back from tables that other software maintains.


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
