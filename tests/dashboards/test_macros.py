"""What templates make of single rows: verdicts, attempts to deliver, the lists of RocketMQ's brokers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboards.boards.alerts import _OUTCOMES, place_of
from dashboards.format import DASH
from dashboards.lake import PageLake
from dashboards.page.address import Address
from dashboards.page.archive import Archive
from dashboards.page.board import View
from dashboards.page.markup import _environment
from dashboards.query import queries
from streaming.tables import LakeReader
from tests.alerts.build import BEHIND, START
from tests.alerts.living import Watched
from tests.serve.seen import text_of

NOW = datetime.fromtimestamp(START / 1000, UTC) + timedelta(minutes=5)


def drawn(folder: Path, template: str, **values: Any) -> str:
    """What a piece of a template with the macros `parts` and `more` says."""
    hour = timedelta(hours=1)
    view = View(PageLake(str(folder), hour, hour, hour), Archive(str(folder)), NOW, Address((), {}))
    imports = "".join(f"{{% import '{name}.html.j2' as {name} with context %}}" for name in ("parts", "more"))
    alerts = {"severity_of": {}, "outcomes": _OUTCOMES, "place": place_of, "shown": 100, "number": {}}
    given = {**alerts, "view": view, "address": view.address, **values}
    return text_of(_environment().from_string(imports + template).render(**given))


@pytest.mark.parametrize(
    ("kind", "verdict", "said"),
    [
        ("rebalance", "identical", "identical"),
        ("rebalance", "drifted", "✕ drifted"),
        ("rebalance", None, "pending"),
        # Nothing was decided, so no verdict follows.
        ("static_replacement", None, DASH),
        ("became_empty", "not_applicable", "not applicable"),
    ],
)
def test_a_verdict_is_pending_only_where_one_will_come(
    tmp_path: Path, kind: str, verdict: str | None, said: str
) -> None:
    row = {"kind": kind, "verdict": verdict}
    assert drawn(tmp_path, "{{ parts.verdict(row) }}", row=row).strip() == said


def test_what_fires_and_the_history_tell_alerts_of_the_same_queue_number_at_two_brokers_apart(tmp_path: Path) -> None:
    watched = Watched(tmp_path, BEHIND)
    lag = {"group_id": "g", "topic": "orders", "partition": 0, "lag": 500}
    watched.round(1, lag=[lag | {"broker": "broker-a"}, lag | {"broker": "broker-b"}, lag | {"topic": "kafka's"}])
    reader = LakeReader(watched.writer.root)
    asked = {"cluster": None, "rule": None}
    of_history = {**asked, "since": NOW - timedelta(hours=1), "until": NOW, "most": 10}
    for name, parameters in (("alert_states", asked), ("alert_history", of_history)):
        rows = reader.rows(queries()[name].duckdb, parameters)
        assert sorted(map(place_of, rows)) == ["kafka's 0", "orders broker-a/0", "orders broker-b/0"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"incident": "a"}, "firing delivered"),
        ({"incident": "the rule's"}, "firing, with others delivered"),
        ({"incident": None}, "firing delivered"),
    ],
)
def test_an_attempt_says_whether_it_was_sent_with_others(tmp_path: Path, sent: dict[str, Any], said: str) -> None:
    row = {"group_id": "g", "rule": "lag", "severity": "critical", "cluster": "c", "message": "m", "alert_id": "a",
           "state": "firing", "transition_id": "t", "target": "ops", "attempt": 1, "outcome": "delivered",
           "attempt_time": NOW, "duration_ms": 20, "reason": None, **sent}  # fmt: skip
    text = drawn(tmp_path, "{{ more.deliveries([], [row], true) }}", row=row, number={"attempts": "1"})
    assert f"lag g {said} 1 0.0 s" in text
