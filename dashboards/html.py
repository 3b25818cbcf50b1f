"""Our own HTML on a Streamlit page, updated without flicker.

`st.html` replaces the whole text, and so loses selection, hovering and scrolling; this component changes only the nodes
that differ. The HTML comes only from our templates, in which Jinja escapes every value.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dashboards import format as words
from dashboards.theme import css_variables

__all__ = ["board", "render"]

_FOLDER = Path(__file__).parent / "templates"


def render(template: str, **values: Any) -> str:
    """Fill in a template."""
    return _environment().get_template(template).render(**values)


def board(html: str, key: str, place: str = "") -> None:
    """Show HTML; links with `data-go` change the address without loading the page again.

    Args:
        html: The result of `render`.
        key: Name of this board, the same at each refresh.
        place: The place that the viewer looks at; when it changes, the page scrolls to its top.
    """
    mount = _component()
    data = {"html": html, "place": place, "went": st.session_state.get("went", 0)}
    mount(data=data, key=key, on_go_change=lambda: _go(key), width="stretch", height="content")


def _go(key: str) -> None:
    # (Streamlit 1.67 loses the board for a moment when a click and a refresh coincide; the board repeats its request
    # until `went` shows that it was received. A repetition may arrive after a later click, which then wins.)
    asked = (st.session_state.get(key) or {}).get("go")
    if isinstance(asked, dict) and asked.get("at", 0) > st.session_state.get("went", 0):
        st.session_state["went"] = asked["at"]
        st.session_state["go"] = {
            name: str(asked[name]) for name in ("cluster", "group", "show", "span") if asked.get(name)
        }


# (Cached, because Streamlit logs an error if each run of the script registers the component again.)
@cache
def _component() -> Any:
    css = (_FOLDER / "board.css").read_text(encoding="utf-8").replace("/* palette */", css_variables())
    script = (_FOLDER / "board.js").read_text(encoding="utf-8")
    return st.components.v2.component("evenkeel_board", css=css, js=script, html='<div class="board"></div>')


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
        seconds=words.seconds,
        cut=words.cut,
        visible=words.visible,
        key=words.key_of,
    )
    return made
