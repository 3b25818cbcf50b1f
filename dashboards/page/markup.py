"""HTML out of templates, in which every value is escaped, and the page's style, script and libraries.

Ours are in `static/`; the libraries' are in `static/vendor/`, which is not in the repository: `conf/scripts.toml` has
their versions and hashes, and set-up or the build of the wheel fetches them. Without them the page works, but does not
refresh itself and has no charts.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from dashboards import format as words
from dashboards.charts import table_of
from dashboards.page.board import HEALTH
from streaming.terminal import age

_log = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent.parent / "templates" / "boards"

# Titles that appear when the pointer rests: more than this nobody reads there.
_LONGEST_TITLE = 1_000

_FILTERS: Final = ("number", "ratio", "rate", "percent", "seconds", "size", "visible", "names", "counted", "cause")

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
    if len(shown) <= _LONGEST_TITLE:
        return shown
    return f"{shown[: _LONGEST_TITLE - 1]}…"


@words.known
def _span(value: float | timedelta) -> str:
    """A length of time, also as s: "3 min"."""
    return age(value if isinstance(value, timedelta) else timedelta(seconds=value))


def _short(length: timedelta | None) -> str:
    """A length of time with hundredths of a second where it is short: "0.04 s"."""
    if length is None or length < timedelta(0):
        return words.DASH
    if length < timedelta(seconds=10):
        return f"{length.total_seconds():.2f} s"
    return age(length)


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
        **{name: getattr(words, name) for name in _FILTERS},
        span=_span,
        cut=lambda text, *most: words.cut(text or "", *most),
        time=lambda moment: said(words.time(moment)),
        minute=lambda moment: said(words.time(moment, exact=False)),
        key=lambda row: f"{row['cluster']}/{words.key_of(row['group_id'])}",
        unassigned=lambda row: words.between(
            row["unassigned_partition_seconds_min"], row["unassigned_partition_seconds_max"], words.seconds
        ),
        interval=lambda ms: words.DASH if ms is None else f"{ms / 1000:g} s",
        short=_short,
        title=_title,
        lines=_long,
        said=said,
        table=table_of,
        json=lambda value: json.dumps(value, separators=(",", ":"), allow_nan=False),
    )
    made.globals.update(health_words=HEALTH, words=words, DASH=words.DASH)
    return made


STATIC: Final = Path(__file__).parent.parent / "static"
"""Folder of the page's own style, scripts and libraries, whose files are at `static/`."""


@cache
def asset(file: str) -> str:
    """The address of a file below the root; "" for a library that was not fetched."""
    if (STATIC / file).is_file():
        return f"static/{file}"
    _log.warning("%s is missing, so the page neither refreshes itself nor draws charts: run `make setup`.", file)
    return ""
