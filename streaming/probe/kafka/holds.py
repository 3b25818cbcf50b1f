"""What holds back the offsets log: last stable offsets that stay below the high watermark, and the producers behind it.

Pure, as `observe.py`: a round's holds follow from those of the round before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from streaming.records import HeldPartition, RoundClosed

HELD_ROUNDS = 3
"""How many rounds a hold must exceed to be reported.

Exactly-once applications hold the log for an instant at every commit, so a single round that meets one is no finding.
The same offset below the end in more than this many rounds (over 30 s at the default interval) is no such instant.
"""


@dataclass(frozen=True, slots=True)
class BlockedPartition:
    """A partition of the offsets log whose last stable offset stays the same below its high watermark.

    Attributes:
        position: The last stable offset.
        since: Time of the first round that saw it there.
        rounds: How many rounds in a row saw it.
        producer_id: The producer whose open transaction begins there, as the partition's leader reports it; None while
            that is not known.
        transactional_id: As the coordinators of transactions report it; None when no coordinator knows of a transaction
            of that producer (it hangs for good, KIP-664), or when we may not describe the transactional id.
    """

    position: int
    since: int
    rounds: int
    producer_id: int | None = None
    transactional_id: str | None = None


def advance_holds(
    holds: tuple[BlockedPartition | None, ...], stable: tuple[int, ...], end: tuple[int, ...], time: int
) -> tuple[BlockedPartition | None, ...]:
    """The holds after one more round.

    A last stable offset that moves is no hold, even if it is below the end each time: an application with
    transactions back to back looks like that, and its commits do arrive.

    Args:
        holds: Those of the round before; shorter when the log has more partitions now.
        stable: Last stable offset per partition.
        end: High watermark per partition, requested before.
        time: The round's time.
    """
    before = holds + (None,) * (len(stable) - len(holds))
    now: list[BlockedPartition | None] = []
    for hold, position, high in zip(before, stable, end, strict=False):
        if position >= high:
            now.append(None)
        elif hold is not None and hold.position == position:
            now.append(replace(hold, rounds=hold.rounds + 1))
        else:
            now.append(BlockedPartition(position, time, 1))
    return tuple(now)


def lasting(hold: BlockedPartition | None) -> BlockedPartition | None:
    """The hold, if it has lasted long enough to be reported."""
    if hold is not None and hold.rounds > HELD_ROUNDS:
        return hold
    return None


def with_producers(
    holds: tuple[BlockedPartition | None, ...], producers: Mapping[int, int], ids: Mapping[int, str]
) -> tuple[BlockedPartition | None, ...]:
    """The holds with their producers, by partition, and their transactional ids, by producer, as far as found."""
    found = list(holds)
    for partition, producer in producers.items():
        if (hold := holds[partition]) is not None:
            found[partition] = replace(hold, producer_id=producer, transactional_id=ids.get(producer))
    return tuple(found)


def reported_holds(
    holds: tuple[BlockedPartition | None, ...], end: Sequence[int], partitions_of_groups: Iterable[int]
) -> tuple[HeldPartition, ...]:
    """The holds as a closing record reports them.

    Args:
        holds: Per partition.
        end: High watermark per partition.
        partitions_of_groups: The log partition of each watched group; not read while there is nothing to report.
    """
    if not any(map(lasting, holds)):
        return ()
    groups = Counter(partitions_of_groups)
    return tuple(
        HeldPartition(
            partition=partition,
            since=hold.since,
            position=hold.position,
            end=end[partition],
            groups=groups[partition],
            producer_id=hold.producer_id,
            transactional_id=hold.transactional_id,
        )
        for partition, hold in enumerate(map(lasting, holds))
        if hold is not None
    )


def recalled_holds(closed: RoundClosed) -> tuple[BlockedPartition | None, ...]:
    """The holds of a closed round, from its closing record.

    How many rounds a short hold has lasted is not recorded, so such a hold counts from the closed round on.
    """
    known = {hold.partition: hold for hold in closed.holds or ()}
    found: list[BlockedPartition | None] = []
    for partition, (position, end) in enumerate(zip(closed.log, closed.log_end, strict=True)):
        hold = known.get(partition)
        if position >= end:
            found.append(None)
        elif hold is None:
            found.append(BlockedPartition(position, closed.time, 1))
        else:
            rounds = HELD_ROUNDS + 1
            found.append(BlockedPartition(position, hold.since, rounds, hold.producer_id, hold.transactional_id))
    return tuple(found)
