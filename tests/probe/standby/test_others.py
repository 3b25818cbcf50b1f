"""How long another one waits for the next."""

from __future__ import annotations

import pytest

from streaming.config import Thresholds
from streaming.probe import Probe
from streaming.probe.rocketmq import RocketMQProbe
from streaming.probe.standby import patience_s


@pytest.mark.parametrize("interval_s", [0.2, 1.0, 2.0, 5.0, 6.7, 7.0, 10.0, 30.0, 60.0, 600.0])
def test_who_takes_over_from_a_dead_probe_closes_a_round_before_there_is_silence(interval_s: float) -> None:
    patience = patience_s(interval_s, Probe.LEAST_ROUND_S)
    # From the dead probe's last closed round: the patience, a look of a second, and two seconds for the first round.
    assert patience + 3 <= Thresholds.load().silent_after_s(int(interval_s * 1000)), interval_s
    # A living one closes a round within this time, as long as it takes no longer than the interval.
    assert patience > max(2 * interval_s, Probe.LEAST_ROUND_S)


@pytest.mark.parametrize("interval_s", [10.0, 30.0, 60.0])
def test_the_same_holds_for_rocketmq_from_the_default_interval_on(interval_s: float) -> None:
    patience = patience_s(interval_s, RocketMQProbe.LEAST_ROUND_S)
    assert patience + 3 <= Thresholds.load().silent_after_s(int(interval_s * 1000))
