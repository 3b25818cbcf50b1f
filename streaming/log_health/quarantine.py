"""Unreadable records of the topics: the first of each kind between two rounds, with position, bytes and reason.

These inputs belong to no group; their key is the partition. A kind is a record's type and version, and whether it is
unknown or broken. A million junk records must cause neither a million rows nor a full memory, and those that a broker
of the next release writes can be very many. While such records come, there is a row in every round.

A record's place among the rounds is in the log, so the rows do not depend on how it was cut into batches.
"""

from __future__ import annotations

import msgspec

from streaming.groups import GapRow, QuarantineRow, Rows
from streaming.records import KINDS, LONGEST_REASON, LogGap, PartitionInput, QuarantinedRecord
from streaming.terminal import visible
from streaming.times import day_of


class UnreadableState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What was told of one partition in the newest window with an unreadable record.

    Attributes:
        window: That window; -1 before the first round.
        told: Kind, type and version of the records that have a row there.
    """

    window: int = -1
    told: set[tuple[str, int | None, int | None]] = set()


def advance_partition(
    state: UnreadableState, inputs: list[PartitionInput], cluster: str
) -> tuple[UnreadableState, Rows]:
    """Turn unreadable records and gaps into rows of `quarantine` and `gaps`.

    Args:
        state: State so far; not modified.
        inputs: In any order; they are processed by offset.
        cluster: Configured name of the cluster.

    Returns:
        The new state, and one row per kind and window, of at most `KINDS` kinds, and one per gap.
    """
    rows = Rows(gaps=[_gap_row(cluster, item) for item in inputs if isinstance(item, LogGap)])
    window, told = state.window, set(state.told)
    unreadable = [item for item in inputs if isinstance(item, QuarantinedRecord)]
    for item in sorted(unreadable, key=lambda item: item.offset):
        if item.window != window:
            window, told = item.window, set()
        kind = item.kind, item.key_type, item.value_version
        if kind not in told and len(told) < KINDS:
            told.add(kind)
            rows.quarantine.append(_quarantine_row(cluster, item))
    return UnreadableState(window, told), rows


def _gap_row(cluster: str, gap: LogGap) -> GapRow:
    return GapRow(
        cluster=cluster,
        kind=gap.kind,
        topic=gap.topic,
        partition=gap.partition,
        from_offset=gap.from_offset,
        to_offset=gap.to_offset,
        from_time=None,
        to_time=None,
        reason=gap.reason,
    )


def _quarantine_row(cluster: str, record: QuarantinedRecord) -> QuarantineRow:
    return QuarantineRow(
        cluster=cluster,
        topic=record.topic,
        partition=record.partition,
        record_offset=record.offset,
        record_time=record.record_time,
        event_date=day_of(record.record_time),
        kind=record.kind,
        key_type=record.key_type,
        value_version=record.value_version,
        reason=visible(record.reason, LONGEST_REASON),
        key=record.key,
        value=record.value,
        key_size=record.key_size,
        value_size=record.value_size,
        sha256=record.sha256,
    )
