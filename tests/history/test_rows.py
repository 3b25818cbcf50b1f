"""The rows of an hour, against the same rounds gone through one by one."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.history import group_days, group_hours, partition_hours, rounds_around
from streaming.tables import table_named
from tests.examples import examples
from tests.history.build import HOUR, HOUR_MS, START_MS, rounds, rows_of

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


def test_a_mean_weights_each_value_by_the_time_for_which_it_held() -> None:
    # Rounds 100 to 130 at 0, 10, 20 and 30 s; lag 5 for 20 s, then 50 for 10 s.
    row = groups(
        rounds(0, 10_000, 20_000, 30_000), [health(100, lag_total=5, members=2), health(120, lag_total=50, members=3)]
    )["g"]
    assert (row["observed_seconds"], row["lag_total_mean"], row["lag_total_max"]) == (30, 20, 50)
    assert (row["members_min"], row["members_max"], row["members_mean"]) == (2, 3, pytest.approx(7 / 3))
    assert row["state_seconds"] == [{"name": "Stable", "seconds": 30}]


def test_an_hour_begins_with_the_values_before_it() -> None:
    row = groups(rounds(-20_000, -10_000, 0, 10_000), [health(100, lag_total=7)])["g"]
    # (Also the step that leads into the hour's first round is the hour's.)
    assert (row["observed_seconds"], row["lag_total_mean"], row["source_rows"]) == (20, 7, 0)


def test_a_value_older_than_a_heartbeat_is_not_carried() -> None:
    many = rounds(*range(-CARRY - 30_000, 10_001, 10_000))
    assert groups(many, [health(many[0]["round"], lag_total=7)]) == {}
    assert groups(many, [health(many[4]["round"], lag_total=7)])["g"]["observed_seconds"] == 20


def test_the_time_of_missing_rounds_counts_nowhere() -> None:
    row = groups(rounds(0, 10_000, 1_810_000, 1_820_000), [health(100, lag_total=1), health(130, lag_total=100)])["g"]
    assert row["observed_seconds"] == 10 + 30 + 10
    assert row["lag_total_mean"] == 1


def test_what_is_not_known_is_left_out_of_the_mean_and_its_time_is_told() -> None:
    row = groups(
        rounds(0, 10_000, 20_000, 30_000),
        [health(100, lag_total=4), health(110, lag_total=None, lag_status="unknown"), health(120, lag_total=8)],
    )["g"]
    assert (row["lag_total_mean"], row["lag_known_seconds"], row["observed_seconds"]) == (6, 20, 30)
    assert row["lag_status_seconds"] == [{"name": "ok", "seconds": 20}, {"name": "unknown", "seconds": 10}]


def test_a_group_that_has_ended_is_observed_no_longer() -> None:
    row = groups(
        rounds(0, 10_000, 20_000, 30_000),
        [health(100, lag_total=4, commits=3), health(110, ended=True, lag_total=None, commits=2)],
    )["g"]
    assert (row["observed_seconds"], row["commits"], row["source_rows"]) == (10, 5, 2)


def test_members_that_no_partition_is_left_for_are_timed() -> None:
    row = groups(
        rounds(0, 10_000, 20_000, 30_000),
        [
            health(100, members=5, partitions=3),
            health(120, members=3, partitions=3),
            health(130, members=4, partitions=0),
        ],
    )["g"]
    assert (row["members_beyond_partitions_seconds"], row["members_beyond_partitions_max"]) == (20, 2)


def test_findings_are_timed_and_several_can_hold_at_once() -> None:
    two = [["unassigned", START_MS, "a"], ["unassigned", START_MS, "b"], ["rewound", START_MS, None]]
    row = groups(
        rounds(0, 10_000, 20_000, 30_000),
        [health(100, findings=two), health(120, findings=[["rewound", START_MS, None]])],
    )["g"]
    assert row["finding_seconds"] == [{"name": "rewound", "seconds": 30}, {"name": "unassigned", "seconds": 20}]


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


VALUES = st.one_of(st.none(), st.integers(0, 1_000))
LAGS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 11), VALUES, st.booleans()), max_size=25)
GAPS = st.lists(st.sampled_from((-4_000, 0, 9_000, 10_000, 30_000, 400_000, 2_000_000)), min_size=11, max_size=11)


@pytest.mark.nightly
@settings(max_examples=examples(60), deadline=None)
@given(st.integers(-2_500_000, 3_500_000), GAPS, LAGS)
def test_hours_are_those_of_a_reader_who_goes_through_every_round(
    start: int, gaps: list[int], rows: list[tuple[str, int, int | None, bool]]
) -> None:
    times = [start]
    for gap in gaps:
        times.append(times[-1] + gap)
    of_rounds = rounds(*times)
    unique = {(group, number): (value, ended) for group, number, value, ended in rows}
    told = [
        health(100 + 10 * number, group, lag_total=value, ended=ended)
        for (group, number), (value, ended) in unique.items()
    ]
    expected = by_hand(of_rounds, unique)
    found = {
        group: (row["observed_seconds"], row["lag_known_seconds"], row["lag_total_mean"], row["lag_total_max"])
        for group, row in groups(of_rounds, told).items()
    }
    assert found.keys() == expected.keys()
    for group, values in expected.items():
        assert found[group] == pytest.approx(values), group
    by_partition = [
        lag(100 + 10 * number, value, group, lag_status="unknown" if value is None else "stopped", ended=ended)
        for (group, number), (value, ended) in unique.items()
    ]
    rows_of_partitions = partitions(of_rounds, by_partition, parts=2)
    assert {
        row["group_id"]: (row["observed_seconds"], row["lag_known_seconds"], row["lag_mean"], row["lag_max"])
        for row in rows_of_partitions
    } == {
        group: pytest.approx(values)
        for group, values in expected.items()
        if any(not ended for (of, _), (_, ended) in unique.items() if of == group)
        and group in living(of_rounds, unique)
    }


def living(of_rounds: list[dict[str, Any]], rows: dict[tuple[str, int], tuple[int | None, bool]]) -> set[str]:
    """Groups of which a row that is no end was seen in the hour, or held in it."""
    return {group for group, (observed, *_, seen) in gone_through(of_rounds, rows).items() if observed or seen}


def by_hand(
    of_rounds: list[dict[str, Any]], rows: dict[tuple[str, int], tuple[int | None, bool]]
) -> dict[str, tuple[float | None, ...]]:
    return {group: values[:4] for group, values in gone_through(of_rounds, rows).items()}


def gone_through(
    of_rounds: list[dict[str, Any]], rows: dict[tuple[str, int], tuple[int | None, bool]]
) -> dict[str, tuple[Any, ...]]:
    in_hour = [START_MS <= r["round_time"] < START_MS + HOUR_MS for r in of_rounds]
    if not any(in_hour):
        return {}
    first = in_hour.index(True)
    found = {}
    for group in {group for group, _ in rows}:
        held: Any = None  # the value in force, as (value,), before any row None
        time: dict[Any, int] = defaultdict(int)
        highest: list[int] = []
        seen = alive = False
        for number, one in enumerate(of_rounds):
            step = one["elapsed_ms"] - of_rounds[number - 1]["elapsed_ms"] if number else 0
            if held is not None and in_hour[number] and step:
                time[held] += step
                highest += [held[0]] if held[0] is not None else []
            old = of_rounds[first]["elapsed_ms"] - one["elapsed_ms"] > CARRY
            if (group, number) in rows and not old:
                value, ended = rows[group, number]
                held = None if ended else (value,)
                seen = seen or in_hour[number]
                alive = alive or (in_hour[number] and not ended)
                if in_hour[number] and not ended and value is not None:
                    highest.append(value)
        observed = sum(time.values())
        if not observed and not seen:
            continue
        known = sum(ms for value, ms in time.items() if value[0] is not None)
        total = sum(value[0] * ms for value, ms in time.items() if value[0] is not None)
        found[group] = (
            observed / 1000, known / 1000, total / known if known else None, max(highest, default=None), alive,
        )  # fmt: skip
    return found


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
