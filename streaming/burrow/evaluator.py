"""The rules by which Burrow judges a partition, also as a line of a pipe.

Source: linkedin/Burrow v1.9.5, core/internal/evaluator/caching.go (`calculatePartitionStatus`). Where its rules
surprise, they do so here: one commit with lag is STOP at once, a rewind is tested before a lag of zero, and only the
first rewind is tested at all. Our own judgement is another (docs/verdicts.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Status = Literal["OK", "WARN", "ERR", "STOP", "STALL", "REWIND"]
"""Status of a partition; ERR is a group's alone."""


# As in Burrow: offsets and times are int64, lags uint64.
_Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Lag = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Commit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A commit of a window.

    Attributes:
        offset: Committed offset.
        timestamp_ms: Its time, ms since the epoch.
        lag: Lag at that time, in offsets; None if not known.
    """

    offset: _Long
    timestamp_ms: _Long
    lag: _Lag | None


def evaluate(
    window: Sequence[Commit], broker_offsets: Sequence[int], current_lag: int, now_ms: int, allowed_lag: int = 0
) -> Status:
    """Status of one partition; the first rule that applies wins.

    Args:
        window: Its last commits, the oldest first.
        broker_offsets: The last end offsets of the partition.
        current_lag: Newest end offset minus newest committed offset, at least 0.
        now_ms: The time, ms since the epoch; Burrow looks at a clock of whole seconds.
        allowed_lag: Lag up to this counts as none.
    """
    if not window or current_lag <= allowed_lag:
        return "OK"
    if _stopped(window, now_ms) and all(end > window[-1].offset for end in broker_offsets):
        return "STOP"
    if _rewound(window):
        return "REWIND"
    lags = [commit.lag for commit in window if commit.lag is not None]
    if any(lag <= allowed_lag for lag in lags):
        return "OK"
    if all(later.offset == earlier.offset for earlier, later in pairwise(window)):
        return "STALL"
    if all(later >= earlier for earlier, later in pairwise(lags)):
        return "WARN"
    return "OK"


def _stopped(window: Sequence[Commit], now_ms: int) -> bool:
    """Whether nothing was committed for longer than the window spans."""
    first, last = window[0].timestamp_ms, window[-1].timestamp_ms
    return now_ms // 1000 * 1000 - last > last - first


def _rewound(window: Sequence[Commit]) -> bool:
    """Whether the first step backwards was not made good since."""
    for place, (earlier, later) in enumerate(pairwise(window), start=1):
        if later.offset < earlier.offset:
            return all(commit.offset < earlier.offset for commit in window[place:])
    return False


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    window: list[Commit]
    broker_offsets: list[_Long]
    current_lag: _Lag
    now_ms: _Long
    allowed_lag: _Lag


def status_line(question: dict[str, Any]) -> dict[str, Any]:
    """Judge one partition.

    Args:
        question: `window` (the oldest commit first: `offset`, `timestamp_ms`, `lag` or null), `broker_offsets`,
            `current_lag`, `now_ms`, `allowed_lag`.

    Returns:
        `{"status": ...}`, or `{"error": reason}`.
    """
    try:
        asked = msgspec.convert(question, _Question)
    except msgspec.ValidationError as error:
        return {"error": str(error)}
    status = evaluate(asked.window, asked.broker_offsets, asked.current_lag, asked.now_ms, asked.allowed_lag)
    return {"status": status}
