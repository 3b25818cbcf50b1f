"""HTML out of templates, in which every value is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from dashboards import format as words
from dashboards.charts.tables import table_of
from dashboards.page.board import HEALTH
from streaming.terminal import age

__all__ = ["plain", "render", "said"]

_FOLDER = Path(__file__).parent.parent / "templates" / "boards"

# Titles that appear when the pointer rests: more than this nobody reads there.
_LONGEST_TITLE = 1_000

_MARK: Final = re.compile("\ue000(-?[0-9]{1,13})([sm])\ue001")

_STYLES: Final[Mapping[str, str]] = {"s": "%H:%M:%S", "m": "%H:%M"}


def render(template: str, **values: Any) -> str:
    """Fill in a template."""
    return _environment().get_template(template).render(**values)


def said(text: str) -> Markup:
    """A text of ours, escaped, with the times in it as elements that the browser turns into the viewer's zone."""
    return Markup(_MARK.sub(_element, str(escape(text))))  # noqa: S704 - escaped in the same expression


def plain(text: str) -> str:
    """A text with its times written out in UTC, for titles and other places without elements."""
    return _MARK.sub(lambda found: f"{_moment(found[1]):{_STYLES[found[2]]}} UTC", text)


def _element(found: re.Match[str]) -> str:
    moment = _moment(found[1])
    return f'<time datetime="{moment:%Y-%m-%dT%H:%M:%SZ}" data-as="{found[2]}">{moment:{_STYLES[found[2]]}}</time>'


def _moment(ms: str) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(ms))


def _title(text: str | None) -> str:
    return plain(words.cut(text or "", _LONGEST_TITLE))


def _long(text: str | None) -> str:
    """Several lines for a title."""
    shown = plain(text or "")
    return shown if len(shown) <= _LONGEST_TITLE else f"{shown[: _LONGEST_TITLE - 1]}…"


def _seconds(value: float | None) -> str:
    return words.DASH if value is None else age(timedelta(seconds=value))


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        number=words.number,
        ratio=words.ratio,
        rate=words.rate,
        percent=words.percent,
        seconds=words.seconds,
        span=_seconds,
        cut=words.cut,
        visible=words.visible,
        title=_title,
        lines=_long,
        said=said,
        table=table_of,
        json=lambda value: json.dumps(value, separators=(",", ":"), allow_nan=False),
    )
    made.globals.update(health_words=HEALTH, DASH=words.DASH)
    return made
