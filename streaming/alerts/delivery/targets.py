"""The targets of alerts: named Apprise URLs, and what a message becomes there.

An incident is opened once, closed once, never duplicated. Without a key of ours most plug-ins of Apprise derive one
from the title, which includes the state: the end of an alert would then be another incident than its beginning. Our key
overrides one in a target's URL, which would be the same for every alert. The rules here were read from the plug-ins of
Apprise 2.2.0; the tests check the requests that they send.

Names are plain text: nothing in a message acts at a target, whatever the name of a group or a topic contains. Mentions,
tags and links act in many services, in each by its own rules, and also where Apprise sends a text as it is: a
zero-width space separates the characters that would act together, everywhere. Marks (`*`, `_`, ...) only change how a
name looks, and some services turn a bare host name (`a.example`) into a link to that host: both remain.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from apprise import Apprise, NotifyBase, NotifyFormat
from apprise.conversion import convert_between
from apprise.plugins import url_to_dict

from streaming.alerts.delivery.messages import (
    CLOSES,
    GOES_ON,
    INCIDENTS,
    OPENS,
    PEOPLE,
    RECORDS,
    AttemptOutcome,
    Message,
)
from streaming.exceptions import SetupError


@dataclass(frozen=True, slots=True)
class _Incident:
    """A service that opens incidents and closes them by a key.

    Attributes:
        key: Argument of the plug-in that takes the key.
        opens: Argument `action` of a message that opens one.
        closes: The same of one that closes it.
    """

    key: str
    opens: str
    closes: str


_TRIGGER = _Incident("dedup", "trigger", "resolve")

_INCIDENTS: Final[Mapping[str, _Incident]] = {
    "firehydrant": _TRIGGER,  # idempotency_key, status OPEN and CLOSED
    "goalert": _Incident("dedup", "trigger", "close"),  # dedup, action close
    "goalerts": _Incident("dedup", "trigger", "close"),
    "ilert": _TRIGGER,  # alertKey, eventType ALERT and RESOLVE
    "incidentio": _TRIGGER,  # deduplication_key, status firing and resolved
    "pagerduty": _TRIGGER,  # dedup_key, event_action trigger and resolve
    "pagertree": _Incident("thirdparty", "create", "resolve"),  # id, event_type
    "signl4": _Incident("external_id", "trigger", "resolve"),  # X-S4-ExternalID, X-S4-Status resolved
    # entity_id; "map" turns the severity into INFO (which opens nothing), WARNING or CRITICAL, "recovery" is RECOVERY.
    "splunk": _Incident("entity_id", "map", "recovery"),
    "squadcast": _TRIGGER,  # event_id, status trigger and resolve
    "victorops": _Incident("entity_id", "map", "recovery"),
}

# Every request opens an incident or rings, and the plug-in cannot name an open one: an end would ring once more.
_ONLY_OPENS: Final = frozenset({"betterstack", "lfg", "spike"})


def arguments_of(schema: str, message: Message) -> dict[str, Any] | None:
    """A plug-in's arguments for a message, in addition to those of its URL; None for one that is not to be sent.

    Args:
        schema: Schema of the target's URL, in lower case.
        message: The message.
    """
    if message.incident is None:
        return {}
    if schema in _ONLY_OPENS:
        if message.act == OPENS:
            return {}
        return None
    service = _INCIDENTS.get(schema)
    if service is not None:
        if message.act == GOES_ON:
            return None
        return {service.key: message.incident, "action": service.closes if message.act == CLOSES else service.opens}
    # Jira's plug-in closes only what the same object opened, by an id that it keeps in memory; otherwise it sends
    # nothing and reports success. So each state is an alert of its own.
    if schema == "jira":
        return {"action": "new"}
    return {}


# U+200B, as the libraries of chat services put it into "@everyone". It is invisible, and no name can contain one of its
# own: unprintable characters are escaped before.
_PART = "\u200b"

_ACTIVE = re.compile(
    r"""
      @(?=\S)                     # @everyone, @here, @channel, @room, @all, @user
    | <(?=\S)                     # HTML; <@U1>, <!channel>, <users/all>, <at user_id="all">, <url|text>
    | \](?=[(\[:])                # [text](link), [text][name], [name]: link
    | \[(?=CQ:)                   # [CQ:at,qq=all]
    | \((?=(?:met|rol|chn)\))     # (met)all(met)
    | :(?=//)                     # a link that is shown as itself still makes a service fetch it for a preview
    | \bwww(?=\.)
    """,
    re.VERBOSE | re.IGNORECASE,
)

LINK_LINES: Final = frozenset({"page", "runbook"})
"""Names of the lines of a message that have nothing but a link of ours."""


def inert(text: str) -> str:
    """The text without anything that mentions, links or marks up; looks the same."""
    return _ACTIVE.sub(lambda found: found[0] + _PART, text)


def written(service: NotifyBase, title: str, body: str, links: Sequence[str] = ()) -> tuple[str, str, NotifyFormat]:
    """Title and body in the format that a service reads.

    Args:
        service: Its plug-in.
        title: One line of text.
        body: Lines of text.
        links: Addresses in the body that stay as they are: those of our settings, never a name's.

    Returns:
        Both, and the format for `notify`, which must not convert again: some plug-ins skip that step.
    """
    lines = []
    for line in body.split("\n"):
        name, _, rest = line.partition(": ")
        lines.append(line if name in LINK_LINES and rest in links else inert(line))
    reads = service.resolve_format(NotifyFormat.TEXT)
    as_read: Callable[[str], str] = partial(convert_between, NotifyFormat.TEXT, reads)
    title = inert(title)
    # Without a title of its own the service gets it as a part of the body.
    return as_read(title) if service.title_maxlen <= 0 else title, as_read("\n".join(lines)), reads


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
        elif self._schema in _INCIDENTS or self._schema in _ONLY_OPENS:
            self.reads = INCIDENTS

    def send(self, message: Message) -> AttemptOutcome:
        """Send a message, once."""
        found = arguments_of(self._schema, message)
        if found is None:
            return AttemptOutcome("its incident goes on there, or can only be opened", 0, unsent=True)
        began = time.monotonic()
        _SAID.lines = []
        try:
            taken = self._send({**self._given, **found}, message)
        except Exception:  # noqa: BLE001 - a hundred third-party plug-ins; none of them may end the alerter
            taken = False
        lines, _SAID.lines = _SAID.lines, []
        duration = round((time.monotonic() - began) * 1000)
        return AttemptOutcome(None if taken else _reason(lines), duration)

    def _send(self, given: dict[str, Any], message: Message) -> bool:
        if self.reads == RECORDS:
            given["payload"] = {**message.fields, **(given.get("payload") or {})}
        service = Apprise.instantiate(given, suppress_exceptions=True)
        if service is None:
            return False
        if self.reads == RECORDS:
            title, body, form = message.title, message.body, NotifyFormat.TEXT
            return bool(service.notify(title=title, body=body, notify_type=message.kind, body_format=form))
        title, body, form = written(service, message.title, message.body, message.links)
        return bool(
            service.notify(title=title, body=body, notify_type=message.kind, body_format=form, body_passthrough=False)
        )


def _reason(lines: Sequence[str]) -> str:
    """Why a target took nothing, by what Apprise logged: the log itself may contain parts of the URL."""
    if found := _HTTP_STATUS.search("\n".join(lines)):
        code = int(found[1])
        known = code in {status.value for status in HTTPStatus}
        return f"the target answered HTTP {code}" + (f" {HTTPStatus(code).phrase}" if known else "")
    return "the target could not be reached, or did not take it in time"


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
