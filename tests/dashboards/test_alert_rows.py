"""What the boards of alerts make of rows: which partition an alert is about, also where each broker numbers its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboards.boards.parts.alert_rows import attempts, history, states
from dashboards.lake import PageLake
from dashboards.page.address import Address
from dashboards.page.archive import Archive
from dashboards.page.board import View
from dashboards.query import queries
from streaming.tables import LakeReader
from tests.alerts.build import BEHIND, START
from tests.alerts.watched import Watched

NOW = datetime.fromtimestamp(START / 1000, UTC) + timedelta(minutes=5)


def _view(folder: Path) -> View:
    hour = timedelta(hours=1)
    return View(PageLake(str(folder), hour, hour, hour), Archive(str(folder)), NOW, Address((), {}))


def _lag(**more: Any) -> dict[str, Any]:
    return {"group_id": "g", "topic": "orders", "partition": 0, "lag": 500, **more}


def test_what_fires_and_the_history_tell_alerts_of_the_same_queue_number_at_two_brokers_apart(tmp_path: Path) -> None:
    watched = Watched(tmp_path, BEHIND)
    watched.round(1, lag=[_lag(broker="broker-a"), _lag(broker="broker-b"), _lag(topic="kafka's")])
    reader = LakeReader(watched.writer.root)
    asked = {"cluster": None, "rule": None}
    of_history = {**asked, "since": NOW - timedelta(hours=1), "until": NOW, "most": 10}
    fires = states(reader.rows(queries()["alert_states"].duckdb, asked), _view(tmp_path))
    shown = history(reader.rows(queries()["alert_history"].duckdb, of_history), frozenset(), _view(tmp_path))
    for rows in (fires, shown):
        assert sorted(row["topic"] for row in rows) == ["kafka's 0", "orders broker-a/0", "orders broker-b/0"]


@pytest.mark.parametrize(
    ("about", "shown"),
    [
        ({"topic": "orders", "partition": 3, "entity": '{"broker":"broker-a"}'}, "orders broker-a/3"),
        ({"topic": "orders", "partition": 3, "entity": "{}"}, "orders 3"),
        ({"topic": "orders", "partition": 3, "entity": None}, "orders 3"),
        ({"topic": "orders", "partition": 3}, "orders 3"),
        ({"topic": "orders", "partition": 3, "entity": "no JSON"}, "orders 3"),
        ({"topic": "orders", "partition": None, "entity": "{}"}, "orders"),
        ({"topic": None, "partition": None, "entity": '{"group_id":"g"}'}, ""),
    ],
)
def test_an_alert_is_shown_with_what_there_is_of_topic_broker_and_partition(
    tmp_path: Path, about: dict[str, Any], shown: str
) -> None:
    row = {"group_id": "g", "rule": "behind", "severity": "critical", "cluster": "c", "message": "m", "alert_id": "a",
           "state": "firing", "since": NOW, "labels": None, **about}  # fmt: skip
    assert [one["topic"] for one in states([row], _view(tmp_path))] == [shown]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"incident": "a", "repeat": None}, "firing"),
        ({"incident": "a", "repeat": 2}, "firing, repetition 2"),
        ({"incident": "the rule's", "repeat": None}, "firing, with others"),
        ({"incident": None, "repeat": None}, "firing"),
    ],
)
def test_an_attempt_says_whether_it_was_a_repetition_and_whether_it_was_sent_with_others(
    tmp_path: Path, sent: dict[str, Any], said: str
) -> None:
    row = {"group_id": "g", "rule": "lag", "severity": "critical", "cluster": "c", "message": "m", "alert_id": "a",
           "state": "firing", "transition_id": "t", "target": "ops", "attempt": 1, "outcome": "delivered",
           "attempt_time": NOW, "duration_ms": 20, "reason": None, **sent}  # fmt: skip
    assert [one["state"] for one in attempts([row], _view(tmp_path))] == [said]
