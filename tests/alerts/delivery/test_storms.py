"""Five thousand simultaneous alerts become a few messages and one incident; an interruption loses none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from streaming.alerts.transitions import id_of
from tests.alerts.build import DRIFT, rules
from tests.alerts.delivery.delivered import Lake, until_idle
from tests.alerts.services import Services

pytestmark = pytest.mark.turn(6)

_MANY = 5_000
_NAMES = [f"g{n}" for n in range(_MANY)]

_CHAT = f"discord://{'4' * 24}/{'t' * 64}"
_PAGER = "pagerduty://integrationkey@apikey"

_DRIFT_KEY = id_of("c", "drift")


def _pager(services: Services) -> list[tuple[str, str]]:
    events = [request.json for request in services.requests if request.host == "events.pagerduty.com"]
    return [(event["event_action"], event["dedup_key"]) for event in events]


def _chat(services: Services) -> list[str]:
    said = [request.json["content"].split("\r\n")[0] for request in services.requests if request.host == "discord.com"]
    return [line.replace("\\", "") for line in said]


def _rows(lake: Lake, target: str) -> Counter[tuple[str, str]]:
    return Counter((outcome, state) for outcome, state, *_ in lake.deliveries(target))


@pytest.mark.nightly
def test_five_thousand_groups_that_alert_at_once_over_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path)
    lake.rules = rules(tmp_path, DRIFT)
    targets = {"chat": _CHAT, "pager": _PAGER}
    lake.write(**dict.fromkeys(_NAMES, "drifted"))

    with Services() as services, monkeypatch.context() as killed:
        # It dies after the targets have taken the messages and before it can record that.
        killed.setattr("streaming.alerts.run.Alerter._write_results", lambda _: None)
        with lake.alerter(**targets) as alerter:
            alerter.poll()
            while len(services.requests) < 2:
                assert alerter.wake.wait(60)
                alerter.wake.clear()
    assert _chat(services) == ["[firing] drift: 5,000 alerts (critical)"]
    assert _pager(services) == [("trigger", _DRIFT_KEY)]
    assert _rows(lake, "chat") == {}

    with Services() as services, lake.alerter(**targets) as alerter:
        alerter.poll()
        until_idle(alerter)
    assert _chat(services) == ["[firing] drift: 5,000 alerts (critical)"]
    assert _pager(services) == [("trigger", _DRIFT_KEY)]
    assert _rows(lake, "chat") == _rows(lake, "pager") == {("delivered", "firing"): _MANY}

    with Services() as services:
        with lake.alerter(**targets) as alerter:
            lake.write(**dict.fromkeys(_NAMES[2:], "identical"))
            alerter.poll()
            until_idle(alerter)
        for name in _NAMES[:2]:
            with lake.alerter(**targets) as alerter:
                lake.write(**{name: "identical"})
                alerter.poll()
                until_idle(alerter)
    assert _chat(services) == [
        "[resolved] drift: 4,998 alerts (critical)",
        "[resolved] drift: g0 (critical)",
        "[resolved] drift: g1 (critical)",
    ]
    assert _pager(services) == [("resolve", _DRIFT_KEY)]
    assert _rows(lake, "chat")["delivered", "resolved"] == _MANY
    assert _rows(lake, "pager") == {
        ("delivered", "firing"): _MANY,
        ("skipped", "resolved"): _MANY - 1,
        ("delivered", "resolved"): 1,
    }


def test_a_restart_in_the_middle_of_a_storm_sends_only_what_has_no_row(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.rules = rules(tmp_path, DRIFT, DRIFT.replace("name: drift", "name: seen").replace("critical", "warning"))
    lake.write(**dict.fromkeys(_NAMES[:500], "drifted"))
    # The first message is taken, the second refused; then the process ends.
    with Services(204, 500) as services, lake.alerter(chat=_CHAT) as alerter:
        alerter.poll()
        while len(services.requests) < 2:
            assert alerter.wake.wait(60)
            alerter.wake.clear()
            alerter.poll()
    assert _chat(services)[0] == "[firing] drift: 500 alerts (critical)"
    assert _rows(lake, "chat") == {("delivered", "firing"): 500, ("failed", "firing"): 1}
    with Services() as services, lake.alerter(chat=_CHAT) as alerter:
        alerter.poll()
        until_idle(alerter)
    assert _chat(services) == ["[firing] seen: 500 alerts (warning)"]
    assert _rows(lake, "chat") == {("delivered", "firing"): 1_000, ("failed", "firing"): 1}
