"""Templates of messages, filled in with a row's values: names are text, whatever they contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from streaming.terminal import visible

__all__ = ["fill", "placeholders"]

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")

# Numbers that identify something, and are searched for elsewhere: printed without separators.
_NAMES = re.compile(r"(_id|partition|round|generation)$")


def placeholders(template: str) -> frozenset[str]:
    """Names between braces; everything else in a template is literal."""
    return frozenset(_PLACEHOLDER.findall(template))


def fill(template: str, values: Mapping[str, object]) -> str:
    """Fill in a template; an unknown value is written as "unknown"."""
    put: Callable[[re.Match[str]], str] = lambda found: _named(found[1], values.get(found[1]))  # noqa: E731
    return _PLACEHOLDER.sub(put, template)


def _named(name: str, value: object) -> str:
    return str(value) if isinstance(value, int) and _NAMES.search(name) else _shown(value)


def _shown(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, dict):
        return _shown(value.get("detail") or value.get("finding") or ", ".join(map(_shown, value.values())))
    if isinstance(value, list):
        return visible("; ".join(map(_shown, value))) if value else "none"
    return visible(str(value))
