"""What the rules are given, from the tables' rows; and what `evenkeel advise` prints."""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from rich.console import Console

from streaming.advice import OF_LAST_DAY, OF_PERIOD, advice_of_day, print_advice
from streaming.tables import DeltaLake, named_to_arrow, table_named
from streaming.times import DAY_MS

DAY = date(2026, 3, 14)
START_MS = int(datetime(2026, 3, 14, tzinfo=UTC).timestamp() * 1000)
MINUTE_MS = 60_000


def row(ago: int = 0, minute: float = 0, **values: Any) -> dict[str, Any]:
    time = START_MS - ago * DAY_MS + int(minute * MINUTE_MS)
    return {
        "cluster": "c", "group_id": "g", "event_date": time // DAY_MS, "record_time": time, "round_time": time,
        "hour": time, "ended": False, "round": 1, "source_rows": 1, "findings": [], **values,
    }  # fmt: skip


def history(ago: int, **values: Any) -> dict[str, Any]:
    known = {"observed_seconds": 86_400.0, "members_known_seconds": 86_400.0, "members_mean": 4.0, "members_max": 4}
    return row(ago, **{**known, "commits": 5, **values})


def told(
    before: pa.Table | None = None, parts: int = 1, **tables: list[dict[str, Any]]
) -> dict[tuple[str, str], dict[str, Any]]:
    given: dict[str, list[dict[str, Any]]] = {
        "group_daily": [history(ago) for ago in range(7)],
        "group_health": [
            row(round=9, group_type="classic", protocol_type="consumer", strategy="range", partitions=8, members=4)
        ],
        **tables,
    }
    made = {name: ds.dataset(_rows(name, given.get(name, []))) for name in (*OF_PERIOD, *OF_LAST_DAY)}
    none = table_named("advice").arrow_schema.empty_table()
    found, _ = advice_of_day(made, none if before is None else before, "c", DAY, 7, parts)
    return {(one["group_id"], one["kind"]): one for one in found.to_pylist()}


def _rows(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    # Types with lists of named values are made by DuckDB, so `to_arrow` does not know them.
    return named_to_arrow(table_named(name), rows)


def test_offsets_expire_by_the_newest_decision_and_what_the_brokers_said_last() -> None:
    churn = {
        "kind": "rebalance", "causes": [], "joined": [], "left": [], "replaced": [], "revision": 1, "strategy": None,
    }  # fmt: skip
    gone = [row(5, decision=1, members=2, **churn), row(3, decision=2, members=0, **churn)]
    empty = [row(round=9, group_type="classic", protocol_type="consumer", members=0)]
    said = [row(round=8, offsets_retention_minutes=60), row(round=9, offsets_retention_minutes=10_080)]
    found = told(group_health=empty, rebalance_churn=gone, rounds=said)["g", "offsets_expire"]
    assert [one["value"] for one in found["details"]] == ["2026-03-11T00:00:00Z", "2026-03-18T00:00:00Z", "10080"]
    back = [*gone, row(2, decision=3, members=1, **churn)]
    for other in (
        {"group_health": empty, "rebalance_churn": back},
        {"group_health": [{**empty[0], "members": None}], "rebalance_churn": gone},
        {"group_health": [*empty, {**empty[0], "round": 10, "members": None}], "rebalance_churn": gone},
    ):
        assert told(rounds=said, **other) == {}


def restarted(group: str = "g") -> dict[str, list[dict[str, Any]]]:
    """Two restarts of a member, with revisions, and closing rows."""
    churn, members = [], []
    for number in range(2):
        base = {
            "group_id": group,
            "kind": "rebalance",
            "strategy": "range",
            "rebalance_protocol": "eager",
            "replaced": [],
        }
        left, joined = ("member_left", "", 1, [], None, None, None), ("member_joined", "", 1, [], None, None, None)
        out = row(3, 60 * number, **base, decision=10 * number, causes=[left], joined=[], left=[f"m{number}"])
        back = row(
            3, 60 * number + 0.5, **base, decision=10 * number + 5, causes=[joined], joined=[f"m{number + 1}"], left=[]
        )
        churn += [{**one, "revision": revision} for one in (out, back) for revision in (1, 2)]
        known = {"group_id": group, "client_id": "app", "client_host": "/10.0.0.1", "session_timeout_ms": 45_000}
        members += [
            row(3, 60 * number, **known, member_id=f"m{number}", decision=10 * number, ended=True),
            row(3, 60 * number, **known, member_id=f"m{number + 1}", decision=10 * number + 5),
        ]
    return {"rebalance_churn": churn, "members": members}


def test_restarts_are_found_in_churn_and_members() -> None:
    found = told(**restarted())["g", "static_membership"]
    assert (found["saved"], found["events"], found["since"], found["period_days"]) == (4, 4, DAY, 7)
    assert {"name": "returns", "value": "2"} in found["details"]


@pytest.mark.parametrize("parts", [1, 3])
def test_groups_are_told_apart_whatever_parts_they_are_worked_on_in(parts: int) -> None:
    one, two = restarted("a"), restarted("b")
    both = {name: [*one[name], *two[name]] for name in one}
    both["group_daily"] = [history(ago, group_id=group) for group in "abc" for ago in range(7)]
    assert sorted(told(parts=parts, **both)) == [("a", "static_membership"), ("b", "static_membership")]


def test_strategies_and_hot_partitions_are_found_in_their_tables() -> None:
    what_if = [
        row(
            1,
            number,
            decision=number,
            strategy=name,
            runs=name == "range",
            library="java:3.4",
            partitions_moved=moved,
            imbalance=0.5,
        )
        for number in range(5)
        for name, moved in (("range", 4), ("sticky", 1))
    ]
    produced = [
        row(2, 60 * hour, topic="t", partition=partition, high_watermark_growth=growth)
        for hour in range(24)
        for partition, growth in ((0, 1_000), (1, 100), (2, 100))
    ]
    found = told(what_if=what_if, partition_hourly=produced, members=[joined(0, "a", ["t"]), joined(0, "b", ["t"])])
    assert sorted(kind for _, kind in found) == ["hot_partition", "strategy"]
    assert found["g", "strategy"]["saved"] == 15
    assert "t-0 got 24,000 of 28,800 records in 24 hours, 83.3 %" in found["g", "hot_partition"]["evidence"]


def hot(topic: str) -> list[dict[str, Any]]:
    return [
        row(2, 60 * hour, topic=topic, partition=partition, high_watermark_growth=growth)
        for hour in range(24)
        for partition, growth in ((0, 1_000), (1, 100), (2, 100))
    ]


def joined(minute: int, member: str, subscription: list[str] | None) -> dict[str, Any]:
    return row(1, minute, member_id=member, decision=minute, subscription=subscription, partitions=[])


def test_a_topic_that_the_group_has_left_is_no_hot_partition() -> None:
    left = [joined(0, "a", ["t"]), joined(5, "a", ["other"]), joined(5, "b", ["other"])]
    assert told(partition_hourly=hot("t"), members=left) == {}
    # One member still wants it.
    assert list(told(partition_hourly=hot("t"), members=[*left, joined(5, "c", ["t"])])) == [("g", "hot_partition")]


def queues(growth: Mapping[tuple[str, int], int]) -> list[dict[str, Any]]:
    return [
        row(2, 60 * hour, topic="t", broker=broker, partition=queue, high_watermark_growth=growth[broker, queue])
        for hour in range(24)
        for broker, queue in growth
    ]


def test_queues_of_one_number_on_two_brokers_of_rocketmq_are_two_queues() -> None:
    members = [joined(0, name, ["t"]) for name in "abcd"]
    even = {(broker, queue): 1_000 for broker in ("broker-a", "broker-b") for queue in (0, 1)}
    assert told(partition_hourly=queues(even), members=members) == {}

    found = told(partition_hourly=queues({**even, ("broker-b", 1): 9_000}), members=members)["g", "hot_partition"]
    assert found["evidence"].startswith("t@broker-b-1 got 216,000 of 288,000 records in 24 hours, 75.0 %.")
    assert {"name": "broker", "value": "broker-b"} in found["details"]


def test_a_queue_that_a_member_certainly_owns_is_called_hot_by_its_broker() -> None:
    growth = {("broker-a", 0): 100, ("broker-b", 0): 1_000}
    health = [row(round=9, hot_partitions=[("t@broker-b", 0, 5.0)], partitions=8, members=4, group_type="rocketmq")]
    found = told(partition_hourly=queues(growth), group_health=health)["g", "hot_partition"]
    assert found["evidence"].startswith("t@broker-b-0 got ")


def test_what_the_newest_row_does_not_know_is_not_taken_from_an_older_one() -> None:
    base = {"group_type": "classic", "protocol_type": "consumer", "strategy": "range", "partitions": 8, "members": 4}
    health = [row(round=8, hot_partitions=[("t", 0, 5.0)], **base), row(round=9, hot_partitions=None, **base)]
    assert told(partition_hourly=hot("t"), group_health=health) == {}


@pytest.mark.parametrize("members", [[], [joined(5, "a", ["t"]), joined(5, "b", None)]])
def test_where_nobody_knows_the_subscriptions_only_a_partition_that_a_member_certainly_owns_is_called_hot(
    members: list[dict[str, Any]],
) -> None:
    def with_health(*names: str) -> list[tuple[str, str]]:
        base = {
            "group_type": "classic",
            "protocol_type": "consumer",
            "strategy": "range",
            "partitions": 8,
            "members": 4,
        }
        before, now = [("t", 0, 5.0)], [(name, 0, 5.0) for name in names]
        health = [row(round=8, hot_partitions=before, **base), row(round=9, hot_partitions=now, **base)]
        return list(told(partition_hourly=hot("t"), members=members, group_health=health))

    assert with_health() == []
    assert with_health("other") == []
    assert with_health("other", "t") == [("g", "hot_partition")]


def test_a_decision_that_was_judged_again_counts_once_with_what_was_found_last() -> None:
    def tried(round_: int, moved: int | None) -> list[dict[str, Any]]:
        return [
            row(1, number, round=round_, decision=number, strategy=name, runs=name == "range", library="java:3.4",
                partitions_moved=moves, imbalance=0.5)
            for number in range(5) for name, moves in (("range", 4), ("sticky", moved))
        ]  # fmt: skip

    assert told(what_if=[*tried(2, 3), *tried(1, 1)])["g", "strategy"]["saved"] == 5
    assert told(what_if=[*tried(2, None), *tried(1, 1)]) == {}


def test_advice_that_comes_back_after_a_gap_begins_anew() -> None:
    held = told(**restarted())["g", "static_membership"]
    schema = pa.schema([field.remove_metadata() for field in table_named("advice").arrow_schema])
    for days, since in ((7, DAY - timedelta(days=9)), (8, DAY)):
        last = {**held, "event_date": DAY - timedelta(days=days), "since": DAY - timedelta(days=9)}
        before = pa.Table.from_pylist([last], schema)
        assert told(before, **restarted())["g", "static_membership"]["since"] == since


def test_a_group_that_is_gone_has_its_advice_ended() -> None:
    held = told(**restarted())["g", "static_membership"]
    yesterday = DAY - timedelta(days=1)
    schema = pa.schema([field.remove_metadata() for field in table_named("advice").arrow_schema])
    before = pa.Table.from_pylist([{**held, "event_date": yesterday, "since": yesterday}], schema)
    assert told(before, **restarted())["g", "static_membership"]["since"] == yesterday
    for gone in ({"group_daily": [history(ago) for ago in range(1, 7)]}, {"group_health": [row(ended=True)]}):
        (row_of,) = told(before, **{**restarted(), **gone}).values()
        assert (row_of["ended"], row_of["event_date"], row_of["since"]) == (True, DAY, yesterday)


TOLD_DAY = 20_000
"""2024-10-04, in days since the epoch."""

TOLD = {
    "cluster": "c", "kind": "cooperative", "event_date": TOLD_DAY, "ended": False, "period_days": 3, "events": 4,
    "saved": 6.0, "unit": "partition-seconds", "advice": "Change it.", "evidence": "4 rebalances\x1b[31m.",
    "cost": "Two restarts.", "details": [("rebalances", "4")],
}  # fmt: skip


def made(root: Path, **tables: list[dict[str, Any]]) -> str:
    lake = DeltaLake(str(root))
    for name, rows in tables.items():
        table = table_named(name)
        lake.create([table])
        lake.append(name, named_to_arrow(table, rows), "made", 1)
    return lake.root


def looked(period_days: int = 3) -> dict[str, Any]:
    return {
        "cluster": "c", "event_date": TOLD_DAY, "first_day": TOLD_DAY - period_days + 1, "period_days": period_days,
        "groups": 2,
    }  # fmt: skip


def round_of(day: int) -> dict[str, Any]:
    return {"cluster": "c", "round": day, "round_time": day * 86_400_000 + 3_600_000, "event_date": day}


def said(lake: str, group: str | None = None, cluster: str | None = None) -> str:
    out = io.StringIO()
    print_advice(lake, Console(file=out, width=300), group, cluster)
    return out.getvalue()


def test_advice_says_what_to_do_why_and_at_what_cost_the_newest_first(tmp_path: Path) -> None:
    rows = [
        {**TOLD, "group_id": "old", "since": TOLD_DAY - 5},
        {**TOLD, "group_id": "new", "since": TOLD_DAY},
        {**TOLD, "group_id": "gone-group", "since": TOLD_DAY - 9, "ended": True},
    ]
    lake = made(tmp_path, advice=rows, advice_days=[looked(7)], rounds=[round_of(TOLD_DAY + 1)])
    text = said(lake)
    assert text.splitlines()[:6] == [
        "new: cooperative, since 2024-10-04",
        "  do    Change it.",
        "  why   4 rebalances\\x1b[31m.",
        "  cost  Two restarts.",
        "  saves 6 partition-seconds in 3 days",
        "",
    ]
    assert text.index("new: ") < text.index("old: ")
    assert "gone-group" not in text
    assert text.splitlines()[-1] == "c: 2 groups looked at over 7 days, 2024-09-28 to 2024-10-04."
    assert "old: " not in said(lake, "new")


def test_a_lake_that_is_too_young_says_so(tmp_path: Path) -> None:
    young = made(tmp_path / "young", rounds=[round_of(TOLD_DAY)])
    assert said(young).startswith(f"No day in {young} was looked at yet: the maintenance does so once a day is over")
    few = made(tmp_path / "few", advice_days=[looked(3)], rounds=[round_of(TOLD_DAY + 1)])
    assert said(few).startswith("No advice holds: no rule found enough events in the days that were looked at.")
    assert "The rules look at 7 days, and figures begin on 2024-10-02" in said(few)


def test_a_maintenance_that_has_stopped_is_no_absence_of_advice(tmp_path: Path) -> None:
    lake = made(tmp_path, advice_days=[looked(7)], rounds=[round_of(TOLD_DAY + 5)])
    assert "The newest round is of 2024-10-09, so 4 days are missing" in said(lake)


def test_a_group_that_is_not_there_is_named(tmp_path: Path) -> None:
    lake = made(tmp_path, advice_days=[looked(7)], rounds=[round_of(TOLD_DAY)])
    assert said(lake, "typo").startswith("No advice holds for the group typo, if there is one:")
