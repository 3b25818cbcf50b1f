"""Hours of the week by the clock on the wall, in the nights in which clocks are changed as well."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from streaming.alerts.routing.hours import ends, latest
from streaming.config import Hours


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _said(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat()


NIGHT = Hours.model_validate({"from": "22:00", "to": "07:00", "days": ["mon-fri"], "time_zone": "Europe/Berlin"})


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-11-25T21:59:59+01:00", None),  # a Wednesday
        ("2026-11-25T22:00:00+01:00", "2026-11-26T06:00:00+00:00"),
        ("2026-11-26T06:59:59+01:00", "2026-11-26T06:00:00+00:00"),
        ("2026-11-26T07:00:00+01:00", None),
        ("2026-11-28T03:00:00+01:00", "2026-11-28T06:00:00+00:00"),  # Saturday morning belongs to Friday's night
        ("2026-11-28T23:00:00+01:00", None),
        ("2026-11-30T03:00:00+01:00", None),  # Sunday's night does not begin
    ],
)
def test_hours_over_midnight_belong_to_the_day_on_which_they_begin(now: str, end: str | None) -> None:
    assert _said(ends(NIGHT, _ms(now))) == end


def test_a_night_is_an_hour_shorter_when_clocks_are_set_forward_and_longer_when_they_are_set_back() -> None:
    every = Hours.model_validate({"from": "22:00", "to": "07:00", "time_zone": "Europe/Berlin"})
    spring, autumn = _ms("2026-03-28T22:00:00+01:00"), _ms("2026-10-24T22:00:00+02:00")
    assert ends(every, spring) == spring + 8 * 3_600_000
    assert ends(every, autumn) == autumn + 10 * 3_600_000


def test_equal_times_are_a_whole_day() -> None:
    sunday = Hours.model_validate({"from": "00:00", "to": "24:00", "days": ["sun"]})
    assert _said(ends(sunday, _ms("2026-11-29T12:00:00+00:00"))) == "2026-11-30T00:00:00+00:00"
    assert ends(sunday, _ms("2026-11-30T00:00:00+00:00")) is None


def test_the_last_time_of_a_report_is_of_its_day_and_zone() -> None:
    now = _ms("2026-11-25T09:00:00+00:00")
    assert _said(latest(None, 8 * 60, "UTC", now)) == "2026-11-25T08:00:00+00:00"
    assert _said(latest(None, 10 * 60, "UTC", now)) == "2026-11-24T10:00:00+00:00"
    assert _said(latest(frozenset({0}), 8 * 60, "Asia/Tokyo", now)) == "2026-11-22T23:00:00+00:00"
