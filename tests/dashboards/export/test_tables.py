"""Boards over the tables: the page's SQL files with values give the page's rows, and nothing old as if it were new."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboards.export import export
from dashboards.export.tables import SECTIONS, SqlPanel, Values
from dashboards.query import queries
from streaming.config import Thresholds
from streaming.tables import LakeReader
from tests.dashboards.export.interpolate import interpolated
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake, stories
from tests.examples import by_day

PANELS = [panel for panels in SECTIONS.values() for panel in panels]
SILENT_AFTER = timedelta(seconds=30)


def made(root: Path, end: datetime) -> LakeReader:
    groups = [*stories(), *(MadeGroup(name, topics={"t": 2}) for name in (*HOSTILE, "back\\slash\\"))]
    lake = MadeLake(root, groups, end=end, rounds=3)
    ms = int(end.timestamp() * 1000)
    lake.add("alerts", {"cluster": CLUSTER, "rule": "drift", "severity": "critical", "state": "firing", "ended": False,
                        "group_id": "mailer", "entity": "1", "alert_id": "a", "decision": 1, "round": 1, "since": ms,
                        "round_time": ms, "event_date": ms // 86_400_000, "message": "it drifted"})  # fmt: skip
    lake.add("quarantine", {"cluster": CLUSTER, "topic": "t", "partition": 0, "record_offset": 7, "records": 3})
    return LakeReader(root)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> LakeReader:
    """A lake whose newest round is of now, and stays so for the test's time."""
    return made(tmp_path_factory.mktemp("tables") / "lake", datetime.now(UTC) + timedelta(minutes=30))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> LakeReader:
    """The same, whose job has stopped for a little longer than is allowed."""
    return made(tmp_path_factory.mktemp("old") / "lake", datetime.now(UTC) - SILENT_AFTER - timedelta(seconds=1))


def asked_by_grafana(group: str) -> Iterator[tuple[SqlPanel, str]]:
    board = json.loads(export("grafana", "duckdb"))
    texts = [target["rawSql"] for panel in board["panels"] for target in panel.get("targets", ())]
    for panel, text in zip(PANELS, texts, strict=True):
        yield panel, interpolated(text, CLUSTER, group, datetime.now(UTC) - timedelta(hours=24))


def rows_of_the_page(lake: LakeReader, panel: SqlPanel, group: str) -> list[dict[str, Any]]:
    query = queries()[panel.query]
    values = {
        "cluster": CLUSTER, "group_id": group if panel.one_group else None, "imbalance": 0.5, "most": 100,
        "since": datetime.now(UTC) - timedelta(hours=24), "step": "minute",
    }  # fmt: skip
    return lake.rows(query.duckdb, {name: values[name] for name in query.parameters})


@pytest.mark.parametrize(
    "group",
    by_day(["payments-audit", *HOSTILE, "back\\slash\\"], ["payments-audit", HOSTILE[0]]),
    ids=lambda name: ascii(name[:12]),
)
def test_every_panel_gives_the_rows_of_the_pages_query_for_any_name(lake: LakeReader, group: str) -> None:
    for panel, text in asked_by_grafana(group):
        found = lake.rows(text)
        assert found == rows_of_the_page(lake, panel, group), panel.title
        assert found, panel.title
        assert panel.columns.keys() <= found[0].keys()


def test_what_is_chosen_from_is_what_is_there(lake: LakeReader) -> None:
    _, cluster, group = json.loads(export("grafana", "duckdb"))["templating"]["list"]
    assert lake.rows(interpolated(cluster["query"])) == [{"cluster": CLUSTER}]
    ids = [row["group_id"] for row in lake.rows(interpolated(group["query"], CLUSTER))]
    assert {"payments-audit", *HOSTILE, "back\\slash\\"} <= set(ids)
    assert ids == sorted(ids)


def test_panels_of_the_present_are_empty_while_no_round_comes(old: LakeReader) -> None:
    for panel, text in asked_by_grafana("payments-audit"):
        assert bool(old.rows(text)) is not panel.present, panel.title


def test_every_panel_of_a_state_is_one_of_the_present() -> None:
    # What says when, or counts over the whole past, is none.
    assert {panel.query for panel in PANELS if not panel.present} == {"rounds", "lag", "rebalances", "unseen"}


def test_the_bounds_of_silence_and_imbalance_are_those_of_the_alert_rules() -> None:
    values = Values(
        ":cluster", ":group", ":since", "", Thresholds(imbalance=0.25, silent_intervals=5, silent_at_least_s=90)
    )
    groups = next(panel for panel in PANELS if panel.query == "groups").sql(values)
    assert "avoidable > 0.25" in groups
    assert "greatest(90000, 5 * coalesce(fresh.interval_ms, 0))" in groups


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.query)
def test_the_text_is_the_files(panel: SqlPanel) -> None:
    values = Values(":cluster", ":group_id", ":since", "", Thresholds())
    text = replace(panel, present=False, one_group=True).sql(values)
    own = re.sub(r"^--.*\n", "", queries()[panel.query].sql, flags=re.MULTILINE).strip()
    for name, value in {"imbalance": "0.5", "step": "'minute'", "most": "100"}.items():
        own = re.sub(rf":{name}\b", value, own)
    assert text == own
