"""What services are sent: one incident per alert, names as inert text, links."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from email.header import decode_header, make_header
from typing import Any

import pytest

from streaming.alerts.delivery.messages import CLOSES, GOES_ON, INCIDENTS, Wording, message_of, trial_message
from streaming.alerts.delivery.targets import DeliveryTarget, inert
from streaming.alerts.transitions import Transition
from tests.alerts.build import transition
from tests.alerts.services import MailServer, Receiver, Request, Services

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


# Active texts for some service: parts of them are in the names below.
_NAMES = (
    "<a href='http://evil.example'>sign in</a>",
    "<b>bold</b> <script>x</script>",
    "@everyone @here @channel @room @all",
    "<!channel> <@U012AB3CD> <!subteam^S1> <users/all>",
    '<at user_id="all">',
    "[sign in](http://evil.example)",
    "[sign in][x] [x]: http://evil.example",
    "<http://evil.example|sign in>",
    "![x](https://evil.example/x.png) www.evil.example",
    "[CQ:at,qq=all] (met)all(met)",
)

_PLAIN = "orders_v2-*eu*"

# No request may contain one of these, in the syntax of the service or of Apprise's escapes.
_ACTIVE = re.compile(
    r"@(everyone|here|channel|room|all)|<a\s|<b>bold|<script|<!\w|<@|<users/|<at\s|<http|\]\(|\]\[|\]:|://evil|www\.evil"
    r"|\[CQ:|\(met\)",
    re.IGNORECASE,
)


def _decided(name: str) -> Transition:
    return transition(group_id=name, topic=name, partition=3, labels=(("team", name),), message=f"{name} is stalled")


def _sent(url: str, *names: str) -> list[Request]:
    """Requests with the names (a login has none)."""
    with Services() as services:
        target = DeliveryTarget("team", url, 10_000)
        for name in names:
            assert target.send(message_of(_decided(name))).reason is None
    telling = [request for request in services.requests if b"stalled" in request.body]
    assert len(telling) == len(names)
    return telling


def _texts(value: object) -> list[str]:
    """All texts in a JSON value."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in _texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) else []


def _said(request: Request) -> str:
    """The parts of a request that contain a name."""
    texts = _texts(request.json) if request.body.startswith((b"{", b"[")) else list(request.form.values())
    return "\n".join(text for text in texts if "lag" in text or "team=" in text or "stalled" in text)


_TOKENS = {
    "discord": f"discord://{'4' * 24}/{'t' * 64}",
    "discord as markdown": f"discord://{'4' * 24}/{'t' * 64}?format=markdown",
    "gchat": "gchat://workspace/key/token",
    "gotify": "gotify://gotify.example/token1234567890",
    "matrix": "matrixs://user:pass@matrix.example/!r:m?discovery=no",
    "matrix as html": "matrixs://user:pass@matrix.example/!r:m?discovery=no&format=html",
    "matrix as markdown": "matrixs://user:pass@matrix.example/!r:m?discovery=no&format=markdown",
    "mattermost": "mmosts://mattermost.example/token12345",
    "mattermost as markdown": "mmosts://mattermost.example/token12345?format=markdown",
    "ntfy": "ntfy://topic",
    "ntfy as markdown": "ntfy://topic?format=markdown",
    "pagerduty": "pagerduty://integrationkey@apikey",
    "rocketchat": f"rockets://{'a' * 24}%2F{'b' * 24}@rocket.example/#ops",
    "slack": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general",
    "slack with blocks": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general?blocks=yes",
    "slack as markdown": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general?format=markdown",
    "teams": f"workflow://teams.example/{'a' * 32}/{'b' * 24}/",
    "telegram": "tgram://123456789:abcdefg_hijklmnop/12315544/",
    "telegram as markdown": "tgram://123456789:abcdefg_hijklmnop/12315544/?format=markdown",
    "webex": f"wxteams://{'a' * 80}",
    "zulip": f"zulip://bot@org/{'a' * 32}/consumers",
}


@pytest.mark.parametrize("service", _TOKENS)
def test_nothing_in_a_name_acts_at_the_service(service: str) -> None:
    # Matrix needs a login for each message, with pauses.
    for request in _sent(_TOKENS[service], *((" ".join(_NAMES),) if service.startswith("matrix") else _NAMES)):
        said = _said(request)
        assert said
        # The text as a client shows it: entities and escapes are decoded first where a service supports them.
        for read in (said, said.replace("\\", ""), *([said] if "<" in said else [html.unescape(said)])):
            assert _ACTIVE.search(read) is None, read


@pytest.mark.parametrize("form", ["", "&format=html", "&format=text"])
def test_nothing_in_a_name_acts_in_a_mail(form: str) -> None:
    with MailServer() as server:
        target = DeliveryTarget("mail", server.url + form, 10_000)
        for name in _NAMES:
            assert target.send(message_of(_decided(name))).reason is None
    assert len(server.mails) == len(_NAMES)
    for mail in server.mails:
        parts = [part.get_payload(decode=True).decode() for part in mail.walk() if not part.is_multipart()]  # type: ignore[union-attr]
        assert parts
        subject = str(make_header(decode_header(mail["Subject"])))
        for said in (subject, *parts):
            assert _ACTIVE.search(said) is None, said
        assert "\n" not in subject


def test_telegram_gets_tags_as_text() -> None:
    """It refuses a message with an unknown tag, and renders a known one."""
    (request,) = _sent(_TOKENS["telegram"], "<a href='http://evil.example'>sign in</a> <x> & <!channel>")
    assert request.json["parse_mode"] == "HTML"
    text = request.json["text"]
    assert re.findall(r"<[^>]*>", text) == ["<b>", "</b>"]
    assert html.unescape(text).replace("\u200b", "").count("<a href='http://evil.example'>sign in</a> <x> & <!") == 5


@pytest.mark.parametrize("service", ["discord", "gotify", "ntfy", "pagerduty"])
def test_an_ordinary_name_stays_as_it_is_where_text_is_text(service: str) -> None:
    (request,) = _sent(_TOKENS[service], _PLAIN)
    assert f"{_PLAIN} is stalled" in _said(request)


def test_a_ping_that_a_target_asks_for_goes_on() -> None:
    (request,) = _sent(_TOKENS["discord"] + "?ping=@oncall", "@everyone")
    assert request.json["allow_mentions"]["parse"] == ["oncall"]


def test_a_program_gets_the_name_itself() -> None:
    with Receiver() as receiver:
        target = DeliveryTarget("hook", receiver.url, 10_000)
        for name in _NAMES:
            assert target.send(message_of(_decided(name))).reason is None
    forms, xmls = _sent("form://hook.example/x", *_NAMES), _sent("xml://hook.example/x", *_NAMES)
    for name, message, form, xml in zip(_NAMES, receiver.messages, forms, xmls, strict=True):
        assert message["group_id"] == message["topic"] == message["label_team"] == name
        assert message["message"].startswith(f"{name} is stalled\n")
        assert form.form["group_id"] == name
        assert html.unescape(xml.body.decode()).count(f"<group_id>{name}</group_id>") == 1


def test_an_inert_text_looks_the_same() -> None:
    for name in _NAMES:
        assert inert(name) != name
        assert inert(name).replace("\u200b", "") == name
    for name in ("orders.payments-v1", "a@ b", "1 < 2", "a:b", "[x] (y)", "consumer-1-0f2c", json.dumps({"a": [1]})):
        assert inert(name) == name


def test_a_message_is_no_longer_than_its_service_takes() -> None:
    """A longer one would be refused again and again."""
    name = "x" * 190
    long = replace(_decided(name), labels=tuple((f"l{n}", name) for n in range(20)))
    with Services() as services:
        for url in (_TOKENS["discord"], _TOKENS["pagerduty"], _TOKENS["teams"]):
            assert DeliveryTarget("team", url, 10_000).send(message_of(long)).reason is None
    discord, pagerduty, _ = (request.json for request in services.requests)
    assert len(services.requests) == 3
    assert len(discord["content"]) <= 2000
    assert len(pagerduty["payload"]["summary"]) <= 1024


def test_a_link_leads_to_the_page_as_of_then() -> None:
    wording = Wording(public_url="https://keel.example.org/x")
    hour = "from=2023-11-14T21%3A28Z&to=2023-11-14T22%3A28Z"
    assert wording.link(transition(group_id="a/b c")) == (
        f"https://keel.example.org/x/groups/a%2Fb%20c?cluster=main&{hour}"
    )
    assert wording.link(transition(rule="silence", group_id=None)) == (
        f"https://keel.example.org/x/alerts/silence?cluster=main&{hour}"
    )
    assert Wording().link(transition()) is None
