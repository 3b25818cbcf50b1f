"""Alerts: rules over the tables, judged once per round in the rounds' own time, delivered at least once."""

from __future__ import annotations

from streaming.alerts.commands import AlerterWork, check_settings, main, open_targets, print_preview, send_test
from streaming.alerts.exceptions import RulesError
from streaming.alerts.judging.chunks import COLUMNS as STANDING_COLUMNS
from streaming.alerts.judging.chunks import Chunk, FeedRound, Standing
from streaming.alerts.judging.conditions import Conditions
from streaming.alerts.judging.firing import FiringState, Transition, passed_ms, step
from streaming.alerts.judging.rows import Feed
from streaming.alerts.rules.expressions import connect_for_many_rows
from streaming.alerts.rules.rules import LOSES_DATA, TIME_BEHIND, Rule, load_rules
from streaming.alerts.run import Alerter
from streaming.alerts.transitions import FIRING, PENDING

__all__ = [
    "FIRING",
    "LOSES_DATA",
    "PENDING",
    "STANDING_COLUMNS",
    "TIME_BEHIND",
    "Alerter",
    "AlerterWork",
    "Chunk",
    "Conditions",
    "Feed",
    "FeedRound",
    "FiringState",
    "Rule",
    "RulesError",
    "Standing",
    "Transition",
    "check_settings",
    "connect_for_many_rows",
    "load_rules",
    "main",
    "open_targets",
    "passed_ms",
    "print_preview",
    "send_test",
    "step",
]
