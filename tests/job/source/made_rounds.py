"""Closing records as literals, for tests without a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streaming.job.source.plan import RoundRecord
from streaming.records import Round, RoundClosed, RoundOpened

CLUSTER = "test"


def closed(
    number: int,
    log: Sequence[int],
    events: Mapping[str, tuple[int, int]] | None = None,
    **changes: object,
) -> RoundClosed:
    given: dict[str, object] = {
        "v": 1,
        "cluster": CLUSTER,
        "probe": "a",
        "interval_ms": 10_000,
        "round": number,
        "time": 1_000_000 + number,
        "log": tuple(log),
        "log_end": tuple(log),
        "events": dict(events or {}),
        "groups": 1,
        "written": 2,
    }
    return RoundClosed(**(given | changes))  # type: ignore[arg-type]


def opened(*, ends: bool = False, since: int | None = None, interval_ms: int = 10_000) -> RoundOpened:
    return RoundOpened(v=1, cluster=CLUSTER, probe="a", interval_ms=interval_ms, since=since, ends=ends)


def at(offset: int, content: Round | object) -> RoundRecord:
    return RoundRecord(offset, 2_000_000 + offset, None, b"%d" % offset, content)  # type: ignore[arg-type]
