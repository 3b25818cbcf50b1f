"""The incident of a message, as each service identifies it: opened once, closed once, never duplicated.

Without a key of ours most plug-ins of Apprise derive one from the title, which includes the state: the end of an alert
would then be another incident than its beginning. Our key overrides one in a target's URL, which would be the same for
every alert. The rules here were read from the plug-ins of Apprise 2.2.0; the tests check the requests that they send.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from streaming.alerts.delivery.messages import CLOSES, OPENS, Message


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


@dataclass(frozen=True, slots=True)
class Unsent:
    """A message that is not to be sent to a service, with the reason."""

    reason: str


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

# No incidents, but an identity that keeps the states of one alert together.
_THREADS: Final[Mapping[str, str]] = {
    "bark": "notification_id",  # the notification is replaced
    "barks": "notification_id",
    "gchat": "thread_key",  # the answers go to the first message's thread
    "hassio": "nid",  # the notification is replaced
    "hassios": "nid",
}

# The title is the topic: a thread of its own, whose name must be the same in every state.
_TOPICS: Final = frozenset({"zulip"})

# RFC 5322, 3.6.4: mails that refer to the same message are shown as one thread.
_MAIL: Final = frozenset({"mailto", "mailtos"})


def has_incidents(schema: str) -> bool:
    """Whether messages to a service open and close incidents there (schema of its URL, in lower case)."""
    return schema in _INCIDENTS or schema in _ONLY_OPENS


def title_and_body(schema: str, message: Message) -> tuple[str, str]:
    """Title and body as a service shows them (schema of its URL, in lower case)."""
    if schema in _TOPICS:
        return message.subject, f"{message.state}: {message.body}"
    return message.title, message.body


def arguments_of(schema: str, given: Mapping[str, Any], message: Message) -> dict[str, Any] | Unsent:
    """A plug-in's arguments for a message, in addition to those of its URL.

    Args:
        schema: Schema of the target's URL, in lower case.
        given: Arguments from the URL.
        message: The message.
    """
    if message.incident is None:
        return {}
    if schema in _ONLY_OPENS:
        a_log = schema == "betterstack" and given.get("host")
        return {} if a_log or message.act == OPENS else Unsent("this service can be sent only the start of an incident")
    service = _INCIDENTS.get(schema)
    if service is not None:
        if message.act not in (OPENS, CLOSES):
            return Unsent("other alerts of its incident are still firing")
        return {service.key: message.incident, "action": service.closes if message.act == CLOSES else service.opens}
    if schema in _THREADS:
        return {_THREADS[schema]: given.get(_THREADS[schema]) or message.incident}
    if schema in _MAIL:
        return {"headers": {"References": f"<{message.incident}@evenkeel>", **(given.get("headers") or {})}}
    if schema == "jira":
        # The plug-in closes only what the same object opened, by an id that it keeps in memory; otherwise it sends
        # nothing and reports success. So each state is an alert of its own, recognisable by its entity.
        return {"action": "new", "entity": message.incident}
    return {}
