"""The rows of an hour and of a day, by hand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from streaming.history import group_days, group_hours, partition_hours, rounds_around
from streaming.tables import named_to_arrow, table_named

HOUR = datetime(2026, 3, 14, 13, tzinfo=UTC)
HOUR_MS = 3_600_000
START_MS = int(HOUR.timestamp() * 1000)


def rows_of(table: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows of a table, times in ms; each of the cluster c if it does not say so."""
    given = [{"cluster": "c", "findings": [], "ended": False, **row} for row in rows]
    return named_to_arrow(table_named(table), given)


def rounds(*times: int, interval: int = 10_000) -> list[dict[str, Any]]:
    """Rounds at these ms of the hour, numbered from 100 in steps of 10, with `elapsed_ms` as the job counts it."""
    found: list[dict[str, Any]] = []
    elapsed = 0
    for number, time in enumerate(times):
        if number:
            elapsed += min(max(time - times[number - 1], 0), 3 * interval)
        found.append(
            {
                "round": 100 + 10 * number,
                "round_time": START_MS + time,
                "elapsed_ms": elapsed,
                "interval_ms": interval,
            }
        )
    return found


CARRY = 1_200_000


def groups(
    of_rounds: list[dict[str, Any]],
    health: list[dict[str, Any]] = (),  # type: ignore[assignment]
    churn: list[dict[str, Any]] = (),  # type: ignore[assignment]
    drift: list[dict[str, Any]] = (),  # type: ignore[assignment]
) -> dict[str, dict[str, Any]]:
    steps = rounds_around(rows_of("rounds", of_rounds), "c", HOUR, CARRY)
    times = {one["round"]: one["round_time"] for one in of_rounds}
    timed = [{**row, "round_time": times[row["round"]]} for row in health]
    given = {"group_health": timed, "rebalance_churn": churn, "drift": drift}
    sources = {name: ds.dataset(rows_of(name, rows)) for name, rows in given.items()}
    return {row["group_id"]: row for row in group_hours(sources, steps, "c", HOUR).to_pylist()}


def health(number: int, group: str = "g", **values: Any) -> dict[str, Any]:
    return {"group_id": group, "round": number, "lag_status": "ok", "state": "Stable", "commits": 0, **values}


FOUR = rounds(0, 10_000, 20_000, 30_000)
"""Rounds 100 to 130."""
MANY = rounds(*range(-CARRY - 30_000, 10_001, 10_000))

Values = dict[str, Any]
# Rounds, rows of health, and columns of the group's row; None where it has none.
HOURS: dict[str, tuple[list[Values], list[Values], Values | None]] = {
    # Lag 5 for 20 s, then 50 for 10 s.
    "a mean weights each value by the time for which it held": (
        FOUR,
        [health(100, lag_total=5, members=2), health(120, lag_total=50, members=3)],
        {
            "observed_seconds": 30,
            "lag_total_mean": 20,
            "lag_total_max": 50,
            "members_min": 2,
            "members_max": 3,
            "members_mean": pytest.approx(7 / 3),
            "state_seconds": [{"name": "Stable", "seconds": 30}],
        },
    ),
    # Also the step that leads into the hour's first round is the hour's.
    "an hour begins with the values before it": (
        rounds(-20_000, -10_000, 0, 10_000),
        [health(100, lag_total=7)],
        {"observed_seconds": 20, "lag_total_mean": 7, "source_rows": 0},
    ),
    "a value older than a heartbeat is not carried": (MANY, [health(MANY[0]["round"], lag_total=7)], None),
    "one that is not older is": (MANY, [health(MANY[4]["round"], lag_total=7)], {"observed_seconds": 20}),
    "the time of missing rounds counts nowhere": (
        rounds(0, 10_000, 1_810_000, 1_820_000),
        [health(100, lag_total=1), health(130, lag_total=100)],
        {"observed_seconds": 10 + 30 + 10, "lag_total_mean": 1},
    ),
    "nor does that of a clock that goes back": (
        rounds(0, 10_000, 6_000, 16_000),
        [health(100, lag_total=4), health(120, lag_total=10)],
        {"observed_seconds": 20, "lag_total_mean": 7},
    ),
    "what is not known is left out of the mean, and a column has its time": (
        FOUR,
        [health(100, lag_total=4), health(110, lag_total=None, lag_status="unknown"), health(120, lag_total=8)],
        {
            "lag_total_mean": 6,
            "lag_known_seconds": 20,
            "observed_seconds": 30,
            "lag_status_seconds": [{"name": "ok", "seconds": 20}, {"name": "unknown", "seconds": 10}],
        },
    ),
    "a group that has ended is observed no longer": (
        FOUR,
        [health(100, lag_total=4, commits=3), health(110, ended=True, lag_total=None, commits=2)],
        {"observed_seconds": 10, "commits": 5, "source_rows": 2},
    ),
    "members that no partition is left for are timed": (
        FOUR,
        [
            health(100, members=5, partitions=3),
            health(120, members=3, partitions=3),
            health(130, members=4, partitions=0),
        ],
        {"members_beyond_partitions_seconds": 20, "members_beyond_partitions_max": 2},
    ),
    "findings are timed and several can hold at once": (
        FOUR,
        [
            health(
                100,
                findings=[
                    ["unassigned", START_MS, "a"],
                    ["unassigned", START_MS, "b"],
                    ["rewound", START_MS, None],
                ],
            ),
            health(120, findings=[["rewound", START_MS, None]]),
        ],
        {"finding_seconds": [{"name": "rewound", "seconds": 30}, {"name": "unassigned", "seconds": 20}]},
    ),
}


@pytest.mark.parametrize("case", HOURS)
def test_the_row_of_an_hour_is_about_the_time_for_which_values_held(case: str) -> None:
    of_rounds, rows, expected = HOURS[case]
    found = groups(of_rounds, rows).get("g")
    assert (found and {name: found[name] for name in expected or {}}) == expected


def decision(number: int, revision: int = 1, **values: Any) -> dict[str, Any]:
    return {
        "group_id": "g",
        "decision": number,
        "revision": revision,
        "record_time": START_MS + number,
        "kind": "rebalance",
        **values,
    }


def test_decisions_count_by_their_newest_revision_and_bounds_stay_bounds() -> None:
    churn = [
        decision(1, partitions_moved=3, partitions_moved_optimal=2),
        decision(
            1, 2, partitions_moved=4, partitions_moved_optimal=2,
            unassigned_partition_seconds_min=1.5, unassigned_partition_seconds_max=9.0,
        ),
        decision(2, partitions_moved=10, unassigned_partition_seconds_min=2.0, unassigned_partition_seconds_max=3.0),
        decision(3, kind="created", partitions_moved=None),
        decision(HOUR_MS, partitions_moved=99),
    ]  # fmt: skip
    row = groups([], churn=churn)["g"]
    assert (row["decisions"], row["rebalances"], row["source_rows"]) == (3, 2, 4)
    assert (row["partitions_moved"], row["partitions_moved_unknown"]) == (14, 0)
    assert (row["partitions_moved_comparable"], row["partitions_moved_optimal"]) == (4, 2)
    assert (row["unassigned_partition_seconds_min"], row["unassigned_partition_seconds_max"]) == (3.5, 12)
    open_one = [*churn, decision(4, partitions_moved=None)]
    row = groups([], churn=open_one)["g"]
    assert (row["unassigned_partition_seconds_min"], row["unassigned_partition_seconds_max"]) == (3.5, None)
    assert row["partitions_moved_unknown"] == 1


def test_a_decision_has_the_worst_of_its_verdicts() -> None:
    verdicts = [
        {
            "group_id": "g",
            "decision": number,
            "record_time": START_MS,
            "topic": topic,
            "verdict": verdict,
            "round": number,
        }
        for number, topic, verdict in (
            (1, None, "identical"),
            (2, "a", "identical"),
            (2, "b", "drifted"),
            (3, None, "unverified"),
            (4, None, "not_applicable"),
        )
    ]
    row = groups([], drift=verdicts)["g"]
    assert [row[f"decisions_{name}"] for name in ("identical", "drifted", "unverified")] == [1, 1, 1]
    assert row["source_rows"] == 5


def partitions(of_rounds: list[dict[str, Any]], lag: list[dict[str, Any]], parts: int = 1) -> list[dict[str, Any]]:
    steps = rounds_around(rows_of("rounds", of_rounds), "c", HOUR, CARRY)
    found = partition_hours(ds.dataset(rows_of("lag", lag)), steps, "c", HOUR, parts)
    return sorted(found.to_pylist(), key=lambda row: (row["group_id"], row["topic"], row["partition"]))


def cause(*names: str) -> list[tuple[Any, ...]]:
    return [(name, "", 1, [], None, None, None) for name in names]


def test_rebalances_count_by_protocol_and_by_each_of_their_causes_once() -> None:
    churn = [
        decision(1, rebalance_protocol="eager", causes=cause("member_left"), partitions_stopped_unmoved=3),
        decision(1, 2, rebalance_protocol="eager", causes=cause("member_left"), partitions_stopped_unmoved=3),
        decision(
            2, rebalance_protocol="eager", causes=cause("member_left", "partitions_changed", "partitions_changed"),
            partitions_stopped_unmoved=4,
        ),
        decision(3, causes=cause("handover")),
        decision(4, kind="became_empty", causes=cause("member_gone"), partitions_stopped_unmoved=99),
    ]  # fmt: skip
    row = groups([], churn=churn)["g"]
    assert row["rebalances_by_protocol"] == [{"name": "eager", "count": 2}]
    assert row["rebalances_by_cause"] == [
        {"name": "handover", "count": 1},
        {"name": "member_left", "count": 2},
        {"name": "partitions_changed", "count": 1},
    ]
    assert (row["partitions_stopped_unmoved"], row["partitions_stopped_unmoved_unknown"]) == (7, 1)


def test_a_day_with_an_hour_of_an_older_release_has_no_counts_by_cause() -> None:
    hour = {
        "group_id": "g", "hour": START_MS, "event_date": START_MS // 86_400_000, "source_rows": 1,
        "partitions_stopped_unmoved": 2, "partitions_stopped_unmoved_unknown": 0,
    }  # fmt: skip
    told = [("eager", 1)]
    both = {**hour, "rebalances_by_protocol": told, "rebalances_by_cause": []}
    for old, expected in ((both, (4, [{"name": "eager", "count": 2}], [])), (hour, (None, None, None))):
        hours = rows_of("group_hourly", [both, {**old, "hour": START_MS + HOUR_MS}])
        (day,) = group_days(ds.dataset(hours), "c", HOUR.date()).to_pylist()
        found = (day["partitions_stopped_unmoved"], day["rebalances_by_protocol"], day["rebalances_by_cause"])
        assert found == expected


def lag(number: int, value: int | None, group: str = "g", partition: int = 0, **values: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "topic": "t",
        "partition": partition,
        "round": number,
        "lag": value,
        "lag_status": "ok",
        "commits": 1,
        "rewound_by": 0,
        **values,
    }


def test_a_partition_has_a_row_only_where_something_happened() -> None:
    of_rounds = rounds(-10_000, 0, 10_000, 20_000)
    resting = [lag(100, 0, committed_offset=5, high_watermark=5), lag(120, 0, committed_offset=5, high_watermark=5)]
    assert partitions(of_rounds, resting) == []
    for what in (
        {"committed_offset": 6, "high_watermark": 6},
        {"lag": 1},
        {"lag": None, "lag_status": "unknown"},
        {"lag_status": "rewound", "rewound_by": 2},
    ):
        assert len(partitions(of_rounds, [resting[0], {**resting[1], **what}])) == 1, what
    assert partitions(of_rounds, [lag(100, None, lag_status="no_commit", high_watermark=3)]) == []


def test_growth_is_counted_from_the_value_before_the_hour_and_steps_back_are_left_out() -> None:
    of_rounds = rounds(-10_000, 0, 10_000, 20_000)
    (row,) = partitions(
        of_rounds,
        [
            lag(100, 10, committed_offset=90, high_watermark=100),
            lag(110, 5, committed_offset=100, high_watermark=105),
            lag(120, 55, committed_offset=60, high_watermark=115, rewound_by=40, lag_status="rewound"),
            lag(130, 0, committed_offset=120, high_watermark=120),
        ],
    )
    assert (row["committed_offset_growth"], row["high_watermark_growth"], row["rewound_by_max"]) == (70, 20, 40)
    # The step into each round has the value before it: 10, 5, 55.
    assert (row["lag_mean"], row["lag_max"], row["commits"]) == (pytest.approx(70 / 3), 55, 3)
    assert row["lag_status_seconds"] == [{"name": "ok", "seconds": 20}, {"name": "rewound", "seconds": 10}]


def test_numbers_that_no_broker_has_end_at_the_bounds_of_their_type() -> None:
    least, most = -(2**63), 2**63 - 1
    of_rounds = rounds(0, 10_000, 20_000)
    (row,) = partitions(
        of_rounds, [lag(n, most, committed_offset=o, commits=most) for n, o in ((100, least), (110, most), (120, most))]
    )
    assert (row["committed_offset_growth"], row["lag_max"], row["commits"]) == (most, most, most)


def test_a_day_is_its_hours_again() -> None:
    day_rounds = rounds(*range(0, 7_200_000, 10_000))
    told = [
        health(
            100 + 10 * number, lag_total=number % 7, members=1 + number % 3, commits=1,
            imbalance=0.25 * (number % 2), imbalance_optimal=0.0, verdict="identical" if number < 300 else "drifted",
        )
        for number in range(0, 720, 5)
    ]  # fmt: skip
    times = {one["round"]: one["round_time"] for one in day_rounds}
    given = {
        "group_health": [{**row, "round_time": times[row["round"]]} for row in told],
        "rebalance_churn": [decision(1, partitions_moved=2), decision(HOUR_MS, partitions_moved=5)],
        "drift": [],
    }
    sources = {name: ds.dataset(rows_of(name, rows)) for name, rows in given.items()}
    parts = []
    for hour in (HOUR, HOUR + timedelta(hours=1)):
        steps = rounds_around(rows_of("rounds", day_rounds), "c", hour, CARRY)
        parts.append(group_hours(sources, steps, "c", hour))
    hours = pa.concat_tables(parts)
    (day,) = group_days(ds.dataset(hours), "c", HOUR.date()).to_pylist()
    seconds = 719 * 10
    assert day["observed_seconds"] == seconds
    assert day["lag_total_mean"] == pytest.approx(sum((number // 5 * 5) % 7 * 10 for number in range(719)) / seconds)
    assert (day["partitions_moved"], day["rebalances"], day["unassigned_partition_seconds_max"]) == (7, 2, None)
    assert day["drifted_seconds"] == 4_190
    assert day["verdict_seconds"] == [{"name": "drifted", "seconds": 4_190}, {"name": "identical", "seconds": 3_000}]
    assert day["source_rows"] == len(told) + 2
    assert set(day) == {column.name for column in table_named("group_daily").columns}
