"""Alerts: the rules file, and whether each target's address is one that can be used. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator

from streaming.alerts import check_settings, load_rules, open_targets
from streaming.config import Settings
from streaming.doctor.line import Line
from streaming.exceptions import SetupError
from streaming.plurals import counted


def look_at_alerts(settings: Settings) -> Iterator[Line]:
    """All looks at rules and targets."""
    told: list[str] = []
    try:
        check_settings(settings, told.append)
        rules = load_rules(settings.alerts.rules)
    except SetupError as error:
        yield Line("alerts", "rules and targets", "wrong", str(error))
        return
    if rules:
        text = f"{counted(len(rules), 'rule')}: {', '.join(rule.name for rule in rules)}"
        yield Line("alerts", "rules", "ok", text)
    else:
        text = "there are none, so nothing is ever alerted: write one (docs/alerts.md)."
        yield Line("alerts", "rules", "warn", text)
    for said in told:
        # (The lists of rules and targets have lines of their own, the rest is about what no rule reads.)
        if said.partition(": ")[0] not in {"rules", "targets"}:
            yield Line("alerts", "rules", "warn", f"{said}.")
    targets = open_targets(settings)
    if not targets:
        text = "there are none, so no alert is delivered. Name one in alerts.targets_file (docs/alerts.md)."
        yield Line("alerts", "targets", "warn", text)
    for name, target in targets.items():
        trouble = target.status()
        if trouble is None:
            text = f"{target.looked_at}; `evenkeel alert --test` sends a message"
            yield Line("alerts", f"target {name}", "ok", text)
        else:
            text = f"{trouble}: start it, or correct its address (docs/alerts.md#alertmanager)"
            yield Line("alerts", f"target {name}", "wrong", text)
    if settings.alerts.heartbeat_url is None:
        text = "alerts.heartbeat_url is not set: nobody outside notices when the alerter stands still (docs/alerts.md)"
        yield Line("alerts", "heartbeat", "ok", text)
