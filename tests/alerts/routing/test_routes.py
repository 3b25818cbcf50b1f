"""Who gets an alert, and what holds it back: by labels, severity, owner, cluster, rule, hours and mutes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from streaming.alerts.decisions import TransitionRow
from streaming.alerts.routing.routes import MAINTENANCE, MUTE, QUIET, Routing, RuleRoute
from streaming.config import AlertSettings, Owner
from streaming.exceptions import SetupError
from streaming.notes import Mute

HOUR = 3_600_000
NOW = round(datetime.fromisoformat("2026-11-25T23:00:00+00:00").timestamp() * 1000)

OWNERS = (Owner(team="payments", groups=("/^pay/",)), Owner(team="search", groups=("indexer",)))


def _alert(group: str | None = "pay-1", rule: str = "lag", severity: str = "critical", **labels: str) -> TransitionRow:
    return TransitionRow(
        "t", "a", "prod", rule, severity, group, None, None, tuple(sorted(labels.items())), "firing", None, 0, 0, 1,
        False, None, "", 0,
    )  # fmt: skip


def _routing(rules: dict[str, RuleRoute] | None = None, **alerts: Any) -> Routing:
    settings = AlertSettings.model_validate(alerts)
    return Routing.of(settings, OWNERS, ("oncall", "pay", "search", "log"), rules or {})


def test_without_routes_every_target_gets_everything() -> None:
    assert _routing().targets_of(_alert()) == {"oncall": None, "pay": None, "search": None, "log": None}


def test_the_first_route_that_matches_counts_and_one_that_continues_adds_the_next() -> None:
    routing = _routing(
        routes=[
            {"targets": ["log"], "continue": True},
            {"owners": ["payments"], "severities": ["critical"], "targets": ["oncall", "pay"], "repeat_after": "4h"},
            {"owners": ["/pay|search/"], "targets": ["search"]},
            {"labels": {"about": "/^bal/"}, "targets": []},
        ]
    )
    assert routing.targets_of(_alert()) == {"log": None, "oncall": 4 * HOUR, "pay": 4 * HOUR}
    assert routing.targets_of(_alert(severity="warning")) == {"log": None, "search": None}
    assert routing.targets_of(_alert("indexer")) == {"log": None, "search": None}
    assert routing.targets_of(_alert(None)) == {"log": None}
    assert routing.targets_of(_alert("other", about="balance")) == {"log": None}


def test_an_alert_that_no_route_matches_goes_to_every_target_rather_than_to_nobody() -> None:
    routing = _routing(routes=[{"clusters": ["dev"], "targets": ["log"]}])
    assert list(routing.targets_of(_alert())) == ["oncall", "pay", "search", "log"]


def test_what_a_rule_says_itself_comes_before_all_routes() -> None:
    own = {"lag": RuleRoute(("log",), 2 * HOUR), "drift": RuleRoute(None, HOUR), "never": RuleRoute(())}
    routing = _routing(own, routes=[{"targets": ["pay"], "repeat_after": "3h"}])
    assert routing.targets_of(_alert()) == {"log": 2 * HOUR}
    assert routing.targets_of(_alert(rule="drift")) == {"pay": HOUR}
    assert routing.targets_of(_alert(rule="never")) == {}
    assert routing.targets_of(_alert(rule="other")) == {"pay": 3 * HOUR}


def test_quiet_hours_hold_back_all_but_what_passes_at_the_targets_that_they_name() -> None:
    quiet = [{"targets": ["pay"], "from": "22:00", "to": "06:00"}]
    routing = _routing(quiet_hours=quiet)
    hold = routing.hold(_alert(severity="warning"), "pay", NOW, ())
    assert hold is not None
    assert (hold.kind, hold.until) == (QUIET, NOW + 7 * HOUR)
    assert routing.hold(_alert(severity="warning"), "oncall", NOW, ()) is None
    assert routing.hold(_alert(severity="critical"), "pay", NOW, ()) is None
    assert routing.hold(_alert(severity="warning"), "pay", NOW + 7 * HOUR, ()) is None


def test_maintenance_holds_back_what_it_matches_once_or_every_week() -> None:
    once = {"from": "2026-11-25T22:30:00+00:00", "to": "2026-11-26T01:00:00+00:00", "groups": ["/^pay/"]}
    weekly = {"from": "23:00", "to": "23:30", "days": ["wed"], "rules": ["drift"], "reason": "the weekly deploy"}
    routing = _routing(maintenance=[once, weekly])
    hold = routing.hold(_alert(), "oncall", NOW, ())
    assert hold is not None
    assert (hold.kind, hold.until) == (MAINTENANCE, NOW + 2 * HOUR)
    assert routing.hold(_alert("indexer"), "oncall", NOW, ()) is None
    both = routing.hold(_alert("indexer", "drift"), "oncall", NOW, ())
    assert both is not None
    assert (both.reason, both.until) == ("maintenance: the weekly deploy", NOW + HOUR // 2)
    assert routing.hold(_alert("indexer", "drift"), "oncall", NOW + 24 * HOUR, ()) is None


@pytest.mark.parametrize(
    ("kind", "name", "held"),
    [
        ("group", "pay-1", True),
        ("group", "/^pay-/", True),
        ("group", "pay", False),
        ("group", "/(/", False),
        ("rule", "lag", True),
        ("rule", "drift", False),
        ("owner", "payments", True),
        ("owner", "search", False),
    ],
)
def test_a_mute_holds_back_what_it_names_until_it_ends_by_itself(kind: str, name: str, held: bool) -> None:
    mute = Mute("m", "prod", kind, name, "a deploy", "ann@host", NOW - HOUR, NOW + HOUR)
    hold = _routing().hold(_alert(), "oncall", NOW, [mute])
    assert (hold is not None) is held
    if hold is not None:
        assert (hold.kind, hold.until) == (MUTE, NOW + HOUR)
        assert hold.reason == f"{kind} {name} is muted by ann@host: a deploy"
    assert _routing().hold(_alert(), "oncall", NOW + HOUR, [mute]) is None
    assert _routing().hold(_alert(), "oncall", NOW - 2 * HOUR, [mute]) is None


@pytest.mark.parametrize(
    ("alerts", "said"),
    [
        ({"routes": [{"targets": ["pager"]}]}, "alerts.routes, entry 1 names the target pager, which is not set"),
        ({"quiet_hours": [{"targets": ["x"], "from": "1:00", "to": "2:00"}]}, "alerts.quiet_hours, entry 1"),
        ({"reports": [{"targets": ["pay"], "team": "nobody"}]}, "alerts.reports, entry 1 names the team nobody"),
    ],
)
def test_a_name_that_there_is_not_is_one_sentence(alerts: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        _routing(**alerts)


@pytest.mark.parametrize(
    "wrong",
    [
        {"routes": [{"targets": ["pay"], "repeat_after": "10s"}]},
        {"routes": [{"targets": ["pay"], "groups": ["/(/"]}]},
        {"routes": [{"severity": "critical", "targets": ["pay"]}]},
        {"quiet_hours": [{"from": "25:00", "to": "7:00"}]},
        {"quiet_hours": [{"from": "22:00", "to": "7:00", "days": ["someday"]}]},
        {"quiet_hours": [{"from": "22:00", "to": "7:00", "time_zone": "Mars/Olympus"}]},
        {"maintenance": [{"from": "22:00", "to": "2026-11-26T01:00:00+00:00"}]},
        {"maintenance": [{"from": "2026-11-26T01:00:00+00:00", "to": "2026-11-26T00:00:00+00:00"}]},
        {"maintenance": [{"from": "2026-11-26T01:00:00", "to": "2026-11-26T02:00:00"}]},
        {"reports": [{"targets": []}]},
        {"reports": [{"targets": ["pay"], "every": "week", "day": ["mon", "tue"]}]},
    ],
)
def test_a_wrong_entry_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AlertSettings.model_validate(wrong)
