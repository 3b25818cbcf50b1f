"""What a round saw of the deliveries of a share group (KIP-932): its part of a `GroupObservation`.

Arrays in JSON and in msgpack: fields are only ever appended, with defaults.
"""

from __future__ import annotations

from typing import Final

import msgspec

STATE_LOG: Final = "share_state"
"""Deliveries are read from `__share_group_state`."""

BROKERS: Final = "brokers"
"""Start offsets and lag are asked for (DescribeShareGroupOffsets); nobody tells more."""


START_NOT_TOLD: Final = -2
"""`SharePartition.start` where the coordinator could not tell it in this round."""


class SharePartition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One partition of a share group.

    What members have acquired is in the memory of the partition's leader, and in no answer and no record.

    Attributes:
        partition: Its number.
        start: Start offset, as the share coordinator keeps it; -1 while nothing was ever delivered, `START_NOT_TOLD`
            where it is not known in this round.
        done: Records at or after the start offset that are acknowledged or archived; -1 where only lag is known.
        lag: Lag as the broker computes it (KIP-1226): records from the start offset to the end that are not done; -1
            where `done` tells it, or it is not known.
        first: First offset from the start on that is not done; -1 where it is not known.
        acknowledged: Records from the start offset on that members have acknowledged; -1 where it is not known, like
            all that follow.
        archived: Those that will not be delivered again: rejected, given up, or not a record.
        released: Those that came back after a delivery: released, or their lock ran out.
        deliveries: How often the record that came back most often has been delivered.
        archivals: Records archived since counting began (`SeenShares.since`), by the number of their deliveries.
    """

    partition: int
    start: int
    done: int = -1
    lag: int = -1
    first: int = -1
    acknowledged: int = -1
    archived: int = -1
    released: int = -1
    deliveries: int = -1
    archivals: tuple[tuple[int, int], ...] = ()


class SeenShares(msgspec.Struct, frozen=True, array_like=True):
    """The deliveries of a share group in one round.

    Attributes:
        source: `STATE_LOG` or `BROKERS`.
        since: Names the beginning of what `SharePartition.archivals` counts: with another one, counting began again at
            the last closed round before.
        topics: Partitions by topic, ascending.
        lock_ms: How long a member may keep an acquired record without renewing it; None when unknown.
        limit: How often a record is delivered at most; None when unknown.
        dead_letters: Topic that gets the records that are given up (Kafka 4.4); None without one, or when unknown.
    """

    source: str
    since: int
    topics: dict[str, tuple[SharePartition, ...]]
    lock_ms: int | None = None
    limit: int | None = None
    dead_letters: str | None = None
