"""The commands of the alerter: run it, check its settings, try its targets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from streaming.alerts.delivery.messages import trial_message
from streaming.alerts.fleet import ALERTS_GRACE_S, AlerterFleet, open_targets
from streaming.alerts.routes import Routing
from streaming.alerts.rules.rules import MOST_FILES, SILENT_S, UNJUDGED_S, Rule, load_rules
from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.lifecycle import exit_code, set_up_log, stop_signals


def check_settings(settings: Settings, say: Callable[[str], None]) -> None:
    """Read rules and targets, and print them; nothing is sent.

    Raises:
        SetupError: A rule or a target is wrong.
    """
    every, targets = load_rules(settings.alerts.rules, disabled_too=True), open_targets(settings)
    rules = [rule for rule in every if rule.enabled]
    say(f"rules: {', '.join(rule.name for rule in rules) or 'none'}")
    if off := [rule.name for rule in every if not rule.enabled]:
        say(f"off: {', '.join(off)}")
    for sentence in _unwatched(rules):
        say(sentence)
    Routing(settings.alerts, settings.owners, targets)
    say(f"targets: {', '.join(targets) or 'none'}")


def _unwatched(rules: Sequence[Rule]) -> list[str]:
    """Conditions that would harm all rules, but that no rule reports."""
    read = {column for rule in rules for column in rule.when.columns}
    what = {
        SILENT_S: "no more rounds arrive",
        UNJUDGED_S: "the tables cannot be evaluated",
        MOST_FILES: "the lake is not maintained",
    }
    return [f"no rule reads {name}: nobody is alerted when {then}" for name, then in what.items() if name not in read]


def send_test(settings: Settings, say: Callable[[str], None]) -> int:
    """Send one test message to each target, and print the outcome; returns the exit code.

    Raises:
        SetupError: There is no target, or one is wrong.
    """
    targets = open_targets(settings)
    if not targets:
        message = (
            "There is no alert target to test: name one in alerts.targets_file, or EVENKEEL_ALERTS__TARGETS__<NAME>."
        )
        raise SetupError(message)
    failed = 0
    for name, target in targets.items():
        outcome = target.send(trial_message(settings.cluster))
        failed += outcome.reason is not None
        say(f"{name}: {'took it' if outcome.reason is None else outcome.reason} ({outcome.duration_ms} ms)")
    return 1 if failed else 0


def main(clusters: Sequence[Settings]) -> int:
    """Run the alerters of these clusters until SIGINT or SIGTERM; returns the exit code."""
    set_up_log({"urllib3": logging.ERROR})  # its warnings contain paths of URLs
    return exit_code(lambda: _run(AlerterFleet(clusters)))


def _run(fleet: AlerterFleet) -> None:
    with stop_signals() as stop:
        fleet.start()
        stop.wait()
    fleet.stop(ALERTS_GRACE_S)
