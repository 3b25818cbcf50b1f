"""`evenkeel backtest`: what rules would have alerted on in the past, by the alerter's own evaluation."""

from __future__ import annotations

from streaming.backtest.run import Occurrence, Replay, print_backtest, replay

__all__ = ["Occurrence", "Replay", "print_backtest", "replay"]
