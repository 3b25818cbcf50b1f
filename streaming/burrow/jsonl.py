"""The lines of `evenkeel burrow-status`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from streaming.burrow.evaluator import Commit, evaluate

# As in Burrow: offsets and times are int64, lags uint64.
_Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Lag = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class _Commit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    offset: _Long
    timestamp_ms: _Long
    lag: _Lag | None


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    window: list[_Commit]
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
    window = [Commit(commit.offset, commit.timestamp_ms, commit.lag) for commit in asked.window]
    status = evaluate(window, asked.broker_offsets, asked.current_lag, asked.now_ms, asked.allowed_lag)
    return {"status": status}
