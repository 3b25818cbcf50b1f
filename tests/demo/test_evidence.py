"""What a demo on a machine that is too slow leaves unjudged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from streaming.demo.evidence import Evidence, exactly_these, judged, lateness

ALERTS = {
    ("drift", "clicks-pile-up"): ("firing", "resolved"),
    ("stuck_rebalance", "reports-stuck-rebalance"): ("firing", "resolved"),
    ("undecodable", None): ("firing",),
}
LATE = lateness(ticks_s=6.2, rounds_s=0.3)


class Alerts(Evidence):
    """Evidence with nothing but alerts: notified states by rule and group."""

    def __init__(self, raised: Mapping[tuple[str, str | None], Sequence[str]]) -> None:
        self._raised = raised

    def rows(self, sql: str, *parameters: object) -> list[dict[str, object]]:
        if parameters or "min(decision)" in sql:
            return []
        return [{"rule": r, "group_id": g, "state": state} for (r, g), of in self._raised.items() for state in of]


def sentences(changed: Mapping[tuple[str, str | None], Sequence[str]]) -> list[str]:
    return list(exactly_these(ALERTS)(Alerts(ALERTS | dict(changed))))


def test_the_machine_is_too_slow_where_the_traffic_or_the_rounds_stood_still() -> None:
    assert lateness(ticks_s=1.9, rounds_s=2.0) is None
    assert LATE is not None
    assert "stood still for 6.2 s" in LATE
    assert lateness(ticks_s=0.1, rounds_s=2.1) is not None


def test_an_alert_that_fires_twice_is_wrong_unless_the_machine_was_too_slow() -> None:
    twice = ["firing", "resolved"] * 2
    for alert in [("stuck_rebalance", "reports-stuck-rebalance"), ("drift", "clicks-pile-up")]:
        [sentence] = sentences({alert: twice})
        assert judged([sentence], None) == ([sentence], [])
        assert judged([sentence], LATE) == ([], [sentence, LATE])


@pytest.mark.parametrize(
    "changed", [{("drift", "clicks-pile-up"): []}, {("drift", "orders-range"): ["firing"]}, {("undecodable", None): []}]
)
def test_no_machine_is_slow_enough_for_a_wrong_verdict(changed: dict[tuple[str, str | None], list[str]]) -> None:
    found = sentences(changed)
    assert len(found) == 1
    assert judged(found, LATE) == (found, [])
