"""What the boards of load, topics and drift make of rows: no lake, no browser."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from dashboards.boards.drift import DRIFTED, LIBRARIES, MISMATCHES, REASONS
from dashboards.boards.load import by_member, by_topic, history_series, hot, judged
from dashboards.boards.topics import produced_why, reading_of, unread_why
from dashboards.charts import Heard, count_plot, held, measure_plot, moment_of
from dashboards.page.board import grouped
from dashboards.spans import Range, step_of

NOW = datetime(2026, 11, 20, 14, 3, 20, tzinfo=UTC)
SPAN = Range("live", NOW - timedelta(hours=1), NOW)


def _load(**more: Any) -> dict[str, Any]:
    return {
        "group_id": "g", "members": 2, "produced_per_second": 100.0, "load_imbalance": 0.0, "avoidable": 0.0,
        "load_imbalance_optimal_min": 0.0, "load_imbalance_optimal_max": 0.0, "hot_partitions": [],
        **more,
    }  # fmt: skip


def test_a_hot_member_is_told_from_a_hot_partition() -> None:
    partition = {"topic": "orders", "partition": 3, "per_second": 80.0}
    member = _load(load_imbalance=0.9, avoidable=0.9)
    assert judged(member) == {"member"}
    assert hot(member) == ["hot member: imbalance 0.90, another assignment would reach 0"]
    alone = _load(load_imbalance=0.6, avoidable=0.0, load_imbalance_optimal_max=0.6, hot_partitions=[partition])
    assert judged(alone) == {"partition"}
    assert hot(alone) == ["hot partition: orders 3 (80 % of what is produced); no assignment can even it out"]
    both = _load(load_imbalance=1.0, avoidable=0.4, load_imbalance_optimal_max=0.6, hot_partitions=[partition])
    assert judged(both) == {"member", "partition"}
    assert len(hot(both)) == 2


def test_an_imbalance_that_no_assignment_lowers_by_a_tenth_is_no_hot_member() -> None:
    assert hot(_load(load_imbalance=0.09, avoidable=0.09)) == ["even"]
    told = hot(_load(load_imbalance=0.5, avoidable=0.1, load_imbalance_optimal_max=0.4))
    assert told == ["as even as an assignment can make it"]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (_load(produced_per_second=None, load_imbalance=None), "no rate is known yet"),
        (_load(members=0, load_imbalance=None), "no members"),
        (_load(produced_per_second=0.0, load_imbalance=None), "nothing is produced"),
        (_load(load_imbalance=None), "the rate of an assigned partition is not known"),
        (_load(load_imbalance=0.5, avoidable=None), "how even it could be is not known"),
    ],
)
def test_what_is_not_known_of_a_load_is_never_called_even(row: dict[str, Any], says: str) -> None:
    assert judged(row) == {"unknown"}
    assert hot(row)[0].startswith(says)


def _partition(topic: str, number: int, produced: float | None, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "broker": None, "partition": number, "produced_per_second": produced,
            "consumed_per_second": produced, "lag": 1, "client_id": "c", **more}  # fmt: skip


def _grown(topic: str, number: int, records: int | None) -> dict[str, Any]:
    return {"topic": topic, "broker": None, "partition": number, "high_watermark_growth": records}


def test_a_topic_sums_its_partitions_and_says_of_how_many_the_rate_is_not_known() -> None:
    now = [_partition("a", 0, 2.0), _partition("a", 1, None), _partition("b", 0, 5.0)]
    first, second = by_topic(now, [_grown("a", 0, 70), _grown("gone", 0, 9)], [_grown("a", 0, 50)])[:2]
    assert (first["topic"], first["produced_per_second"]) == ("b", 5.0)
    assert (second["partitions"], second["produced_per_second"], second["unknown"], second["records"]) == (
        2,
        2.0,
        1,
        70,
    )
    assert second["records_before"] == 50
    assert first["records"] is None


def test_members_that_are_gone_follow_those_that_are_here() -> None:
    now = [
        {"member_id": name, "client_id": name, "client_host": "h", "partitions": 1, "produced_per_second": 1.0,
         "consumed_per_second": 1.0, "share": share}
        for name, share in (("a", 0.9), ("b", 0.1))
    ]  # fmt: skip
    told = [
        {"member_id": name, "client_id": name, "client_host": "h", "produced_per_second": 2.0, "share_mean": 0.5,
         "share_max": 0.6}
        for name in ("old", "a")
    ]  # fmt: skip
    rows = by_member(now, told)
    assert [(row["member_id"], row["gone"], row["past"] is None) for row in rows] == [
        ("a", False, False), ("b", False, True), ("old", True, False),
    ]  # fmt: skip
    assert (rows[2]["produced_per_second"], rows[2]["past"]["produced_per_second"]) == (None, 2.0)
    assert rows[0]["of_fair"] == pytest.approx(1.8)


def test_a_day_without_rounds_is_a_gap_and_a_quiet_day_is_zero() -> None:
    def day(number: int, seconds: float | None) -> dict[str, Any]:
        return {"time": moment_of(date(2026, 11, number)), "observed_seconds": seconds, "imbalance_mean": 0.5,
                "imbalance_optimal_mean": 0.0}  # fmt: skip

    grown = [{"time": date(2026, 11, 3), "high_watermark_growth": 100, "committed_offset_growth": None}]
    rates, even = history_series(grown, [day(1, 86_400.0), day(2, 0.0), day(3, 50.0)])
    assert rates[1:] == [[0.0, None, 2.0], [0.0, None, None]]
    assert even[1] == [0.5, 0.5, 0.5]


def test_a_measure_holds_until_the_next_row_and_not_beyond_a_heartbeat() -> None:
    heard = Heard(until=NOW, reach=timedelta(minutes=12))
    times, values = held(
        ((NOW - timedelta(minutes=ago), [value]) for ago, value in ((90, 1.0), (20, 3.0))), SPAN, heard
    )
    assert [(round((NOW.timestamp() - at) / 60), value) for at, value in zip(times, values, strict=True)] == [
        (20, 3.0), (8, 3.0), (8, None),
    ]  # fmt: skip
    assert held([], SPAN, heard) == [[]]


def test_a_chart_has_a_sentence_for_who_cannot_see_it() -> None:
    made = measure_plot([[1, 2], [0.2, 40.0], [None, None]], SPAN, ("produced", "consumed"), unit="/s")
    assert made["told"] == "produced from 0.2/s to 40/s, last 40/s"
    assert measure_plot([], SPAN, ("produced",))["told"] == "nothing was measured in this time"


def test_counts_are_stacked_by_kind_in_steps() -> None:
    at = NOW.replace(minute=0, second=0)
    rows = [
        {"time": at, "verdict": word, "verdicts": n} for word, n in (("drifted", 2), ("identical", 5), ("drifted", 1))
    ]
    made = count_plot(rows, SPAN, "hour", {"drifted": "drifted", "identical": "as expected"}, "verdict")
    assert made["series"] == [[int(at.timestamp())], [3], [5]]
    assert (made["width"], made["told"]) == (3_600, "3 drifted, 5 as expected")
    spans = [Range("", NOW - timedelta(days=days), NOW) for days in (0.25, 7, 30)]
    assert [step_of(span, 400) for span in spans] == ["minute", "hour", "day"]


def _topic(**more: Any) -> dict[str, Any]:
    return {"groups": 0, "read_by_nobody": None, "read_by_nobody_reason": None, "produced_per_second": None,
            "produced_reason": None, "round_time": NOW, **more}  # fmt: skip


def test_a_topic_is_read_by_nobody_only_where_that_is_known() -> None:
    assert reading_of(_topic(groups=1)) == "read"
    assert reading_of(_topic(read_by_nobody=True)) == "nobody"
    hidden = _topic(read_by_nobody_reason="no_right")
    assert reading_of(hidden) == "unknown"
    assert "may not describe all groups" in unread_why(hidden)
    assert unread_why(_topic(read_by_nobody=True)) == ""
    assert "heartbeat" in produced_why(_topic(produced_reason="first_look"))
    assert "does not look" in produced_why(_topic(round_time=None))
    assert produced_why(_topic(produced_per_second=0.0)) == ""


def _verdicts(group: str, verdict: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "cluster": "c", "group_id": group, "verdict": verdict, "reason": None, "strategy": "range",
        "expected_strategy": None, "matching_library": None, "verdicts": number, "mismatches": 0,
        "first_time": NOW - timedelta(hours=2), "last_time": NOW, "last_decision": 7, "drifted_most": 0,
        "candidates_most": 4, **more,
    }  # fmt: skip


def test_groups_that_drifted_are_counted_among_their_judged_decisions() -> None:
    rows = [
        _verdicts("a", "drifted", 2, drifted_most=3, last_time=NOW - timedelta(hours=1), last_decision=5),
        _verdicts("a", "drifted", 1, drifted_most=9, strategy="mine", last_decision=6),
        _verdicts("a", "identical", 7),
        _verdicts("a", "not_applicable", 50),
        _verdicts("b", "identical", 7),
    ]
    [one] = grouped(rows, DRIFTED)
    assert (one["group_id"], one["drifted"], one["verdicts"], one["drifted_most"]) == ("a", 3, 10, 9)
    assert (one["last"]["last_decision"], one["strategies"]) == (6, ["mine", "range"])


def test_another_strategy_than_configured_is_listed_with_both() -> None:
    rows = [_verdicts("a", "identical", 3, mismatches=3, expected_strategy="sticky"), _verdicts("b", "identical", 1)]
    [one] = grouped(rows, MISMATCHES)
    assert (one["group_id"], one["strategy"], one["expected_strategy"], one["mismatches"]) == (
        "a",
        "range",
        "sticky",
        3,
    )


def test_reasons_and_libraries_count_decisions_and_groups() -> None:
    rows = [
        _verdicts("a", "unverified", 2, reason="no bytes"),
        _verdicts("b", "unverified", 5, reason="no bytes", last_time=NOW + timedelta(hours=1), last_decision=9),
        _verdicts("b", "unverified", 1, reason="another"),
        _verdicts("a", "identical", 4, matching_library="java:3.5"),
        _verdicts("b", "identical", 4, matching_library="java:3.5", candidates_most=6),
    ]
    first, second = grouped(rows, REASONS, verdict="unverified")
    assert (first["reason"], first["verdicts"], first["groups"]) == ("no bytes", 7, 2)
    assert first["last"]["last_decision"] == 9
    assert second["reason"] == "another"
    [library] = grouped(rows, LIBRARIES)
    assert (library["matching_library"], library["verdicts"], library["groups"], library["candidates"]) == (
        "java:3.5",
        8,
        2,
        6,
    )
