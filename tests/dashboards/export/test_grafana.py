"""The board for Grafana: of its own schema, and never the past as the present."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.export import export
from streaming.exceptions import SetupError


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(export())["panels"] if panel["type"] != "row"]


def test_grafanas_own_types_read_the_board_and_write_it_again() -> None:
    given = json.loads(export())
    again = json.loads(json.dumps(Dashboard.from_json(given), cls=JSONEncoder))
    assert again == given


def test_every_panel_says_what_it_shows_and_asks_the_source_that_the_viewer_chose() -> None:
    for panel in panels():
        assert panel["description"].endswith((".", "?"))
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_what_is_no_line_asks_for_the_present_alone() -> None:
    for panel in panels():
        for target in panel["targets"]:
            assert target["range"] is (panel["type"] == "timeseries")
            assert target["instant"] is (panel["type"] != "timeseries")
        if panel["type"] == "stat":
            assert panel["options"]["reduceOptions"]["calcs"] == ["last"]


def test_without_grafanas_types_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("grafana_foundation_sdk", "dashboards.export.graf"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grafana_foundation_sdk", None)
    with pytest.raises(SetupError, match=r"^Boards for Grafana need .*: install evenkeel\[export\]\.$"):
        export()
