"""Who gets an alert, and what holds it back: by labels, severity, owner, cluster, rule, hours and mutes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from streaming.alerts.routes import Routing, RuleRoute
from streaming.alerts.transitions import TransitionRow
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
        ("severity", "critical", True),
        ("severity", "info", False),
    ],
)
def test_a_mute_holds_back_what_it_names_until_it_ends_by_itself(kind: str, name: str, held: bool) -> None:
    mute = Mute("m", "prod", kind, name, "a deploy", "ann@host", NOW - HOUR, NOW + HOUR)
    why = f"{kind} {name} is muted by ann@host: a deploy" if held else None
    assert _routing().hold(_alert(), NOW, [mute]) == why
    assert _routing().hold(_alert(), NOW + HOUR, [mute]) is None
    assert _routing().hold(_alert(), NOW - 2 * HOUR, [mute]) is None


def test_a_mute_that_repeats_holds_again_for_a_year() -> None:
    mute = Mute("m", "prod", "rule", "lag", "night", "ann@host", NOW, NOW + HOUR, 24 * HOUR)
    held = [hours for hours in (-1, 0, 1, 23, 24, 25, 48) if _routing().hold(_alert(), NOW + hours * HOUR, [mute])]
    assert held == [0, 24, 48]
    assert _routing().hold(_alert(), NOW + 365 * 24 * HOUR, [mute]) is not None
    assert _routing().hold(_alert(), NOW + 366 * 24 * HOUR, [mute]) is None


@pytest.mark.parametrize(
    ("alerts", "said"),
    [
        ({"routes": [{"targets": ["pager"]}]}, "alerts.routes, entry 1 names the target pager, which is not set"),
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
    ],
)
def test_a_wrong_entry_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AlertSettings.model_validate(wrong)
