"""Templates of messages and labels: text in which `{name}` stands for a value, and `{name:noun}` for a count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from streaming.terminal import visible

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?::([a-z]+))?\}")

# Numbers that identify something, and are searched for elsewhere: printed without separators.
_IDENTIFIERS = re.compile(r"(_id|partition|round|generation)$")


def placeholders(template: str) -> frozenset[str]:
    """Names between braces; everything else in a template is literal."""
    return frozenset(name for name, _ in _PLACEHOLDER.findall(template))


def fill(template: str, values: Mapping[str, object]) -> str:
    """Fill in a message's template with a row's values: names are text, whatever they contain; NULL is "unknown"."""

    def put(found: re.Match[str]) -> str:
        name, noun = found.groups()
        text = _named(name, values.get(name))
        return text if noun is None else f"{text} {noun}{'' if text == '1' else 's'}"

    return _PLACEHOLDER.sub(put, template)


def _named(name: str, value: object) -> str:
    return str(value) if isinstance(value, int) and _IDENTIFIERS.search(name) else _text(value)


def _text(value: object) -> str:
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
        return _text(value.get("detail") or value.get("finding") or ", ".join(map(_text, value.values())))
    if isinstance(value, list):
        return visible("; ".join(map(_text, value))) if value else "none"
    return visible(str(value))
