"""Who gets an alert, and what holds it back, as a rule and through the whole alerter.

A round is ten seconds; minutes count from round 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pydantic import ValidationError

from streaming.alerts.delivery.messages import RECORDS
from streaming.alerts.routes import Routing
from streaming.alerts.transitions import Transition
from streaming.config import AlertSettings, Owner
from streaming.exceptions import SetupError
from streaming.notes import Mute, write_note
from tests.alerts.build import DRIFT, Living, drifted, transition

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


MINUTE = 60_000

Make: TypeAlias = Callable[..., Living]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Living] = []

    def one(*texts: str, **more: Any) -> Living:
        made.append(Living(tmp_path, *texts, **more))
        return made[-1]

    yield one
    for living in made:
        living.stop()


@pytest.fixture
def living(make: Make) -> Living:
    return make(DRIFT)


def _mute(living: Living, kind: str, name: str, minutes: float) -> Mute:
    now = round(living.wall_ms)
    mute = Mute(f"{kind} {name}", "c", kind, name, "a deploy", "ann@host", now, now + round(minutes * MINUTE))
    write_note(living.writer.root, mute, now)
    return mute


@pytest.mark.turn(3)
def test_a_mute_hides_no_transition_and_what_still_fires_at_its_end_is_sent_then(living: Living) -> None:
    living.round(0, drift=drifted("a", "b", "c", verdict="identical"))
    _mute(living, "group", "/[ab]/", 2)
    living.round(1, drift=drifted("a", "b", "c"))
    living.round(2, drift=drifted("b", verdict="identical"))
    assert [(row["group_id"], row["state"]) for row in living.writer.transitions()] == [
        ("a", "firing"), ("b", "firing"), ("c", "firing"), ("b", "resolved"),
    ]  # fmt: skip
    assert (living.inboxes["ops"].minutes, living.titles()) == ([0.2], ["[firing] drift: c (critical)"])
    living.round(13)
    assert (living.inboxes["ops"].minutes[1:], living.titles()[1:]) == ([2.2], ["[firing] drift: a (critical)"])
    outcomes = living.deliveries("ops", "outcome", "state", "reason")
    why = "group /[ab]/ is muted by ann@host: a deploy"
    assert outcomes.count(("held", "firing", why)) == 2
    assert ("skipped", "firing", f"it was over before it could be sent ({why})") in outcomes
    assert ("skipped", "resolved", "its firing was not sent") in outcomes


@pytest.mark.turn(3)
def test_a_mute_that_is_lifted_ends_at_once(living: Living) -> None:
    living.round(0, drift=drifted("a"))
    mute = _mute(living, "rule", "drift", 60)
    living.round(1, drift=drifted("b"))
    write_note(living.writer.root, mute, round(living.wall_ms) + 1, ended=True)
    living.round(2)
    assert living.titles() == ["[firing] drift: a (critical)", "[firing] drift: b (critical)"]
    assert living.inboxes["ops"].minutes == [0.0, 0.3]


@pytest.mark.turn(3)
def test_the_end_of_an_alert_that_was_sent_is_sent_during_a_mute_so_that_no_incident_stays_open(living: Living) -> None:
    living.round(0, drift=drifted("a"))
    _mute(living, "group", "a", 60)
    living.round(1, drift=drifted("a", verdict="identical"))
    assert living.titles() == [
        "[firing] drift: a (critical)", "[resolved] drift: a (critical)",
    ]  # fmt: skip


@pytest.mark.turn(3)
def test_what_is_held_back_outlives_a_restart_of_the_alerter(living: Living) -> None:
    living.round(0, drift=drifted("a", verdict="identical"))
    _mute(living, "owner", "nobody", 60)
    _mute(living, "group", "a", 1)
    living.round(1, drift=drifted("a"))
    living.start()
    living.round(2)
    assert living.titles() == []
    living.round(8)
    assert living.titles() == ["[firing] drift: a (critical)"]


@pytest.mark.turn(3)
def test_routes_send_each_alert_to_its_targets_and_its_end_to_the_same(make: Make) -> None:
    living = make(
        DRIFT,
        targets=("oncall", "pay", "all"),
        reads={"all": RECORDS},
        owners=(Owner(team="payments", groups=("a",)),),
        routes=[{"owners": ["payments"], "targets": ["pay", "all"]}, {"targets": ["all"]}],
    )
    living.round(0, drift=drifted("a", "b"))
    living.round(1, drift=drifted("a", "b", verdict="identical"))
    told = {name: sorted(inbox.titles) for name, inbox in living.inboxes.items()}
    assert told == {
        "oncall": [],
        "pay": ["[firing] drift: a (critical)", "[resolved] drift: a (critical)"],
        "all": [
            "[firing] drift: a (critical)", "[firing] drift: b (critical)",
            "[resolved] drift: a (critical)", "[resolved] drift: b (critical)",
        ],
    }  # fmt: skip
    assert ("skipped", "it is routed to pay, all") in living.deliveries("oncall", "outcome", "reason")


def _route(living: Living, *targets: str) -> None:
    """Send everything to these targets only, from the next start on."""
    alerts = living.settings.alerts.model_dump() | {"routes": [{"targets": list(targets)}]}
    living.settings = living.settings.model_copy(update={"alerts": AlertSettings(**alerts)})


@pytest.mark.turn(3)
def test_an_alert_that_fires_is_sent_once_to_a_target_that_a_corrected_route_names_and_so_is_its_end(
    make: Make,
) -> None:
    living = make(DRIFT, targets=("pager", "log"), routes=[{"targets": ["log"]}])
    living.round(0, drift=drifted("a"))
    _route(living, "pager", "log")
    living.start()
    living.round(1)
    assert living.titles("pager") == ["[firing] drift: a (critical)"]
    living.start()
    living.round(2)
    living.start()
    living.round(3, drift=drifted("a", verdict="identical"))
    assert living.titles("pager") == living.titles("log")
    assert living.titles("log") == ["[firing] drift: a (critical)", "[resolved] drift: a (critical)"]


@pytest.mark.turn(3)
@pytest.mark.nightly
def test_what_ended_while_the_route_was_corrected_is_not_sent(make: Make) -> None:
    living = make(DRIFT, targets=("pager", "log"), routes=[{"targets": ["log"]}])
    living.round(0, drift=drifted("a"))
    living.stop()
    living.writer.write(1, {"drift": drifted("a", verdict="identical")})
    _route(living, "pager", "log")
    living.start()
    living.round(2)
    assert living.titles("pager") == []
    assert living.deliveries("pager", "state", "outcome", "reason") == [
        ("firing", "skipped", "it is routed to log"),
        ("firing", "skipped", "it is no longer true"),
        ("resolved", "skipped", "its firing was not sent"),
    ]


@pytest.mark.turn(3)
@pytest.mark.nightly
def test_a_failing_target_is_sent_what_was_held_back_when_it_takes_messages_again(living: Living) -> None:
    living.round(0)
    _mute(living, "group", "a", 1)
    living.inboxes["ops"].fails = ["the target answered HTTP 500"] * 2
    living.round(1, drift=drifted("a"))
    living.round(8)
    assert living.titles() == ["[firing] drift: a (critical)"]
    assert [row[0] for row in living.deliveries("ops", "outcome")] == ["held", "failed", "failed", "delivered"]
