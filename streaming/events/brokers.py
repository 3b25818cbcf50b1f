"""The brokers of a cluster as a round sees them: an optional part of its closing record.

A group's coordinator is the broker that leads the group's partition of the offsets log, and each election of a leader
raises the partition's leader epoch, which the records in it carry, too. So a round that knows leaders and epochs links
a decision to the broker that coordinated it; and a broker that is missing from the metadata in which its partition has
another leader has gone down.

Every closing record is complete in itself: it says what was seen of brokers that are gone, and of coordinators that
moved lately. A reader needs no earlier record.
"""

from __future__ import annotations

from typing import Final

import msgspec

_MOST_BROKERS: Final = 10_000
"""The largest Kafka clusters have some hundreds."""

LONGEST_HOST: Final = 255
"""Characters of a host or a rack; longer ones are cut. (A host name has at most 253.)"""

MOVES_PER_PARTITION: Final = 3
"""Moves of a coordinator that a record reports: a broker that restarts makes two."""

_MOST_PARTITIONS: Final = 1_000_000
_INT32: Final = 2**31 - 1
_INT64: Final = 2**63 - 1
_LAST_TIME_MS: Final = 253_402_300_799_999  # the end of the year 9999, the last that the tables hold


class Broker(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A broker of the cluster.

    Attributes:
        node: Its node id.
        host: The host that it advertises to the probe.
        rack: Its rack; None without one.
        since: For a broker that is up, time of the first round that had it again, or for the first time; None if it was
            there in the first round that the probe knows. For one that is gone, time of the first round without it.
    """

    node: int
    host: str
    rack: str | None = None
    since: int | None = None


class CoordinatorMove(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A partition of the offsets log whose leader, the coordinator of its groups, was another broker than before.

    Attributes:
        partition: Partition of the offsets log.
        before: Node id of its leader in the last round that saw the earlier leader epoch.
        after: Node id of its leader in the first round that saw the later one.
        epoch_before: The earlier leader epoch.
        epoch_after: The later one.
        time: Time of the round that saw the later one, ms.
        gone_round: Number of the first round since then that did not have the broker `before`, if that was soon enough
            for it to have led until it went; None if no round has missed it.
        back_since: Time of the first round that had the broker `after` again, ms, if that was shortly before the move
            and `before` was still up; else None.
    """

    partition: int
    before: int
    after: int
    epoch_before: int
    epoch_after: int
    time: int
    gone_round: int | None = None
    back_since: int | None = None


class Brokers(msgspec.Struct, frozen=True, omit_defaults=True):
    """The brokers in one round.

    Attributes:
        up: Those in the metadata, by node id.
        gone: Those that an earlier round had, for a day after they went, by node id.
        coordinators: Leader's node id and leader epoch per partition of the offsets log; empty where the log is not
            read, or the brokers do not report leader epochs (before 2.1).
        moves: Coordinators that moved in the last hour, the oldest first.
    """

    up: tuple[Broker, ...]
    gone: tuple[Broker, ...] = ()
    coordinators: tuple[tuple[int, int], ...] = ()
    moves: tuple[CoordinatorMove, ...] = ()


def possible_brokers(brokers: Brokers | None, partitions: int) -> Brokers | None:
    """What a record says of brokers, or None if it cannot be true: then nothing is known of them, the round counts.

    Args:
        brokers: From the record.
        partitions: Number of partitions of the offsets log in it; 0 where it is not read.
    """
    if brokers is None or len(brokers.up) > _MOST_BROKERS or len(brokers.gone) > _MOST_BROKERS:
        return None
    named = all(
        0 <= one.node <= _INT32
        and len(one.host) <= LONGEST_HOST
        and len(one.rack or "") <= LONGEST_HOST
        and (one.since is None or 0 <= one.since <= _LAST_TIME_MS)
        for one in (*brokers.up, *brokers.gone)
    )
    led = not brokers.coordinators or len(brokers.coordinators) == partitions <= _MOST_PARTITIONS
    led = led and all(0 <= node <= _INT32 and 0 <= epoch <= _INT32 for node, epoch in brokers.coordinators)
    moved = len(brokers.moves) <= MOVES_PER_PARTITION * partitions and all(
        0 <= move.partition < partitions
        and 0 <= move.before <= _INT32
        and 0 <= move.after <= _INT32
        and 0 <= move.epoch_before < move.epoch_after <= _INT32
        and 0 <= move.time <= _LAST_TIME_MS
        and (move.gone_round is None or 0 <= move.gone_round <= _INT64)
        and (move.back_since is None or 0 <= move.back_since <= _LAST_TIME_MS)
        for move in brokers.moves
    )
    return brokers if named and led and moved else None
