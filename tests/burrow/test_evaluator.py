"""Burrow's rules, by windows written down by hand."""

from __future__ import annotations

import pytest

from streaming.burrow import Commit, Status, evaluate, status_line

NOW = 1_700_000_100_000


def window(*commits: tuple[int, int, int | None]) -> list[Commit]:
    """Commits as (seconds before now, offset, lag)."""
    return [Commit(offset, NOW - ago * 1000, lag) for ago, offset, lag in commits]


# Seven commits ten seconds apart, the last five seconds ago: they span 60 s.
def moving(*offsets_and_lags: tuple[int, int | None], last_ago: int = 5) -> list[Commit]:
    count = len(offsets_and_lags)
    return window(*((last_ago + 10 * (count - 1 - n), *pair) for n, pair in enumerate(offsets_and_lags)))


SHRINKS = moving((10, 9), (20, 8), (30, 7))
GROWS = moving((10, 7), (20, 8), (30, 9))


@pytest.mark.parametrize(
    ("commits", "ends", "lag", "status"),
    [
        pytest.param([], [99], 9, "OK", id="nothing was committed"),
        pytest.param(moving((10, 5), (10, 5)), [99], 0, "OK", id="no lag now, whatever was"),
        pytest.param(SHRINKS, [99], 7, "OK", id="lag shrinks"),
        pytest.param(GROWS, [99], 9, "WARN", id="lag grows"),
        pytest.param(moving((10, 7), (20, 7), (30, 7)), [99], 7, "WARN", id="lag stays"),
        pytest.param(moving((10, 7), (20, 9), (30, 8)), [99], 8, "OK", id="lag shrank once"),
        pytest.param(moving((10, 9), (20, None), (30, 8)), [99], 8, "OK", id="an unknown lag between does not count"),
        pytest.param(moving((10, None), (20, None)), [99], 8, "WARN", id="no lag is known"),
        pytest.param(moving((10, 1), (10, 2), (10, 3)), [99], 3, "STALL", id="the offset does not move"),
        pytest.param(moving((10, 0), (10, 2), (10, 3)), [99], 3, "OK", id="lag was zero once"),
        pytest.param(moving((10, 7), (20, 8), last_ago=11), [99], 8, "STOP", id="silent for longer than it spans"),
        pytest.param(moving((10, 7), (20, 8), last_ago=10), [99], 8, "WARN", id="silent for as long as it spans"),
        pytest.param(moving((10, 0), (20, 0), last_ago=11), [99], 8, "STOP", id="stopped, although lag was zero"),
        pytest.param(moving((10, 0), (20, 0), last_ago=11), [20, 99], 8, "OK", id="a recent end was reached"),
        pytest.param(moving((10, 7), (20, 8), last_ago=11), [19, 99], 8, "WARN", id="ahead of an old end"),
        pytest.param(moving((10, 7), (20, 8), last_ago=11), [], 8, "STOP", id="no end is known"),
        pytest.param(window((1, 10, 3)), [99], 3, "STOP", id="one commit"),
        pytest.param(window((0, 10, 3)), [99], 3, "STALL", id="one commit, just now"),
        pytest.param(moving((30, 0), (10, 20), (20, 10)), [99], 10, "REWIND", id="went back, and zero lag before"),
        pytest.param(moving((30, 5), (10, 20), (30, 10)), [99], 10, "OK", id="went back, and is where it was"),
        pytest.param(moving((30, 5), (10, 6), (31, 7), (5, 8)), [99], 10, "WARN", id="only the first rewind counts"),
        pytest.param(moving((30, 5), (10, 9), last_ago=11), [99], 9, "STOP", id="stopped comes before went back"),
    ],
)  # fmt: skip
def test_rules(commits: list[Commit], ends: list[int], lag: int, status: Status) -> None:
    assert evaluate(commits, ends, lag, NOW) == status


def test_the_clock_has_whole_seconds() -> None:
    commits = window((1, 10, 3))
    assert evaluate(commits, [99], 3, NOW - 1) == "STALL"
    assert evaluate(commits, [99], 3, NOW) == "STOP"


@pytest.mark.parametrize(("lag", "status"), [(9, "OK"), (10, "OK"), (11, "WARN")])
def test_allowed_lag_counts_as_none_now(lag: int, status: Status) -> None:
    assert evaluate(moving((10, 11), (20, 12)), [99], lag, NOW, allowed_lag=10) == status


@pytest.mark.parametrize(("lag", "status"), [(10, "OK"), (11, "STALL")])
def test_allowed_lag_counts_as_none_in_the_window(lag: int, status: Status) -> None:
    assert evaluate(moving((10, lag), (10, 20)), [99], 20, NOW, allowed_lag=10) == status


def test_a_line_of_the_pipe() -> None:
    commits = [{"offset": c.offset, "timestamp_ms": c.timestamp_ms, "lag": c.lag} for c in GROWS]
    line = {"window": commits, "broker_offsets": [99], "current_lag": 9, "now_ms": NOW, "allowed_lag": 0}
    assert status_line(line) == {"status": "WARN"}
    assert status_line(line | {"window": [commits[0] | {"lag": None}]}) == {"status": "STOP"}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"window": None}, "$.window"),
        ({"window": [{"offset": 1}]}, "$.window[0]"),
        ({"window": [{"offset": "1", "timestamp_ms": 1, "lag": None}]}, "$.window[0].offset"),
        ({"current_lag": -1}, "$.current_lag"),
        ({"now_ms": 1.5}, "$.now_ms"),
        ({"allowed_lag": True}, "$.allowed_lag"),
        ({"broker_offsets": [2**63]}, "$.broker_offsets[0]"),
        ({"more": 1}, "more"),
    ],
)
def test_a_wrong_line_is_an_error_that_names_the_place(change: dict[str, object], place: str) -> None:
    line = {"window": [], "broker_offsets": [], "current_lag": 0, "now_ms": 0, "allowed_lag": 0}
    assert place in status_line(line | change)["error"]
