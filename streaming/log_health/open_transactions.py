"""Partitions of the offsets log that an open transaction holds back: its beginning, its producer, its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from streaming.groups import OpenTransactionRow
from streaming.records import HeldPartition
from streaming.times import day_of

__all__ = ["open_transactions"]


def open_transactions(
    before: Mapping[int, HeldPartition], held: Sequence[HeldPartition], cluster: str, number: int, time: int
) -> tuple[dict[int, HeldPartition], list[OpenTransactionRow]]:
    """Update the holds with one round.

    Args:
        before: By partition: the hold in its last row.
        held: The holds of the round.
        cluster: Configured name of the cluster.
        number: Number of the round.
        time: Its time, ms.

    Returns:
        The present holds, and a row for each partition that changed: the hold began or ended, its producer or
        transactional id became known, or the number of groups changed. The number of waiting records grows all the time
        and causes no row.
    """
    now = {hold.partition: hold for hold in held}
    ended = [hold for partition, hold in sorted(before.items()) if partition not in now]
    rows = [_row(cluster, number, time, hold, is_held=False) for hold in ended]
    for partition, hold in sorted(now.items()):
        known = before.get(partition)
        if known is None or msgspec.structs.replace(hold, end=known.end) != known:
            rows.append(_row(cluster, number, time, hold, is_held=True))
    return now, rows


def _row(cluster: str, number: int, time: int, hold: HeldPartition, *, is_held: bool) -> OpenTransactionRow:
    return OpenTransactionRow(
        cluster=cluster,
        log_partition=hold.partition,
        round=number,
        round_time=time,
        event_date=day_of(time),
        held=is_held,
        held_since=hold.since,
        held_offset=hold.position,
        waiting=hold.end - hold.position if is_held else 0,
        groups=hold.groups if is_held else 0,
        producer_id=hold.producer_id,
        transactional_id=hold.transactional_id,
    )
