"""`evenkeel backtest`: what rules would have alerted on in the past, by the alerter's own evaluation."""

from __future__ import annotations

from streaming.backtest.run import Replay, print_backtest, replay

__all__ = ["Replay", "print_backtest", "replay"]
