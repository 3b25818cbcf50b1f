"""Alerts: rules over the tables, judged once per round in the rounds' own time, delivered at least once."""

from __future__ import annotations

from streaming.alerts.commands import check_settings, main, open_targets, send_test
from streaming.alerts.first_start import accept
from streaming.alerts.run import Alerter

__all__ = ["Alerter", "accept", "check_settings", "main", "open_targets", "send_test"]
