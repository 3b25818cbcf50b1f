"""A group's topics as rounds have shown them: partition counts and racks, with the times at which they were seen."""

from __future__ import annotations

import msgspec

__all__ = ["CountSeen", "RacksSeen", "TopicState", "counts_from"]


class CountSeen(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A partition count (0: the topic did not exist) and the times of the first and last round that showed it, ms."""

    count: int
    first: int
    last: int


class RacksSeen(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Racks of a topic's replicas, and the times of the first and last round that showed them.

    Attributes:
        sets: The distinct sets of racks among the partitions, each sorted; empty when no broker has a rack.
        places: Each partition's index in `sets`, one byte each (two, little-endian, for more than 256 sets, four for
            more than 65,536); empty when no broker has a rack.
        first: Time of the first round, ms.
        last: Time of the last round, ms.
    """

    sets: tuple[tuple[str, ...], ...]
    places: bytes
    first: int
    last: int


class TopicState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """One topic of the group.

    Attributes:
        counts: Partition counts seen, oldest first; the last is the newest round's.
        since: Time of the first round that showed the topic for this group, ms.
        topic_id: Topic id as Kafka prints it; None when unknown.
        renewed: Time of the last round with another topic id or fewer partitions than the round before, ms; -1 if
            none.
        recreated: Time of the last round that showed a new topic under the name (`offset_events.was_made_anew`), ms;
            -1 if none.
        count_before: Partition count of the topic it replaced; 0 when unknown.
        racks: Racks of the replicas, oldest first; empty until a round shows them.
    """

    counts: list[CountSeen]
    since: int
    topic_id: str | None = None
    renewed: int = -1
    recreated: int = -1
    count_before: int = 0
    racks: list[RacksSeen] = []


def counts_from(known: TopicState, horizon: int) -> frozenset[int]:
    """Partition counts seen since a time (ms), including the one in force at that time as far as rounds can tell."""
    before = [count for count in known.counts if count.first <= horizon][-1:] or known.counts[:1]
    return frozenset(count.count for count in (*before, *(c for c in known.counts if c.first > horizon)))
