"""One incident per alert: opened once and closed once, with the key that the service documents. Over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.alerts.delivery.messages import CLOSES, GOES_ON, INCIDENTS, message_of, trial_message
from streaming.alerts.delivery.targets import DeliveryTarget
from tests.alerts.build import transition
from tests.alerts.services import Services

_ALERT = "e5cca8409104fd8c0f84ff24a071abe2"


def _life(url: str, end: str = "resolved", severity: str = "critical") -> list[Any]:
    """Bodies of the messages that a target gets for one alert that fires and ends."""
    with Services() as services:
        target = DeliveryTarget("oncall", url, 10_000)
        outcomes = [
            target.send(message_of(transition(severity=severity))),
            target.send(message_of(transition(end, severity=severity), act=CLOSES)),
        ]
    assert [outcome.reason for outcome in outcomes if not outcome.unsent] == [None] * len(services.requests)
    return [request.json for request in services.requests]


@pytest.mark.parametrize("end", ["resolved", "gone"])
@pytest.mark.parametrize("given", ["", "?action=map", "?action=resolve", "?dedup=everything", "?region=eu"])
def test_pagerduty_opens_one_incident_and_closes_the_same(given: str, end: str) -> None:
    """According to the Events API v2: `trigger` and `resolve` with one `dedup_key`."""
    opened, closed = _life(f"pagerduty://integrationkey@apikey{given}", end)
    assert (opened["event_action"], opened["dedup_key"]) == ("trigger", _ALERT)
    assert opened["routing_key"] == "integrationkey"
    assert opened["payload"]["summary"].startswith("[firing] lag: billing (critical)\r\nbilling is stalled")
    assert opened["payload"]["severity"] == "critical"
    assert closed == {"routing_key": "integrationkey", "event_action": "resolve", "dedup_key": _ALERT}


_UUID = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("url", "key", "state", "opened", "closed"),
    [
        ("firehydrant://token1234567890", "idempotency_key", "status", "OPEN", "CLOSED"),
        (f"goalert://goalert.example/{_UUID}", "dedup", "action", None, "close"),
        ("ilert://integrationkey1234", "alertKey", "eventType", "ALERT", "RESOLVE"),
        ("incidentio://source1234/token1234", "deduplication_key", "status", "firing", "resolved"),
        ("pagertree://int_1234567890", "id", "event_type", "create", "resolve"),
        ("signl4://secret1234", "X-S4-ExternalID", "X-S4-Status", None, "resolved"),
        ("splunk://routing@apikey1234", "entity_id", "message_type", "CRITICAL", "RECOVERY"),
        ("victorops://routing@apikey1234/everything", "entity_id", "message_type", "CRITICAL", "RECOVERY"),
        ("squadcast://webhookkey1234", "event_id", "status", "trigger", "resolve"),
    ],
)
def test_every_service_with_incidents_is_told_the_same_key_when_they_open_and_when_they_close(
    url: str, key: str, state: str, opened: str | None, closed: str
) -> None:
    first, last = _life(url)
    assert first[key] == last[key] == _ALERT
    assert (first.get(state), last[state]) == (opened, closed)


@pytest.mark.parametrize("severity", ["info", "warning", "critical"])
def test_the_end_of_one_alert_of_many_in_an_incident_closes_nothing(severity: str) -> None:
    with Services() as services:
        target = DeliveryTarget("oncall", "pagerduty://integrationkey@apikey", 10_000)
        outcome = target.send(message_of(transition("resolved", severity=severity), "key of the rule", GOES_ON))
    assert services.requests == []
    assert (outcome.unsent, outcome.reason) == (True, "its incident goes on there, or can only be opened")
    assert target.reads == INCIDENTS


@pytest.mark.parametrize("url", ["betterstack://token1234", f"spike://{'a' * 32}"])
def test_a_service_that_can_only_open_is_not_rung_again_by_an_end(url: str) -> None:
    (opened,) = _life(url)
    assert "firing" in str(opened)


def test_the_alert_of_jira_is_not_silently_left_out() -> None:
    """Its plug-in closes only what the same object opened, and reports success without sending anything."""
    opened, closed = _life("jira://apikey1234", severity="info")
    assert opened["message"].startswith("[firing] lag: billing")
    assert closed["message"].startswith("[resolved] lag: billing")


def test_a_test_message_belongs_to_no_incident_of_an_alert() -> None:
    with Services() as services:
        assert (
            DeliveryTarget("oncall", "pagerduty://integrationkey@apikey", 10_000).send(trial_message("main")).reason
            is None
        )
    (tested,) = services.requests
    assert tested.json["event_action"] == "trigger"
    assert "dedup_key" not in tested.json
