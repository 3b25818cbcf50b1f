"""Alerts: what fires, what fired, what was sent where, and the rules behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.alert_rows import attempts, history, owed, severity_of, states, targets
from dashboards.boards.parts.chips import chips, cluster_chips
from dashboards.boards.parts.notes import muted_rows, mutes
from dashboards.boards.parts.past import ranges, within
from dashboards.format import Row
from dashboards.page.board import Board, NotThereError, View
from dashboards.page.rules import RuleText
from dashboards.spans import RANGES

__all__ = ["ALERTS", "RULE"]

_SEVERITIES: Final = ("critical", "warning", "info")

# Rows of a table; the newest are what people look for, the rest is counted.
_SHOWN: Final = 100
_MOST: Final = 2_000


def _alerts(view: View) -> Mapping[str, Any]:
    severity = view.address.one_of("severity", _SEVERITIES)
    now = view.ask("alert_states", cluster=view.cluster, rule=None)
    told = view.rules.read()
    counted = Counter((row["rule"], row["state"]) for row in now)
    named = {rule.name for rule in told.rules}
    return {
        **_panels(view, now, None, severity),
        "clusters": cluster_chips(view),
        "severities": chips(view, "severity", _SEVERITIES, severity),
        "targets": targets(view.ask("targets", cluster=view.cluster), view.clock),
        "rules": [_listed(rule, counted, view) for rule in told.rules],
        "unlisted": sorted({row["rule"] for row in now if row["rule"] and row["rule"] not in named}),
        "shipped": told.shipped,
        "problem": told.problem or "",
    }


def _rule(view: View) -> Mapping[str, Any]:
    name = view.address.path[1]
    told = view.rules.read()
    rule = next((rule for rule in told.rules if rule.name == name), None)
    now = view.ask("alert_states", cluster=view.cluster, rule=name)
    panels = _panels(view, now, name, "")
    known = rule is not None or panels["history"] or panels["reading"]
    if not known and not view.ask("alert_states", cluster=None, rule=name):
        message = f"No alert rule is called {words.cut(name, 120)}, and no alert of that name is in the tables."
        raise NotThereError(message)
    return {
        **panels,
        "name": name,
        "rule": rule,
        "health": severity_of({"severity": rule.severity}) if rule else 1,
        "problem": told.problem or "",
        "clusters": cluster_chips(view),
        "all": view.address.link("alerts", cluster=view.cluster),
    }


def _panels(view: View, now: Sequence[Row], rule: str | None, severity: str) -> dict[str, Any]:
    """What both boards show: alerts of now and of a time, and their deliveries."""
    span = view.address.range(view.now)
    asked = {"cluster": view.cluster, "rule": rule, "most": _MOST}
    fired, sent = within(view, span, "alert_history", **asked), within(view, span, "deliveries", **asked)

    def wanted(rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if not severity or row["severity"] == severity]

    firing = wanted([row for row in now if row["state"] == "firing"])
    pending = wanted([row for row in now if row["state"] == "pending"])
    past, tried = wanted(fired or ()), wanted(sent or ())
    waiting = wanted(view.ask("owed", cluster=view.cluster, rule=rule, since=view.since, most=_MOST))
    return {
        "ranges": ranges(view, span, RANGES),
        "reading": fired is None or sent is None,
        "firing": states(firing[:_SHOWN], view, muted_rows(firing[:_SHOWN], view)),
        "mutes": mutes(view, rule),
        "fires": len(firing),
        "pending": states(pending[:_SHOWN], view),
        "pends": len(pending),
        "history": history(past[:_SHOWN], frozenset(row["alert_id"] for row in firing), view),
        "happened": _count(len(past)),
        "attempts": attempts(tried[:_SHOWN], view),
        "tried": _count(len(tried)),
        "owed": owed(waiting[:_SHOWN], view),
        "owes": _count(len(waiting)),
        "shown": _SHOWN,
        "many_clusters": len(view.ask("rounds")) > 1,
    }


def _count(rows: int) -> str:
    return words.number(rows) if rows < _MOST else f"{words.number(rows)} or more"


def _listed(rule: RuleText, counted: Mapping[tuple[str, str], int], view: View) -> dict[str, Any]:
    return {
        "name": rule.name,
        "enabled": rule.enabled,
        "href": view.address.link("alerts", rule.name, cluster=view.cluster),
        "severity": rule.severity,
        "health": severity_of({"severity": rule.severity}),
        "view": rule.view,
        "when": rule.when,
        "hold": rule.hold,
        "firing": counted.get((rule.name, "firing"), 0),
        "pending": counted.get((rule.name, "pending"), 0),
    }


ALERTS = Board(
    path=("alerts",),
    template="alerts.html.j2",
    fill=_alerts,
    title="Alerts · Evenkeel",
    word="Alerts",
    parameters=frozenset({"range", "from", "to", "severity"}),
    span="24h",
)

RULE = Board(
    path=("alerts", "{rule}"),
    template="rule.html.j2",
    fill=_rule,
    title="{rule} · Evenkeel",
    parameters=frozenset({"range", "from", "to"}),
    span="24h",
)
