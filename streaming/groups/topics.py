"""What rounds have shown of the topics of a group: partition counts and racks, with the times that showed them."""

from __future__ import annotations

import msgspec

__all__ = ["CountSeen", "RacksSeen", "TopicState", "counts_from"]


class CountSeen(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A partition count (0: the topic did not exist) and the first and last round time that showed it."""

    count: int
    first: int
    last: int


class RacksSeen(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Racks of a topic's replicas, and the first and last round time that showed them.

    Attributes:
        sets: The different sets of racks that partitions have, each sorted; none when no broker has a rack.
        places: Per partition its place in `sets`, one byte each (two, little-endian, where there are more than 256
            sets, four where there are more than 65,536); empty when no broker has a rack.
        first: The first round's time, ms.
        last: The last one's.
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
        topic_id: Kafka's printed topic id; None when not known.
        renewed: Time of the first round that showed it deleted and made again (another topic id, or fewer
            partitions), ms; -1 when none did.
        recreated: Time of the first round that showed another topic of the name, ms; -1 when none did.
        count_before: Partition count of the topic before it; 0 when not known.
        racks: Racks of the replicas seen, oldest first; empty while no round has told them.
    """

    counts: list[CountSeen]
    since: int
    topic_id: str | None = None
    renewed: int = -1
    recreated: int = -1
    count_before: int = 0
    racks: list[RacksSeen] = []


def counts_from(known: TopicState, horizon: int) -> frozenset[int]:
    """Counts that rounds have seen from a time on, with the one in force at it for all that they tell."""
    before = [count for count in known.counts if count.first <= horizon][-1:] or known.counts[:1]
    return frozenset(count.count for count in (*before, *(c for c in known.counts if c.first > horizon)))
