"""Events of groups in round 7, on a log of two partitions, and the round as the source has taken it."""

from __future__ import annotations

from typing import Any

from streaming.events import Event, GroupEvent, encode, pack
from streaming.job.source.events import EventRound
from streaming.offsets_log import partition_for
from streaming.records import ClosedRound, GroupObservation, TopicObservation, pack_offsets
from tests.job.source.made_rounds import closed

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
