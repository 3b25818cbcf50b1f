"""What the boards of alerts, cost, advice, clients, clusters and Evenkeel itself make of rows: no lake, no browser."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboards.boards.alerts import rules_of
from dashboards.boards.clients import FOLDED
from dashboards.boards.cost import source_of, stopped, summed
from dashboards.boards.itself import alerter, delay, maintained, missing
from dashboards.boards.rebalances import as_decided
from dashboards.format import Clock, reasons
from dashboards.page.board import grouped
from dashboards.spans import Range
from streaming.tables import DataFile

NOW = datetime(2026, 11, 20, 14, 3, 20, tzinfo=UTC)


def _round(number: int, ago_s: float, **more: Any) -> dict[str, Any]:
    at = NOW - timedelta(seconds=ago_s)
    return {"round": number, "round_time": at, "closed_time": at + timedelta(seconds=0.5), "events": 4,
            "log_records": 10, "elapsed_ms": None, **more}  # fmt: skip


def _written_now(newest: datetime | None) -> DataFile:
    return DataFile("", None, None, newest, None, written=int(NOW.timestamp() * 1000))


def test_a_delay_is_from_the_newest_close_in_a_file_until_it_was_written() -> None:
    files = [_written_now(NOW - timedelta(seconds=wait)) for wait in (3, 5, 40)]
    assert delay([*files, _written_now(None)]) == (timedelta(seconds=5), timedelta(seconds=40))
    assert delay([_written_now(None)]) is None


@pytest.mark.parametrize(
    ("judged", "style", "says"),
    [
        (None, "quiet", "No alerter has decided"),
        (100, "", "It is up: its last recorded decision is 10 s older"),
        (40, "bad", "has recorded no decision for"),
        (1, "bad", "nothing in the last hour"),
    ],
)
def test_an_alerter_lives_if_it_has_decided_not_long_before_the_newest_round(
    judged: int | None, style: str, says: str
) -> None:
    told = alerter(judged, [_round(101, 0), _round(100, 10), _round(99, 20), _round(40, 1_200)])
    assert told[0] == style
    assert says in told[1]


def test_a_clock_that_is_set_makes_no_alerter_late() -> None:
    # A broker's clock is set forward by two hours: one step of elapsed time, of three intervals at the most.
    before = [_round(number, 7_200 + 10 * (60 - number), elapsed_ms=10_000 * number) for number in range(60, 0, -1)]
    style, sentence = alerter(55, [_round(61, 0, elapsed_ms=630_000), *before])
    assert (style, "is 80 s older" in sentence) == ("", True)


@pytest.mark.parametrize(("rounds", "style"), [(90, ""), (91, "bad")])
def test_an_alerter_is_late_by_the_time_that_passed_in_rounds(rounds: int, style: str) -> None:
    assert alerter(1, [_round(1 + n, 0, elapsed_ms=10_000 * n) for n in range(rounds, -1, -1)])[0] == style


def test_where_elapsed_time_is_not_known_or_began_anew_the_times_of_rounds_count() -> None:
    for newest, reached in ((None, 0), (10_000, None), (10_000, 9_000_000)):
        for ago, style in ((890, ""), (910, "bad")):
            rows = [_round(2, 0, elapsed_ms=newest), _round(1, ago, elapsed_ms=reached)]
            assert alerter(1, rows)[0] == style


def test_a_maintenance_that_has_written_nothing_for_hours_is_bad_and_an_empty_history_is_not() -> None:
    assert maintained(None, NOW, NOW - timedelta(minutes=50))[0] == "unsure"
    assert maintained(NOW - timedelta(hours=1), NOW)[0] == ""
    assert maintained(NOW - timedelta(hours=4), NOW)[0] == "bad"
    assert maintained(NOW + timedelta(hours=1), NOW)[0] == ""


def test_a_maintenance_that_has_never_written_is_bad_once_there_are_hours_of_rounds() -> None:
    style, sentence = maintained(None, NOW, NOW - timedelta(days=3))
    assert style == "bad"
    assert "It has written no history in 3 days of rounds" in sentence
    assert maintained(None, None)[0] == "unsure"


def test_a_maintenance_has_nothing_to_do_while_there_are_no_rounds() -> None:
    # Its last write is four hours old, and so is the newest round.
    early = NOW - timedelta(hours=4)
    assert maintained(early, early + timedelta(minutes=5))[0] == ""
    assert maintained(early, None)[0] == ""


def test_a_day_is_summed_from_decisions_a_month_from_hours_and_a_year_from_days() -> None:
    def of(days: float) -> Any:
        return source_of(Range("", NOW - timedelta(days=days), NOW))

    assert of(1) == ("", Range("", NOW - timedelta(days=1), NOW))
    assert of(7)[0] == "_hours"
    assert of(7)[1] == Range("", datetime(2026, 11, 13, 14, tzinfo=UTC), datetime(2026, 11, 20, 15, tzinfo=UTC))
    assert of(7)[1].before.begin == datetime(2026, 11, 6, 13, tzinfo=UTC)
    assert of(365)[0] == "_days"
    assert of(365)[1] == Range("", datetime(2025, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))


def _cost(**more: Any) -> dict[str, Any]:
    return {
        "rebalances": 1, "unassigned_partition_seconds_min": 2.0, "unassigned_partition_seconds_max": 5.0,
        "partitions_moved": 3, "moves_avoidable": 1, "partitions_stopped_unmoved": 4, "stopped_unknown": 0,
        **more,
    }  # fmt: skip


def test_a_sum_has_no_upper_bound_if_one_row_has_none() -> None:
    sums = summed([_cost(), _cost(unassigned_partition_seconds_max=None)])
    assert (sums["unassigned_partition_seconds_min"], sums["unassigned_partition_seconds_max"]) == (4.0, None)
    assert summed([_cost(), _cost()])["unassigned_partition_seconds_max"] == 10.0


def test_what_is_not_known_is_said_and_not_counted_as_nothing() -> None:
    sums = summed([_cost(partitions_stopped_unmoved=None, stopped_unknown=1, moves_avoidable=None)])
    assert stopped(sums) == "not known of 1 rebalance"
    assert sums["moves_avoidable"] is None
    assert stopped(summed([_cost(), _cost(partitions_stopped_unmoved=None, stopped_unknown=1)])) == (
        "4, not known of 1 rebalance"
    )


def test_figures_of_no_decision_are_zeros() -> None:
    assert set(summed([]).values()) == {0}


def _client(group: str, **more: Any) -> dict[str, Any]:
    return {
        "cluster": "c", "client_id": "app", "client_host": "/10.0.0.1", "group_id": group, "members": 2,
        "static_members": 0, "instance": None, "rack": None, "leads": False, "partitions": None,
        "group_type": "classic", "protocol_type": "consumer", "strategy": "range", "library": None, **more,
    }  # fmt: skip


def test_one_client_in_several_groups_is_one_row_with_what_is_known_of_it() -> None:
    [one] = grouped(
        [_client("a"), _client("b", partitions=3, library="java:3.5", static_members=1, instance="i")], FOLDED
    )
    assert (one["members"], one["partitions"], one["static_members"], one["instance"]) == (4, 3, 1, "i")
    assert [row["group_id"] for row in one["groups"]] == ["a", "b"]
    assert one["libraries"] == ["java:3.5"]
    assert one["protocols"] == ["classic, range"]
    [of_share] = grouped([_client("g", group_type="share", protocol_type="share", strategy=None)], FOLDED)
    assert of_share["protocols"] == ["share"]


def test_a_rule_is_shown_as_it_stands_in_the_file_with_the_numbers_of_its_thresholds() -> None:
    content = {
        "thresholds": {"mine": 7},
        "rules": [
            {"name": "a", "severity": "info", "view": "v", "when": "x::INT > :mine AND :imbalance < :nobody",
             "for": "5m", "message": "m", "labels": {"team": "{client_id}"}},
            {"name": "b", "when": True, "per": ["topic", 3], "keep": "1h", "labels": ["no", "labels"]},
            "no rule",
        ],
    }  # fmt: skip
    first, second = rules_of(content, Path("alerts.yaml"))
    assert first["thresholds"] == [("mine", 7.0), ("imbalance", 0.5), ("nobody", None)]
    assert (first["for"], first["labels"]) == ("5m", [("team", "{client_id}")])
    assert (second["when"], second["per"], second["keep"], second["labels"]) == ("true", "topic, 3", "1h", [])


def test_a_right_that_may_be_missing_is_named_and_nothing_is_claimed_where_nothing_shows() -> None:
    row = {"round": 7, "cluster_id": "u", "not_visible": 0, "retention_unknown": 0, "type_unknown": 0, "seen": 0}
    assert missing(row) == []
    [visible, retention] = missing({**row, "not_visible": 1, "retention_unknown": 2})
    assert visible.startswith("1 group with a topic")
    assert "DescribeConfigs" in retention
    [seen] = missing({**row, "seen": 3})
    assert "3 groups that the probe asks for in rounds" in seen


def test_data_that_is_lost_soon_is_critical_only_by_the_brokers_own_timestamps() -> None:
    group = {
        "problems": "loses_data", "loses_data_topic": "orders", "loses_data_partition": 3,
        "loses_data_in_seconds_min": 60.0, "loses_data_in_seconds_max": 600.0, "loses_data_by": "append_time",
    }  # fmt: skip
    [certain] = reasons(group, Clock(NOW))
    assert (certain.health, "orders 3 ends in 60 s to 10 min" in certain.text) == (3, True)
    [perhaps] = reasons({**group, "problems": "may_lose_data", "loses_data_by": "create_time"}, Clock(NOW))
    assert (perhaps.health, "producers' timestamps" in perhaps.text) == (2, True)
    [over] = reasons({**group, "loses_data_in_seconds_max": 0.0}, Clock(NOW))
    assert "orders 3 has ended" in over.text


def test_lag_as_of_a_decision_is_counted_for_the_owners_that_it_gave() -> None:
    members = [
        {"member_id": "old", "partitions": []},
        {"member_id": "new", "partitions": [{"topic": "t", "broker": None, "partitions": [0, 1]}]},
        {"member_id": "queues", "partitions": [{"topic": "t", "broker": "a", "partitions": [0]}]},
        {"member_id": "undecodable", "partitions": None},
        *(
            {"member_id": name, "partitions": [{"topic": "shared", "broker": None, "partitions": [0]}]}
            for name in "abc"
        ),
    ]
    before = [
        {"topic": topic, "partition": n, "lag": 1, "member_id": "old"}
        for topic, n in (("t", 0), ("t", 1), ("t@a", 0), ("t", 2), ("shared", 0))
    ]
    found = {(row["topic"], row["partition"]): row["member_id"] for row in as_decided(before, members)}
    assert found == {("t", 0): "new", ("t", 1): "new", ("t@a", 0): "queues", ("t", 2): None, ("shared", 0): None}
