"""Who gets an alert, and what holds it back: by labels, severity, owner, cluster, rule and mutes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from streaming.alerts.routes import Routing
from streaming.alerts.transitions import Transition
from streaming.config import AlertSettings, Owner
from streaming.exceptions import SetupError
from streaming.notes import Mute
from tests.alerts.build import transition

HOUR = 3_600_000
NOW = round(datetime.fromisoformat("2026-11-25T23:00:00+00:00").timestamp() * 1000)

OWNERS = (Owner(team="payments", groups=("/^pay/",)), Owner(team="search", groups=("indexer",)))


def _alert(group: str | None = "pay-1", rule: str = "lag", severity: str = "critical", **labels: str) -> Transition:
    return transition(
        cluster="prod", rule=rule, severity=severity, group_id=group, labels=tuple(sorted(labels.items()))
    )


def _routing(*, mute: Mute | None = None, **alerts: Any) -> Routing:
    routing = Routing(AlertSettings.model_validate(alerts), OWNERS, ("oncall", "pay", "search", "log"))
    routing.mutes = () if mute is None else (mute,)
    return routing


def test_without_routes_every_target_gets_everything() -> None:
    assert _routing().targets_of(_alert()) == ("oncall", "pay", "search", "log")


def test_the_first_route_that_matches_counts() -> None:
    routing = _routing(
        routes=[
            {"owners": ["payments"], "severities": ["critical"], "targets": ["oncall", "pay"]},
            {"owners": ["/pay|search/"], "targets": ["search"]},
            {"labels": {"about": "/^bal/"}, "targets": []},
        ]
    )
    assert routing.targets_of(_alert()) == ("oncall", "pay")
    assert routing.targets_of(_alert(severity="warning")) == ("search",)
    assert routing.targets_of(_alert("indexer")) == ("search",)
    assert routing.targets_of(_alert("other", about="balance")) == ()


def test_an_alert_that_no_route_matches_goes_to_every_target_rather_than_to_nobody() -> None:
    routing = _routing(routes=[{"clusters": ["dev"], "targets": ["log"]}])
    assert routing.targets_of(_alert()) == ("oncall", "pay", "search", "log")


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
    assert _routing(mute=mute).hold(_alert(), NOW) == why
    assert _routing(mute=mute).hold(_alert(), NOW + HOUR) is None
    assert _routing(mute=mute).hold(_alert(), NOW - 2 * HOUR) is None


def test_a_mute_that_repeats_holds_again_for_a_year() -> None:
    mute = Mute("m", "prod", "rule", "lag", "night", "ann@host", NOW, NOW + HOUR, 24 * HOUR)
    routing = _routing(mute=mute)
    held = [hours for hours in (-1, 0, 1, 23, 24, 25, 48) if routing.hold(_alert(), NOW + hours * HOUR)]
    assert held == [0, 24, 48]
    assert routing.hold(_alert(), NOW + 365 * 24 * HOUR) is not None
    assert routing.hold(_alert(), NOW + 366 * 24 * HOUR) is None


def test_a_target_that_there_is_not_is_one_sentence() -> None:
    with pytest.raises(SetupError, match=r"alerts\.routes, entry 1 names the target pager, which is not set"):
        _routing(routes=[{"targets": ["pager"]}])


@pytest.mark.parametrize(
    "wrong",
    [
        {"routes": [{"targets": ["pay"], "groups": ["/(/"]}]},
        {"routes": [{"severity": "critical", "targets": ["pay"]}]},
    ],
)
def test_a_wrong_entry_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AlertSettings.model_validate(wrong)
