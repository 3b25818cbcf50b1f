"""The result of each shipped rule for a row: true, false, or unknown; and the examples of docs/alerts.md."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.alerts.delivery.messages import Wording, message_of
from streaming.alerts.delivery.targets import DeliveryTarget
from streaming.alerts.judging.conditions import Conditions
from streaming.alerts.judging.feed import Chunk
from streaming.alerts.judging.firing import FeedRound
from streaming.alerts.rules.rules import Rule, load_rules
from streaming.backtest import replay
from streaming.config import SHIPPED_RULES, Owner
from streaming.groups.health.activity import note, storm
from streaming.groups.state import Rebalances
from streaming.tables import table_named
from streaming.times import DAY_MS
from tests.alerts.build import INTERVAL, START, Writer, time_of, transition
from tests.alerts.services import Receiver


@cache
def _shipped() -> dict[str, Rule]:
    return {rule.name: rule for rule in load_rules(SHIPPED_RULES, disabled_too=True)}


def _truth(rule: str, **row: Any) -> tuple[bool | None, str]:
    made = _shipped()[rule]
    schema = made.table.arrow_schema
    named = {"cluster": "c", "group_id": "g", "round": 1, "findings": [], "ended": False, **row}
    rows = pa.Table.from_pylist([{c.name: named.get(c.name) for c in table_named(made.table.name).columns}], schema)
    chunk = Chunk((FeedRound(1, 1_000, 10_000, 0),), {made.table.name: rows})
    judge = Conditions([made])
    active = [(rule, json.dumps({name: named[name] for name in made.key if name in named}, separators=(",", ":")))]
    (observed,) = judge.rounds(chunk, active)
    (seen,) = observed.seen
    return seen.condition, seen.message


def _finding(name: str, detail: str = "x") -> list[dict[str, Any]]:
    return [
        {"finding": "partitions_pending_handover", "since": 0, "detail": "y"},
        {"finding": name, "since": 0, "detail": detail},
    ]


def _losing(at_least: float | None, at_most: float | None, reason: str | None = None, **more: Any) -> dict[str, Any]:
    usual = {"members": 2, "loses_data_by": "append_time", "loses_data_retention_seconds": 86_400.0}
    bounds = {"loses_data_in_seconds_min": at_least, "loses_data_in_seconds_max": at_most, "loses_data_reason": reason}
    return {**usual, **bounds, **more}


def _hot(per_second: float) -> list[dict[str, Any]]:
    return [{"topic": "t", "partition": 0, "per_second": per_second}]


def _drifted(*kinds: str) -> list[dict[str, Any]]:
    return [{"topic": "t", "partition": n, "kind": kind, "actual": []} for n, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("rule", "row", "expected"),
    [
        # Only where the end of retention is certain.
        ("loses_data", _losing(3_000.0, 3_500.0), True),
        ("loses_data", _losing(3_000.0, 3_700.0), None),
        ("loses_data", _losing(3_700.0, 4_000.0), False),
        ("loses_data", _losing(0.0, 0.0), True),
        ("loses_data", _losing(None, 3_500.0, "retention_bytes"), True),
        ("loses_data", _losing(None, 4_000.0, "before_rounds"), None),
        ("loses_data", _losing(3_000.0, 3_500.0, loses_data_by="create_time"), False),
        ("loses_data", _losing(3_000.0, 3_500.0, members=0), None),
        ("loses_data", _losing(1_000.0, 1_500.0, loses_data_retention_seconds=1_800.0), False),
        ("loses_data", _losing(100.0, 150.0, loses_data_retention_seconds=1_800.0), True),
        ("loses_data", _losing(None, None, "keeps_up", loses_data_by=None), False),
        ("loses_data", _losing(None, None, "retention_unknown", loses_data_by=None), None),
        ("drift", {"verdict": "drifted"}, True),
        ("drift", {"verdict": "identical"}, False),
        ("drift", {"verdict": "unverified"}, False),
        ("drift", {"verdict": "not_applicable"}, False),
        # One cause is one alert: strategy_mismatch is the rule of those.
        ("drift", {"verdict": "drifted", "strategy_mismatch": True}, None),
        ("drift", {"verdict": "drifted", "strategy_mismatch": False}, True),
        ("unexplained_assignment", {"findings": _finding("unexplained_assignment")}, True),
        ("unexplained_assignment", {"verdict": "unverified"}, False),
        ("doubly_assigned", {"drifted_partitions": _drifted("misplaced", "doubly_assigned")}, True),
        ("doubly_assigned", {"drifted_partitions": _drifted("misplaced")}, False),
        # `queue_owners` is the rule of those.
        ("doubly_assigned", {"drifted_partitions": _drifted("doubly_assigned"), "source": "rocketmq"}, False),
        ("doubly_assigned", {"drifted_partitions": None}, None),
        ("unassigned", {"findings": _finding("unassigned")}, True),
        ("unassigned", {"findings": _finding("stale_metadata")}, False),
        ("unassigned", {"findings": _finding("missing_topics")}, True),
        ("unassigned", {"findings": []}, False),
        ("deliveries", {"findings": _finding("stuck_deliveries")}, True),
        ("deliveries", {"findings": _finding("records_given_up")}, True),
        ("deliveries", {"findings": _finding("redelivering")}, False),
        ("drift", {"verdict": "drifted", "source": "rocketmq"}, False),
        ("queue_owners", {"findings": _finding("split_brain")}, True),
        ("queue_owners", {"findings": _finding("doubly_held")}, True),
        ("queue_owners", {"findings": _finding("held_by_nobody")}, True),
        ("queue_owners", {"findings": _finding("member_lists_differ")}, False),
        ("queue_drift", {"verdict": "drifted", "source": "rocketmq"}, True),
        ("queue_drift", {"verdict": "identical", "source": "rocketmq"}, False),
        ("queue_drift", {"verdict": "drifted", "source": "log"}, False),
        ("views_differ", {"findings": _finding("mixed_strategies")}, True),
        ("views_differ", {"findings": []}, False),
        ("broker_silent", {"findings": _finding("broker_not_answering")}, True),
        ("members_stuck", {"findings": _finding("broker_not_answering")}, False),
        # What follows from wrong owners neither begins nor ends an alert of its own.
        ("queue_drift", {"verdict": "drifted", "source": "rocketmq", "findings": _finding("doubly_held")}, None),
        ("views_differ", {"findings": [*_finding("mixed_strategies"), *_finding("split_brain")]}, None),
        ("lag", {"lag_status": "stopped", "members": 2, "findings": _finding("held_by_nobody")}, None),
        ("imbalance", {"imbalance": 2.0, "imbalance_optimal": 0.0, "findings": _finding("doubly_held")}, None),
        ("strategy_mismatch", {"strategy_mismatch": True}, True),
        ("strategy_mismatch", {"strategy_mismatch": None}, None),
        ("imbalance", {"imbalance": 2.0, "imbalance_optimal": 0.0}, True),
        ("imbalance", {"imbalance": 0.67, "imbalance_optimal": 0.67}, False),
        ("imbalance", {"imbalance": None, "imbalance_optimal": None}, None),
        ("load_imbalance", {"load_imbalance": 2.0, "load_imbalance_optimal_max": 0.2}, True),
        # No assignment could do better: hot_partition is the rule of those.
        ("load_imbalance", {"load_imbalance": 2.0, "load_imbalance_optimal_max": 2.0}, False),
        ("load_imbalance", {"load_imbalance": 2.0, "load_imbalance_optimal_max": None}, None),
        ("hot_partition", {"hot_partitions": _hot(900.0), "load_imbalance_optimal_min": 1.7}, True),
        ("hot_partition", {"hot_partitions": _hot(110.0), "load_imbalance_optimal_min": 0.2}, False),
        ("hot_partition", {"hot_partitions": [], "load_imbalance_optimal_min": 1.7}, False),
        ("hot_partition", {"hot_partitions": None, "load_imbalance_optimal_min": None}, None),
        # Ten members with twenty partitions: one owns nothing and another has three.
        ("idle_members", {"findings": _finding("idle_members"), "imbalance": 0.5, "imbalance_optimal": 0.0}, True),
        # Three members for two partitions: a spare member is no fault.
        ("idle_members", {"findings": _finding("idle_members"), "imbalance": 0.5, "imbalance_optimal": 0.5}, False),
        ("idle_members", {"findings": _finding("idle_members"), "imbalance": 2.0, "imbalance_optimal": 0.0}, None),
        ("idle_members", {"findings": [], "imbalance": 0.2, "imbalance_optimal": 0.0}, False),
        ("rebalance_storm", {"findings": _finding("rebalance_storm")}, True),
        ("rebalance_storm", {"findings": []}, False),
        ("rebalance_storm", {"findings": [*_finding("rebalance_storm"), *_finding("split_brain")]}, None),
        ("lag", {"lag_status": "stopped", "members": 2}, True),
        ("lag", {"lag_status": "stalled", "members": 1}, True),
        ("lag", {"lag_status": "falling_behind", "members": 1}, True),
        ("lag", {"lag_status": "stopped", "members": 0}, None),
        ("lag", {"lag_status": "ok", "members": 0}, False),
        ("lag", {"lag_status": "unknown", "members": 2}, None),
        ("lag", {"lag_status": "rewound", "members": 2}, False),
        ("nobody_consumes", {"lag_status": "stopped", "members": 0}, True),
        ("nobody_consumes", {"lag_status": "stopped", "members": 2}, False),
        ("nobody_consumes", {"lag_status": "ok", "members": 0}, False),
        ("offsets_blocked", {"held": True, "groups": 500, "log_partition": 7}, True),
        ("offsets_blocked", {"held": False, "groups": 0, "log_partition": 7}, False),
        ("offsets_blocked", {"held": True, "groups": 0, "log_partition": 7}, False),
        ("reconciling", {"findings": _finding("reconciling")}, True),
        ("reconciling", {"findings": _finding("partitions_pending_handover")}, False),
    ],
)
def test_a_shipped_rule_says_this_of_a_row(rule: str, row: dict[str, Any], expected: bool | None) -> None:
    assert _truth(rule, **row)[0] is expected


def test_each_shipped_rule_over_events_fires_on_its_event_and_says_what_it_was() -> None:
    rows = {
        "quarantine": [
            {"topic": "t", "partition": 1, "record_offset": 7, "kind": "undecodable", "reason": "too short"},
            {"topic": "t", "partition": 1, "record_offset": 8, "kind": "unknown", "key_type": 99, "reason": "new"},
        ],
        "gaps": [
            {"kind": "log", "topic": "t", "partition": 1, "reason": "the log begins at 9 now"},
            {"kind": "rounds", "reason": "no round for an hour"},
        ],
        "alert_deliveries": [
            {"target": "a", "rule": "lag", "outcome": "failed", "attempt": 4, "reason": "once more"},
            {"target": "b", "rule": "lag", "outcome": "failed", "attempt": 5, "reason": "HTTP 500"},
            {"target": "c", "rule": "lag", "outcome": "given_up", "reason": "a day"},
            {"target": "d", "rule": "undelivered", "outcome": "given_up", "reason": "of itself"},
        ],
    }
    tables = {
        name: pa.Table.from_pylist([{"cluster": "c", **row} for row in found], table_named(name).arrow_schema)
        for name, found in rows.items()
    }
    observed = Conditions([rule for rule in _shipped().values() if rule.of_events]).events(tables, None, 0)
    assert {(seen.rule, seen.entity): seen.message for seen in observed.seen} == {
        ("undecodable", '{"topic":"t"}'): "records of t cannot be decoded, now at partition 1, offset 7: too short",
        ("unknown_records", '{"topic":"t"}'): (
            "t has records that this release does not know (type 99, version unknown): new"
        ),
        ("gap", '{"kind":"log","topic":"t"}'): "a gap (log): the log begins at 9 now",
        ("gap", '{"kind":"rounds"}'): "a gap (rounds): no round for an hour",
        ("undelivered", '{"target":"b"}'): "delivery to b fails: HTTP 500",
        ("undelivered", '{"target":"c"}'): "delivery to c fails: a day",
    }


def test_a_group_that_decides_topic_by_topic_has_an_alert_for_each_and_takes_all_along() -> None:
    def chunk(number: int, table: str, *rows: dict[str, Any]) -> Chunk:
        named = [{"cluster": "c", "group_id": "g", "round": number, **row} for row in rows]
        made = pa.Table.from_pylist(named, table_named(table).arrow_schema)
        return Chunk((FeedRound(number, number * 1_000, 10_000, 0),), {table: made})

    judge = Conditions([_shipped()["drift"]])
    topics = (None, "a", "b")
    rows = [{"topic": topic, "verdict": "drifted", "drifted_count": 1} for topic in topics]
    (first,) = judge.rounds(chunk(1, "drift", *rows), ())
    entities = ['{"group_id":"g","topic":"a"}', '{"group_id":"g","topic":"b"}', '{"group_id":"g"}']
    assert sorted(seen.entity for seen in first.seen) == entities
    active = [("drift", entity) for entity in entities]
    (sound,) = judge.rounds(chunk(2, "drift", *({"topic": t, "verdict": "identical"} for t in topics)), active)
    assert sorted((seen.entity, seen.condition) for seen in sound.seen) == [(e, False) for e in entities]
    (last,) = judge.rounds(chunk(3, "group_health", {"ended": True}), active)
    assert sorted((seen.entity, seen.gone) for seen in last.seen) == [(e, True) for e in entities]


def test_messages_say_what_the_row_holds() -> None:
    row = {"lag_status": "stalled", "members": 2, "lag_total": 1_234_567, "lag_max": 30}
    assert (
        _truth("lag", **row)[1] == "g is stalled: 1,234,567 records behind, 30 of them on one partition, with 2 members"
    )
    row |= {"members": 1, "lag_total": 1, "lag_max": 1}
    assert _truth("lag", **row)[1] == "g is stalled: 1 record behind, 1 of them on one partition, with 1 member"
    findings = _finding("unassigned", "partitions without an owner: t (2 partitions)")
    assert _truth("unassigned", findings=findings)[1] == "g: y; partitions without an owner: t (2 partitions)"
    row = {"imbalance": 2.0, "imbalance_optimal": 1 / 3}
    assert "is 2, 0.3333 would be possible" in _truth("imbalance", **row)[1]
    message = _truth("drift", verdict="drifted", drifted_count=4, strategy=None)[1]
    assert message.startswith("g runs unknown and has a wrong owner for 4 of its partitions or tasks")
    tasks = [{"kind": "doubly_assigned", "topic": "0", "partition": number} for number in range(2)]
    message = _truth("doubly_assigned", verdict="drifted", drifted_partitions=tasks)[1]
    assert message == "g has more than one owner for 2 of its partitions or tasks"


def test_a_hanging_transaction_is_told_with_the_numbers_as_other_tools_show_them() -> None:
    since = datetime(2026, 11, 21, 14, 3, 10, tzinfo=UTC)
    row = {"held": True, "groups": 1_500, "log_partition": 37, "held_since": since, "producer_id": 4_001}
    assert _truth("offsets_blocked", transactional_id="payments-3", **row)[1] == (
        "no progress on partition 37 of the offsets log since 2026-11-21 14:03:10 UTC: "
        "transaction payments-3 of producer 4001 is open, the lag of 1,500 groups is unknown"
    )
    assert "transaction unknown of producer 4001" in _truth("offsets_blocked", **row)[1]


def test_a_row_on_which_an_expression_fails_is_not_known() -> None:
    import dataclasses  # noqa: PLC0415

    from streaming.alerts.rules.expressions import Expression  # noqa: PLC0415

    rule = dataclasses.replace(
        _shipped()["drift"],
        when=Expression("CAST(verdict AS INT) > 1", frozenset({"verdict"})),
        columns=frozenset({"verdict"}),
    )
    names = rule.table.arrow_schema.names
    rows = pa.Table.from_pylist(
        [
            {n: {"group_id": g, "verdict": v, "round": 1}.get(n) for n in names}
            for g, v in (("a", "five"), ("b", "5"), ("c", "0"))
        ],
        rule.table.arrow_schema,
    )
    active = [("drift", f'{{"group_id":"{g}"}}') for g in "abc"]
    (observed,) = Conditions([rule]).rounds(Chunk((FeedRound(1, 1_000, 10_000, 0),), {"drift": rows}), active)
    assert {json.loads(s.entity)["group_id"]: s.condition for s in observed.seen} == {"a": None, "b": True, "c": False}


def test_rules_that_would_alert_on_healthy_groups_are_off() -> None:
    off = [rule.name for rule in _shipped().values() if not rule.enabled]
    assert off == ["unexplained_assignment", "load_imbalance", "hot_partition"]
    assert [rule.name for rule in load_rules(SHIPPED_RULES)] == [name for name in _shipped() if name not in off]


def test_a_deployment_is_no_storm_and_rebalances_that_go_on_are(tmp_path: Path) -> None:
    minute, rounds = 60_000, 130
    # A fleet of twenty members that joins within two minutes, and members that never come to rest.
    of_group = {"deployed": [n * 6_000 for n in range(20)], "restless": [n * minute for n in range(22)]}
    known = {group: Rebalances() for group in of_group}
    for rebalances in known.values():
        note(rebalances, START - DAY_MS)  # a day of rest
    writer, batch = Writer(tmp_path), []
    for number in range(rounds):
        rows = []
        for group, times in of_group.items():
            while times and START + times[0] <= time_of(number):
                note(known[group], START + times.pop(0))
            found = storm(known[group], time_of(number))
            finding = [] if found is None else [(found.name, found.since, found.detail)]
            rows.append({"group_id": group, "findings": finding})
        batch.append({"group_health": rows})
    writer.write(0, *batch)
    done = replay(writer.root, "c", [_shipped()["rebalance_storm"]], rounds * INTERVAL, 600_000)
    (began,) = (one for one in done.transitions if one.state == "firing")
    assert (began.group_id, began.round_time, began.severity) == ("restless", START + 20 * minute, "warning")
    assert began.message.startswith("restless: 10 rebalances in the last 10 minutes")


_PAGE = (SHIPPED_RULES.parents[1] / "docs" / "alerts.md").read_text(encoding="utf-8")

_WORDING = Wording(
    owners=(Owner(team="payments", groups=("billing",)),),
    public_url="https://evenkeel.example.org",
    runbooks={"lag": "https://wiki.example.org/lag"},
)


def _examples(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", _PAGE, re.DOTALL)
    assert found
    return found


@pytest.mark.parametrize("example", _examples("yaml"))
def test_the_rules_of_the_page_load(example: str, tmp_path: Path) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text("rules:\n" + example, encoding="utf-8")
    assert load_rules(file)


def test_a_json_target_gets_the_fields_that_the_page_shows() -> None:
    (example,) = _examples("json")
    decided = transition(labels=(("about", "lag"),))
    with Receiver() as receiver:
        assert DeliveryTarget("hook", receiver.url, 10_000).send(message_of(decided, wording=_WORDING)).reason is None
    assert set(receiver.messages[0]) == set(json.loads(example))
    assert {name: type(value) for name, value in receiver.messages[0].items()} == {
        name: type(value) for name, value in json.loads(example).items()
    }
