"""Closing records as literals, for tests without a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streaming.events import Event, GroupEvent, encode, pack
from streaming.job.source.events import EventRound
from streaming.job.source.plan import RoundRecord
from streaming.offsets_log import partition_for
from streaming.records import (
    ClosedRound,
    GroupObservation,
    Round,
    RoundClosed,
    RoundOpened,
    TopicObservation,
    pack_offsets,
)

LOG = (100, 200)


def topic(name: str, *ends: int) -> TopicObservation:
    """A topic with these high watermarks; by default one of two partitions."""
    packed = pack_offsets(ends or (5, 6))
    return TopicObservation(name, None, len(ends) or 2, packed, packed, pack_offsets([0] * (len(ends) or 2)))


def group(name: str, *topics: str, number: int = 7, **changes: Any) -> GroupEvent:
    partition = partition_for(name, 2)
    given: dict[str, Any] = {
        "round": number,
        "time": 1_000,
        "log_partition": partition,
        "log_position": LOG[partition],
        "state": "Stable",
        "protocol_type": "consumer",
        "group_type": "classic",
        "gone": None,
        "held_since": None,
        "topics": tuple(map(topic, topics)),
        "cluster_id": "abc",
    }
    return GroupEvent(1, "test", name, GroupObservation(**(given | changes)))


def record(event: Event) -> bytes:
    """The record of one event; of a group's, with no other group."""
    return encode(next(pack([event])) if isinstance(event, GroupEvent) else event)


def event_round(number: int = 7, first: int = 10, end: int = 90, **changes: Any) -> EventRound:
    """The round with its events between these offsets; changes are of `ClosedRound`."""
    given: dict[str, Any] = {
        "closed": closed(number, LOG, time=1_000),
        "round": number,
        "offset": number + 1,
        "closed_time": 1_400,
        "elapsed": 5,
        "log_records": 0,
    }
    return EventRound(ClosedRound(**(given | changes)), first, end)


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
