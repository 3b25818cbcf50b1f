"""Alerts: rules over the tables, judged once per round in the rounds' own time, delivered at least once."""

from __future__ import annotations

from streaming.alerts.exceptions import RulesError
from streaming.alerts.fleet import ALERTS_GRACE_S, AlerterFleet, check_settings, main, open_targets, send_test
from streaming.alerts.judging.conditions import Conditions
from streaming.alerts.judging.feed import Feed
from streaming.alerts.judging.firing import FiringState, step
from streaming.alerts.rules.rules import Rule, load_rules
from streaming.alerts.run import Alerter
from streaming.alerts.transitions import FIRING, Transition

__all__ = [
    "ALERTS_GRACE_S",
    "FIRING",
    "Alerter",
    "AlerterFleet",
    "Conditions",
    "Feed",
    "FiringState",
    "Rule",
    "RulesError",
    "Transition",
    "check_settings",
    "load_rules",
    "main",
    "open_targets",
    "send_test",
    "step",
]
