"""`evenkeel backtest`: what rules would have alerted on in the past, by the alerter's own evaluation."""

from __future__ import annotations

from streaming.backtest.replay import Occurrence, Replay, replay
from streaming.backtest.run import print_backtest

__all__ = ["Occurrence", "Replay", "print_backtest", "replay"]
