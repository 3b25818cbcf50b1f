"""Where alerts go: Apprise URLs under names; what a message says; and what came of sending it, without any secret."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from apprise import Apprise, NotifyFormat, NotifyType
from apprise.plugins import url_to_dict

from streaming.alerts.decisions import Decided
from streaming.alerts.firing import FIRING, GONE
from streaming.alerts.text import visible
from streaming.exceptions import SetupError

__all__ = ["Message", "Outcome", "Target", "message_of", "trial_message"]

# What Apprise's own JSON, XML and form targets can carry beside title and text.
_WITH_FIELDS = frozenset({"json", "jsons", "xml", "xmls", "form", "forms"})

_HTTP_STATUS = re.compile(r"error=(\d{3})")

_TYPES = {"info": NotifyType.INFO, "warning": NotifyType.WARNING, "critical": NotifyType.FAILURE}


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        title: One line.
        body: Some lines of text.
        kind: Apprise's type, which many services show as a colour or a sign.
        fields: The same by name, for targets that take fields.
    """

    title: str
    body: str
    kind: NotifyType
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt.

    Attributes:
        reason: Why it failed, without secrets; None when the target took it.
        duration_ms: How long it took.
    """

    reason: str | None
    duration_ms: int


class Target:
    """One target. `send` is for one thread at a time.

    Attributes:
        name: Its name in the settings.
    """

    def __init__(self, name: str, url: str, timeout_ms: int) -> None:
        """Check the URL; nothing is sent.

        Raises:
            SetupError: It is no URL that Apprise knows; the text names the target, not the URL.
        """
        _listen()
        self.name = name
        self._secrets = _parts_of(url)
        given: dict[str, Any] | None = url_to_dict(url, secure_logging=True)  # type: ignore[no-untyped-call]  # untyped there
        if given:
            given.setdefault("cto", timeout_ms / 1000)
            given.setdefault("rto", timeout_ms / 1000)
        if not given or Apprise.instantiate(dict(given), suppress_exceptions=True) is None:
            message = (
                f"The URL of the alert target {name} is none that Apprise knows: correct it in the targets file or in "
                f"EVENKEEL_ALERTS__TARGETS (https://github.com/caronc/apprise/wiki lists them)."
            )
            raise SetupError(message)
        self._given = given
        self._with_fields = str(given.get("schema")).lower() in _WITH_FIELDS

    def send(self, message: Message) -> Outcome:
        """Send a message, once."""
        given = dict(self._given)
        if self._with_fields:
            given["payload"] = {**message.fields, **(given.get("payload") or {})}
        began = time.monotonic()
        _SAID.lines = []
        try:
            service = Apprise.instantiate(given, suppress_exceptions=True)
            taken = service is not None and bool(
                service.notify(
                    body=message.body, title=message.title, notify_type=message.kind, body_format=NotifyFormat.TEXT
                )
            )
        except Exception as error:  # noqa: BLE001 - a hundred plug-ins of others; none of them may end the alerter
            taken = False
            _SAID.lines.append(type(error).__name__)
        lines, _SAID.lines = _SAID.lines, []
        duration = round((time.monotonic() - began) * 1000)
        return Outcome(None if taken else self._reason(lines), duration)

    def _reason(self, lines: list[str]) -> str:
        said = next((line for line in reversed(lines) if line.strip()), "")
        if found := _HTTP_STATUS.search(said):
            code = int(found[1])
            known = code in {status.value for status in HTTPStatus}
            return f"the target answered HTTP {code}" + (f" {HTTPStatus(code).phrase}" if known else "")
        if "onnection error" in said or not said:
            return "the target could not be reached, or did not answer in time"
        for secret in self._secrets:
            said = said.replace(secret, "…")
        return visible(said)


def message_of(decided: Decided) -> Message:
    """What people are told of a transition."""
    group = visible(decided.group_id, 80) if decided.group_id is not None else decided.cluster
    title = f"[{decided.state}] {decided.rule}: {group} ({decided.severity})"
    firing = decided.state == FIRING
    ended = {GONE: "What this alert spoke of is gone. It was: "}.get(decided.state, "This holds no longer: ")
    lines = [decided.message if firing else f"{ended}{decided.message}", ""]
    shown = {
        "cluster": decided.cluster,
        "group": None if decided.group_id is None else visible(decided.group_id),
        "topic": None if decided.topic is None else visible(decided.topic),
        "partition": decided.partition,
        "since": _utc(decided.since),
        "as of": _utc(decided.time) + (", found late" if decided.late else "") if decided.time is not None else None,
        "labels": ", ".join(f"{name}={value}" for name, value in decided.labels) or None,
        "id": decided.transition_id,
        "alert": decided.alert_id,
    }
    lines += [f"{name}: {value}" for name, value in shown.items() if value is not None]
    kind = _TYPES[decided.severity] if firing else NotifyType.SUCCESS
    return Message(title, "\n".join(lines), kind, _fields(decided))


def trial_message(cluster: str) -> Message:
    """A message that says that messages arrive."""
    text = f"This is a test of Evenkeel's alerts for the cluster {cluster}. Nothing is wrong."
    fields = {"evenkeel": "test", "state": "test", "cluster": cluster}
    return Message("[test] Evenkeel: messages arrive", text, NotifyType.INFO, fields)


def _fields(decided: Decided) -> dict[str, str]:
    named = {
        "id": decided.transition_id,
        "alert": decided.alert_id,
        "rule": decided.rule,
        "severity": decided.severity,
        "state": decided.state,
        "cluster": decided.cluster,
        "group_id": None if decided.group_id is None else visible(decided.group_id),
        "topic": None if decided.topic is None else visible(decided.topic),
        "partition": decided.partition,
        "since": _utc(decided.since),
        "round": decided.round,
        "round_time": None if decided.time is None else _utc(decided.time),
        "late": "true" if decided.late else "false",
        "value": decided.value,
        "text": decided.message,
        **{f"label_{name}": value for name, value in decided.labels},
    }
    return {name: str(value) for name, value in named.items() if value is not None}


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parts_of(url: str) -> list[str]:
    """Whatever of a URL could be a secret: each piece between its separators, the longest first."""
    pieces = {piece for piece in re.split(r"[/:@?&=#,]+", url) if len(piece) >= 3}
    return sorted({url, *pieces, *(unquote(piece) for piece in pieces)}, key=len, reverse=True)


class _Said(threading.local):
    """What Apprise says while this thread sends: it tells the reason of a failure in its log only."""

    def __init__(self) -> None:
        self.lines: list[str] = []


_SAID = _Said()


class _Listener(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _SAID.lines.append(record.getMessage())


def _listen() -> None:
    """Take Apprise's log for ourselves: its lines can hold parts of a URL."""
    log = logging.getLogger("apprise")
    if not any(isinstance(handler, _Listener) for handler in log.handlers):
        for handler in list(log.handlers):
            log.removeHandler(handler)
        log.addHandler(_Listener())
    log.setLevel(logging.WARNING)
    log.propagate = False
