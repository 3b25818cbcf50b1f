"""Alerts: the rules file, and whether each target's address is one that can be used. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator

from streaming.alerts import check_settings, open_targets
from streaming.config import Settings
from streaming.doctor.line import Line
from streaming.exceptions import SetupError


def look_at_alerts(settings: Settings) -> Iterator[Line]:
    """All looks at rules and targets."""
    told: list[str] = []
    try:
        check_settings(settings, told.append)
    except SetupError as error:
        yield Line("alerts", "rules and targets", "wrong", str(error))
        return
    for said in told:
        word, colon, rest = said.partition(": ")
        if colon and word == "targets":
            continue
        if colon and word == "rules":
            yield Line("alerts", "rules", "ok" if rest != "none" else "warn", f"{rest.count(',') + 1} rules: {rest}")
        else:
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
