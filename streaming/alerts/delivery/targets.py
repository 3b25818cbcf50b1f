"""The targets of alerts: named Apprise URLs, and the outcome of sending a message there, without any secret."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from apprise import Apprise, NotifyFormat
from apprise.plugins import url_to_dict

from streaming.alerts.delivery.incidents import Unsent, arguments_of, has_incidents, title_and_body
from streaming.alerts.delivery.inert import written
from streaming.alerts.delivery.messages import Message
from streaming.alerts.delivery.outcome import INCIDENTS, PEOPLE, RECORDS, AttemptOutcome
from streaming.exceptions import SetupError
from streaming.terminal import visible

# Apprise's own JSON, XML and form targets, which can carry fields beside title and text.
_WITH_FIELDS = frozenset({"json", "jsons", "xml", "xmls", "form", "forms"})

_HTTP_STATUS = re.compile(r"error=(\d{3})")


class DeliveryTarget:
    """One target. `send` is for one thread at a time.

    Attributes:
        name: Its name in the settings.
        reads: PEOPLE, INCIDENTS or RECORDS.
    """

    def __init__(self, name: str, url: str, timeout_ms: int) -> None:
        """Check the URL; nothing is sent.

        Raises:
            SetupError: Apprise does not know the URL; the text names the target, not the URL.
        """
        _listen()
        self.name = name
        self._secrets = _parts_of(url)
        given: dict[str, Any] | None = url_to_dict(url, secure_logging=True)  # type: ignore[no-untyped-call]  # untyped there
        if given:
            given.setdefault("cto", timeout_ms / 1000)
            given.setdefault("rto", timeout_ms / 1000)
            # A service refuses a message that is too long, again and again: its end holds ids.
            given.setdefault("overflow", "truncate")
        if not given or Apprise.instantiate(dict(given), suppress_exceptions=True) is None:
            message = (
                f"The URL of the alert target {name} is not one that Apprise knows: correct it in the targets file or "
                f"in EVENKEEL_ALERTS__TARGETS (https://github.com/caronc/apprise/wiki lists them)."
            )
            raise SetupError(message)
        self._given = given
        self._schema = str(given.get("schema")).lower()
        self.reads = PEOPLE
        if self._schema in _WITH_FIELDS:
            self.reads = RECORDS
        elif has_incidents(self._schema):
            self.reads = INCIDENTS

    def send(self, message: Message) -> AttemptOutcome:
        """Send a message, once."""
        found = arguments_of(self._schema, self._given, message)
        if isinstance(found, Unsent):
            return AttemptOutcome(found.reason, 0, unsent=True)
        began = time.monotonic()
        _SAID.lines = []
        try:
            taken = self._send({**self._given, **found}, message)
        except Exception as error:  # noqa: BLE001 - a hundred third-party plug-ins; none of them may end the alerter
            taken = False
            _SAID.lines.append(type(error).__name__)
        lines, _SAID.lines = _SAID.lines, []
        duration = round((time.monotonic() - began) * 1000)
        return AttemptOutcome(None if taken else self._reason(lines), duration)

    looked_at: Final = "its address is of a form that can be used"
    """What `status` has found where it finds no trouble."""

    def status(self) -> None:
        """Nothing: a service cannot be asked without sending something."""

    def shown(self, message: Message) -> str:
        """A message as this target would get it, as lines of text; without the URL."""
        if self.reads == RECORDS:
            fields = {"title": message.title, "message": message.body, "type": message.kind.value, **message.fields}
            return json.dumps(fields, indent=2, ensure_ascii=False)
        service = Apprise.instantiate(dict(self._given), suppress_exceptions=True)
        title, body = title_and_body(self._schema, message)
        if service is not None:
            title, body, _ = written(self._schema, service, title, body, message.links)
        found = arguments_of(self._schema, self._given, message)
        also = [f"({found.reason})"] if isinstance(found, Unsent) else [f"({k}: {v})" for k, v in found.items()]
        return "\n".join([title, body, *also])

    def _send(self, given: dict[str, Any], message: Message) -> bool:
        if self.reads == RECORDS:
            given["payload"] = {**message.fields, **(given.get("payload") or {})}
        service = Apprise.instantiate(given, suppress_exceptions=True)
        if service is None:
            return False
        title, body = title_and_body(self._schema, message)
        if self.reads == RECORDS:
            return bool(service.notify(title=title, body=body, notify_type=message.kind, body_format=NotifyFormat.TEXT))
        title, body, form = written(self._schema, service, title, body, message.links)
        return bool(
            service.notify(title=title, body=body, notify_type=message.kind, body_format=form, body_passthrough=False)
        )

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


def _parts_of(url: str) -> list[str]:
    """Every part of a URL that could be a secret: each piece between separators, the longest first."""
    pieces = {piece for piece in re.split(r"[/:@?&=#,]+", url) if len(piece) >= 3}
    return sorted({url, *pieces, *(unquote(piece) for piece in pieces)}, key=len, reverse=True)


class _Said(threading.local):
    """Apprise's log while this thread sends: the reason of a failure appears only there."""

    def __init__(self) -> None:
        self.lines: list[str] = []


_SAID = _Said()


class _Listener(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _SAID.lines.append(record.getMessage())


def _listen() -> None:
    """Capture Apprise's log: its lines can contain parts of a URL."""
    log = logging.getLogger("apprise")
    if not any(isinstance(handler, _Listener) for handler in log.handlers):
        for handler in list(log.handlers):
            log.removeHandler(handler)
        log.addHandler(_Listener())
    log.setLevel(logging.WARNING)
    log.propagate = False
