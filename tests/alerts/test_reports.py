"""Spans of daily and weekly reports, by values written out by hand."""

from __future__ import annotations

from datetime import datetime

import pytest

from streaming.alerts.reports import due
from streaming.config import Report


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("every", "now", "begin", "end"),
    [
        ("day", "2026-03-28T07:10Z", "2026-03-27T07:00Z", "2026-03-28T07:00Z"),
        # In Berlin 29 March 2026 has 23 hours, and 25 October 2026 has 25.
        ("day", "2026-03-29T06:10Z", "2026-03-28T07:00Z", "2026-03-29T06:00Z"),
        ("day", "2026-10-25T07:10Z", "2026-10-24T06:00Z", "2026-10-25T07:00Z"),
        ("week", "2026-03-30T06:10Z", "2026-03-23T07:00Z", "2026-03-30T06:00Z"),
    ],
)
def test_reports_join_where_clocks_change(every: str, now: str, begin: str, end: str) -> None:
    report = Report.model_validate({"targets": ["chat"], "every": every, "at": "08:00", "time_zone": "Europe/Berlin"})
    (found,) = due([report], "c", _ms(now))
    assert (found.begin, found.end) == (_ms(begin), _ms(end))
