"""The page: `streamlit run` starts here. It only reads, and every number comes from a query in `queries/`."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from dashboards.group import group_view
from dashboards.html import board, render
from dashboards.lake import PageLake
from dashboards.overview import overview
from dashboards.view import View, head
from streaming.config import Thresholds, load_settings

_log = logging.getLogger(__name__)

_FIRST_LOOK_S = 30.0

_STYLE = """<style>
[data-testid="stHeader"], [data-testid="stDecoration"], [data-testid="stStatusWidget"], [data-testid="stToolbar"] {
  display: none !important;
}
[data-testid="stMainBlockContainer"] { padding: 22px 36px 60px; max-width: 1560px; }
[data-testid="stVerticalBlock"] { gap: 0.35rem; }
[data-testid="stTextInput"] { margin-top: 10px; }
/* A refresh must not be seen: nothing fades while it runs. */
[data-stale="true"], [data-stale="true"] * { opacity: 1 !important; transition: none !important; }
</style>"""


@st.cache_resource(show_spinner=False)
def _lake() -> PageLake:
    settings = load_settings()
    lake = PageLake(
        settings.lake,
        past=timedelta(hours=settings.page.past_hours),
        heartbeat=timedelta(milliseconds=settings.job.heartbeat_ms),
        refresh=timedelta(milliseconds=settings.page.refresh_ms),
        thresholds=Thresholds.load(settings.alerts.rules),
    )
    lake.start()
    lake.wait_for_first_look(_FIRST_LOOK_S)
    # Streamlit 1.67 collects garbage after each run of the script. Walking all loaded modules took a third to a half of
    # a refresh; they stay for good, so the collector may skip them.
    gc.collect()
    gc.freeze()
    return lake


@st.cache_resource(show_spinner=False)
def _refresh() -> timedelta:
    return timedelta(milliseconds=load_settings().page.refresh_ms)


def main() -> None:
    """One run of the script: set up the page, then leave the rest to a fragment that refreshes itself."""
    icon = Path(__file__).parent / "templates" / "icon.svg"
    st.set_page_config(page_title="Evenkeel", page_icon=str(icon), layout="wide", initial_sidebar_state="collapsed")
    st.html(_STYLE)
    if "go" in st.session_state:
        st.query_params.from_dict(st.session_state.pop("go"))
    # Only a whole run follows the address (a link, the browser's back button, the first visit). The browser also sends
    # its address with each refresh, and a refresh requested before it heard of a new address would draw the old view.
    st.session_state["address"] = st.query_params.to_dict()
    st.fragment(_guarded, run_every=_refresh())()


def _guarded() -> None:
    # A click runs only the fragment; following it needs a whole run.
    if "go" in st.session_state:
        st.rerun()
    try:
        _view()
    except Exception:  # noqa: BLE001 - people get a sentence; the log has the rest
        _log.exception("the page could not be drawn")
        note = {
            "head": "This could not be drawn.",
            "text": "The page's log has the reason. The page will try again.",
            "mild": False,
        }
        board(render("head.html.j2", clusters=[], newest=None, silent=False, notes=[note], empty=None), key="head")


def _view() -> None:
    address = st.session_state["address"]
    view = View(
        lake=_lake(),
        now=datetime.now(UTC),
        zone=_zone(),
        cluster=address.get("cluster"),
        group=address.get("group"),
        show=address.get("show"),
        span=address.get("span"),
    )
    if not head(view):
        return
    draw: Callable[[View], None] = group_view if view.group else overview
    draw(view)


def _zone() -> ZoneInfo:
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


main()
