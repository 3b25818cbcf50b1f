"""The keys of a rule that say how its alerts are delivered: `targets`, `repeat_after`, `runbook_url`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from streaming.alerts.routes import RuleRoute
from streaming.alerts.rules.expressions import ExpressionError
from streaming.config import span_ms

KEYS: Final = ("targets", "repeat_after", "runbook_url")

_LEAST_MS: Final = 60_000


def route_of(given: Mapping[Any, Any]) -> RuleRoute:
    """What a rule says of its delivery.

    Raises:
        ExpressionError: A key is wrong: the reason as a clause.
    """
    return RuleRoute(
        _targets(given.get("targets")), _repeat(given.get("repeat_after")), _runbook(given.get("runbook_url"))
    )


def _targets(given: object) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        message = "targets must be a list of names of targets; an empty one sends to nobody"
        raise ExpressionError(message)
    return tuple(dict.fromkeys(given))


def _repeat(given: object) -> int | None:
    if given is None:
        return None
    try:
        span = span_ms(given) if isinstance(given, str) else 0
    except ValueError:
        span = 0
    if span < _LEAST_MS:
        message = f"repeat_after {given!r} is not a duration of a minute or more (30m, 4h, 1d)"
        raise ExpressionError(message)
    return span


def _runbook(given: object) -> str | None:
    if given is None:
        return None
    try:
        parts = urlsplit(given) if isinstance(given, str) else None
    except ValueError:
        parts = None
    usable = parts is not None and parts.scheme in {"http", "https"} and bool(parts.netloc)
    if not usable or any(c.isspace() or not c.isprintable() for c in str(given)):
        message = "runbook_url must be a URL that begins with http:// or https://, without blanks"
        raise ExpressionError(message)
    return str(given)
