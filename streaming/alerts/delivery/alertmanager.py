"""Prometheus' Alertmanager as a target, by its API v2 (`POST /api/v2/alerts`, openapi.yaml of Alertmanager 0.25).

An Alertmanager keeps an alert until the `endsAt` that came with it, and knows it by its labels alone. So everything
that fires is sent again each minute with an `endsAt` four times as far ahead, as Prometheus does it (`resendDelay` in
rules/alerting.go), and the end of an alert is the same labels with an `endsAt` of now. Grouping, silences, inhibition
and repetition are its own work.

Beside the alerts it gets `Watchdog`, which always fires while the alerter judges rounds: when that ends, the alerter or
something before it has, and only somebody outside can say so.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import requests

from streaming.alerts.delivery.messages import RECORDS, AttemptOutcome, Message
from streaming.alerts.transitions import FIRING
from streaming.exceptions import SetupError
from streaming.terminal import visible

SCHEMES: Final = ("alertmanager", "alertmanagers")
"""Schemes of a target's URL; the second one is over TLS."""

WATCHDOG: Final = "Watchdog"
"""`alertname` of the alert that always fires, as in the rules that come with Prometheus' operator."""

_ENDS_AFTER: Final = 4
"""`endsAt` is this many times the interval of sending ahead: three lost messages end nothing."""

# Alertmanager reads a request as a whole; five hundred alerts are some 500 KB.
_AT_ONCE: Final = 500

_WORST: Final = 299

_LABEL = re.compile(r"[^A-Za-z0-9_]")

# Columns of an alert's key with labels that do not depend on it.
_OWN: Final = ("group_id", "topic", "partition")


class AlertmanagerTarget:
    """One Alertmanager, or the members of one cluster of them. `send` and `resend` are for one thread at a time.

    Attributes:
        name: Its name in the settings.
        reads: RECORDS: each alert with all its fields, because grouping is done there.
        resend_ms: How often all that fires is to be sent again.
    """

    def __init__(
        self, name: str, url: str, timeout_ms: int, resend_ms: int, cluster: str, clock: Callable[[], float] = time.time
    ) -> None:
        """Check the URL; nothing is sent.

        Args:
            name: Its name in the settings.
            url: "alertmanager://[user:password@]host:port[,host:port ...][/prefix]"; "alertmanagers://" for TLS.
            timeout_ms: For each connection and answer.
            resend_ms: How often all that fires is sent again.
            cluster: The watched cluster, for the label of `Watchdog`.
            clock: Seconds since the epoch.

        Raises:
            SetupError: The URL is none of these; the text names the target, not the URL.
        """
        self.name, self.reads, self.resend_ms = name, RECORDS, resend_ms
        self._timeout_s, self._cluster, self._clock = timeout_ms / 1000, cluster, clock
        self._addresses, self._login = _parsed(name, url)
        self._session = requests.Session()
        self._session.trust_env = False

    def send(self, message: Message) -> AttemptOutcome:
        """Send a transition, or a trial."""
        return self._post([self._alert(message)])

    def resend(self, messages: Sequence[Message], *, judged: bool) -> AttemptOutcome:
        """Send all that fires again, and `Watchdog` where something was judged lately."""
        alerts = [self._alert(message) for message in messages]
        if judged:
            alerts.insert(0, self._watchdog())
        if not alerts:
            return AttemptOutcome("nothing fires, and nothing was judged lately", 0, unsent=True)
        worst = AttemptOutcome(None, 0)
        for first in range(0, len(alerts), _AT_ONCE):
            outcome = self._post(alerts[first : first + _AT_ONCE])
            worst = AttemptOutcome(worst.reason or outcome.reason, worst.duration_ms + outcome.duration_ms)
        return worst

    def _alert(self, message: Message) -> dict[str, Any]:
        """The alert of a message as the API takes it."""
        now, fields = self._clock(), message.fields
        decided = message.decided
        if decided is None:
            labels = {"alertname": f"Evenkeel_{message.state}", "severity": "info", "cluster": self._cluster}
            told = {"summary": message.subject, "description": message.body}
            return _alert(labels, told, now, now + self.resend_ms / 1000)
        labels = {_LABEL.sub("_", name): value for name, value in decided.labels}
        about = json.loads(decided.entity).items()
        labels |= {name: visible(str(value)) for name, value in about if name not in _OWN}
        labels |= {"alertname": decided.rule, "severity": decided.severity, "cluster": decided.cluster}
        named = {"group": decided.group_id, "topic": decided.topic, "partition": decided.partition}
        labels |= {name: visible(str(value)) for name, value in named.items() if value is not None}
        labels |= {"owner": fields["owner"]} if "owner" in fields else {}
        told = {"summary": message.subject, "description": decided.message, "alert": decided.alert_id}
        given = {"value": "value", "runbook_url": "runbook"}
        told |= {name: fields[field] for name, field in given.items() if field in fields}
        # The time of a round is a broker's. An alert that begins in the future is refused.
        start = min(decided.at / 1000, now)
        if decided.state != FIRING:
            return _alert(labels, told, min(decided.since / 1000, now), now, fields.get("page"))
        return _alert(labels, told, start, now + _ENDS_AFTER * self.resend_ms / 1000, fields.get("page"))

    def _watchdog(self) -> dict[str, Any]:
        now = self._clock()
        labels = {"alertname": WATCHDOG, "severity": "none", "cluster": self._cluster, "source": "evenkeel"}
        told = {"summary": "Evenkeel judges rounds. When this alert ends, it does not any more."}
        return _alert(labels, told, now, now + _ENDS_AFTER * self.resend_ms / 1000)

    def _post(self, alerts: list[dict[str, Any]]) -> AttemptOutcome:
        """Send to all members of the cluster, as Prometheus does; it is enough that one of them took it."""
        began = time.monotonic()
        reasons = [self._post_to(address, json.dumps(alerts)) for address in self._addresses]
        duration = round((time.monotonic() - began) * 1000)
        return AttemptOutcome(None if None in reasons else reasons[0], duration)

    def _post_to(self, address: str, body: str) -> str | None:
        try:
            answer = self._session.post(
                f"{address}/api/v2/alerts",
                data=body.encode("utf-8", "replace"),
                headers={"Content-Type": "application/json"},
                timeout=self._timeout_s,
                auth=self._login,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            # Only the type: the text has the address.
            return f"the Alertmanager could not be reached, or did not answer in time ({type(error).__name__})"
        if answer.status_code <= _WORST:
            return None
        return f"the Alertmanager answered HTTP {answer.status_code}: {visible(answer.text, 160)}".rstrip(": ")


def is_alertmanager(url: str) -> bool:
    """Whether a target's URL names an Alertmanager."""
    return url.partition("://")[0].strip().lower() in SCHEMES


def _alert(
    labels: Mapping[str, str], told: Mapping[str, str], start: float, end: float, link: str | None = None
) -> dict[str, Any]:
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {name: value for name, value in told.items() if value},
        "startsAt": _rfc3339(start),
        "endsAt": _rfc3339(max(start + 0.001, end)),
        **({"generatorURL": link} if link else {}),
    }


def _parsed(name: str, url: str) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    scheme, _, rest = url.partition("://")
    login, at, places = rest.rpartition("@")
    hosts, _, prefix = places.partition("/")
    web = "https" if scheme.strip().lower().endswith("s") else "http"
    addresses = tuple(f"{web}://{host.strip()}/{prefix}".rstrip("/") for host in hosts.split(",") if host.strip())
    try:
        usable = bool(addresses) and all(urlsplit(address).hostname and urlsplit(address).port for address in addresses)
    except ValueError:
        usable = False
    if not usable or "?" in places or (at and ":" not in login):
        message = (
            f"The URL of the alert target {name} names no Alertmanager: write it like alertmanager://host:9093, or "
            "alertmanagers://user:password@host:9093/prefix."
        )
        raise SetupError(message)
    user, _, password = login.partition(":")
    return addresses, (unquote(user), unquote(password)) if at else None


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
