"""Retention: what goes, and what stays whatever its age."""

from __future__ import annotations

import time
from typing import Any

from streaming.tables import (
    DeltaLake,
    LakeReader,
)
from streaming.times import DAY_MS
from tests.maintain.build import (
    KEEP,
    NOW,
    TODAY,
    Writer,
    maintain,
    row,
    rows_of,
)


def test_rows_past_their_time_go_and_the_present_stays_whatever_its_age(lake: DeltaLake, writer: Writer) -> None:
    writer.append("group_health", row("group_health", -90, 1, group_id="stable"))
    writer.append("drift", row("drift", -90, 1, group_id="stable", verdict="drifted"))
    writer.append("drift", row("drift", -91, 0, group_id="stable", verdict="identical"))
    writer.append("members", row("members", -90, 1, group_id="stable", member_id="m"))
    writer.append("rebalance_churn", row("rebalance_churn", -91, 0, group_id="stable"))
    writer.append("rebalance_churn", row("rebalance_churn", -90, 1, group_id="stable", revision=1))
    writer.append("rebalance_churn", row("rebalance_churn", -90, 1, group_id="stable", revision=2))
    writer.append("what_if", row("what_if", -90, 1, group_id="stable", strategy="range"))
    writer.round(0, 2)
    writer.append("group_health", row("group_health", 0, 2, group_id="stable"))
    maintain(lake)
    reader = LakeReader(lake.root)
    left = {
        name: [r["decision"] for r in reader.rows(f"SELECT decision FROM {name}")]
        for name in ("members", "rebalance_churn")
    }
    assert left == {"members": [1], "rebalance_churn": [1]}
    assert reader.rows("SELECT verdict FROM drift") == [{"verdict": "drifted"}]
    assert reader.rows("SELECT revision FROM rebalance_churn") == [{"revision": 2}]
    assert reader.count("what_if_current") == reader.count("what_if") == 1
    assert reader.rows("SELECT round FROM group_health") == [{"round": 2}]


def test_a_table_without_days_is_aged_by_the_time_of_writing(lake: DeltaLake, writer: Writer) -> None:
    for number in range(2):
        writer.append("gaps", row("gaps", -300, number, kind="rounds"))
    # (These were written by the machine's clock, and midnight may have passed since the other days were counted.)
    last = KEEP + int(time.time() * 1000) // DAY_MS - TODAY
    writer.round(last, 1)
    maintain(lake, now=NOW + last * DAY_MS)
    assert LakeReader(lake.root).count("gaps") == 2
    writer.round(last + 1, 2)
    maintain(lake, now=NOW + (last + 1) * DAY_MS)
    assert LakeReader(lake.root).count("gaps") == 0


def test_what_has_ended_goes_with_everything_of_it(lake: DeltaLake, writer: Writer) -> None:
    for number, ended in ((1, False), (2, False), (3, True)):
        writer.append("group_health", row("group_health", number - 60, number, group_id="gone", ended=ended))
        writer.append("members", row("members", number - 60, number, group_id="gone", member_id="m", ended=ended))
    writer.append("drift", row("drift", -60, 1, group_id="gone"))
    writer.append("rebalance_churn", row("rebalance_churn", -60, 1, group_id="gone"))
    writer.round(0, 9)
    maintain(lake)
    reader = LakeReader(lake.root)
    names = ("group_health", "members", "drift", "rebalance_churn")
    assert {name: reader.count(name) for name in names} == dict.fromkeys(names, 0)


def test_an_end_that_a_wrong_clock_has_put_before_other_rows_brings_nothing_back(
    lake: DeltaLake, writer: Writer
) -> None:
    writer.append("members", row("members", -40, 1, member_id="m"))
    writer.append("members", row("members", -60, 2, member_id="m", ended=True))
    writer.round(0, 9)
    for _ in range(2):
        maintain(lake)
        assert LakeReader(lake.root).count("members_current") == 0


def _alert(day: int, number: int, alert: str, state: str, rule: str = "drift") -> list[Any]:
    return row(
        "alerts",
        day,
        number,
        rule=rule,
        entity="{}",
        alert_id=alert,
        transition_id=f"{alert}-{state}",
        state=state,
        ended=state in {"resolved", "gone"},
    )


def test_what_the_alerter_remembers_and_owes_stays(lake: DeltaLake, writer: Writer) -> None:
    writer.append("alerts", _alert(-50, 1, "old", "firing"), _alert(-49, 2, "old", "resolved"))
    writer.append("alerts", _alert(-48, 3, "open", "pending"), _alert(-48, 4, "open", "firing"))
    writer.append("alerts", _alert(-47, 5, "other", "pending", rule="behind"))
    for alert in ("old", "open"):
        writer.append(
            "alert_deliveries",
            row("alert_deliveries", -48, 4, alert_id=alert, transition_id=alert, target="ops", outcome="delivered"),
        )
    writer.append("alert_deliveries", row("alert_deliveries", -80, 1, target="ops", outcome="added"))
    writer.round(0, 9)
    before = rows_of(lake, "alerts_current")
    maintain(lake)
    reader = LakeReader(lake.root)
    assert rows_of(lake, "alerts_current") == before
    assert [r["transition_id"] for r in reader.rows("SELECT transition_id FROM alerts ORDER BY decision")] == [
        "open-pending",
        "open-firing",
        "other-pending",
    ]
    left = reader.rows("SELECT transition_id, outcome FROM alert_deliveries ORDER BY outcome")
    assert [tuple(r.values()) for r in left] == [(None, "added"), ("open", "delivered")]


def test_a_lake_to_which_nobody_writes_any_more_stays_as_it_is(lake: DeltaLake, writer: Writer) -> None:
    writer.append("lag", row("lag", -100, 1, topic="t", partition=0), row("lag", -100, 2, topic="t", partition=0))
    writer.round(-99, 2)
    maintain(lake)
    assert LakeReader(lake.root).count("lag") == 2
