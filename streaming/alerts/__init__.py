"""Alerts: rules over the tables, judged once per round in the rounds' own time, delivered at least once."""

from __future__ import annotations

from streaming.alerts.run import Alerter, check_settings, main, open_targets, send_test

__all__ = ["Alerter", "check_settings", "main", "open_targets", "send_test"]
