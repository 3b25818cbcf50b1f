"""What the log holds and nobody can read: kept with position, bytes and reason, once.

These inputs belong to no group; they travel under a key of their log partition. Records of a known type that
cannot be decoded are kept one by one. Records of unknown types and of newer value versions can be legion (a
broker of the next release), so one sample per type, version and day is kept, with counts.
"""

from __future__ import annotations

import msgspec

from streaming.groups.facts import GapRow, QuarantineRow, Rows
from streaming.groups.times import day_of

__all__ = [
    "Counted",
    "LogGap",
    "PartitionInput",
    "PartitionState",
    "QuarantinedRecord",
    "UnknownRecords",
    "advance_partition",
    "decode_partition_inputs",
    "encode_partition_inputs",
]


class QuarantinedRecord(msgspec.Struct, frozen=True, array_like=True, tag="q", forbid_unknown_fields=True):
    """One record of the log that could not be decoded.

    Attributes:
        partition: Partition of the offsets log.
        offset: Log offset.
        record_time: Record timestamp, ms.
        key_type: int16 at the head of the key; None when the key is null or shorter than that.
        value_version: int16 at the head of the value; None when the value is null or shorter.
        reason: What is wrong, in one sentence, without the bytes.
        key: Key bytes, at most 64 KiB of them; None when null.
        value: Value bytes, at most 64 KiB of them; None when null.
        key_size: Bytes of the whole key; None when null.
        value_size: Bytes of the whole value; None when null.
        sha256: Hex digest of key and value together when either was cut; None otherwise.
        topic: Topic that holds the record: the offsets log, or one of the probe's topics.
    """

    partition: int
    offset: int
    record_time: int
    key_type: int | None
    value_version: int | None
    reason: str
    key: bytes | None
    value: bytes | None
    key_size: int | None
    value_size: int | None
    sha256: str | None = None
    topic: str = "__consumer_offsets"


class UnknownRecords(msgspec.Struct, frozen=True, array_like=True, tag="u"):
    """Records of one unknown type or newer version between two boundaries, on one day of record time.

    Attributes:
        key_type: Key type.
        value_version: Value version; None for tombstones.
        day: Days since the epoch of the record timestamps, UTC.
        records: How many.
        last_offset: Log offset of the last of them.
        sample: The first of them.
    """

    key_type: int
    value_version: int | None
    day: int
    records: int
    last_offset: int
    sample: QuarantinedRecord


class LogGap(msgspec.Struct, frozen=True, array_like=True, tag="g"):
    """Offsets of one log partition that were gone before they were read.

    Attributes:
        partition: Partition of the offsets log.
        from_offset: First offset that was wanted.
        to_offset: First offset that was there (exclusive end of the gap).
        reason: Why, as far as it is known.
        topic: The offsets log, or one of the probe's topics.
        kind: `log`, `truncated` or `recreated`, as in the table `gaps`.
    """

    partition: int
    from_offset: int
    to_offset: int
    reason: str
    topic: str = "__consumer_offsets"
    kind: str = "log"


PartitionInput = QuarantinedRecord | UnknownRecords | LogGap


class Counted(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Records of one unknown type or newer version on one day: how many so far, and the first of them."""

    records: int
    sample: QuarantinedRecord


class PartitionState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What is remembered of one log partition.

    Attributes:
        counted: By key type, value version (or -1) and day; the one that was last added to stands last.
    """

    counted: dict[str, Counted] = {}


# Types, versions and days that are counted at a time. A broker of the next release writes a handful a day; beyond this
# many the one longest not seen is forgotten, so that the state stays small whatever timestamps are written. Its
# next record begins a new sample with a count of its own.
_COUNTED = 32

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[PartitionInput])


def encode_partition_inputs(inputs: list[PartitionInput]) -> bytes:
    """Pack inputs of one log partition into one payload."""
    return _ENCODER.encode(inputs)


def decode_partition_inputs(payload: bytes) -> list[PartitionInput]:
    """Unpack what `encode_partition_inputs` wrote.

    Raises:
        msgspec.DecodeError: The payload is not one of ours.
    """
    return _DECODER.decode(payload)


def advance_partition(state: PartitionState, inputs: list[PartitionInput], cluster: str) -> tuple[PartitionState, Rows]:
    """Turn what nobody can read into rows of `quarantine` and `gaps`.

    Args:
        state: What is remembered; not changed.
        inputs: Any order; they are taken by offset.
        cluster: Configured name of the cluster.

    Returns:
        The new state, and one row per undecodable record, one per window with records of an unknown type
        (the day's first of them, with the day's count so far) and one per gap.
    """
    counted = dict(state.counted)
    rows = Rows()
    for item in sorted(inputs, key=_position):
        if isinstance(item, LogGap):
            rows.gaps.append(
                GapRow(
                    cluster=cluster,
                    kind=item.kind,
                    topic=item.topic,
                    partition=item.partition,
                    from_offset=item.from_offset,
                    to_offset=item.to_offset,
                    from_time=None,
                    to_time=None,
                    reason=item.reason,
                )
            )
        elif isinstance(item, QuarantinedRecord):
            rows.quarantine.append(_row(cluster, item, "undecodable", 1, item.offset))
        else:
            name = f"{item.key_type}/{-1 if item.value_version is None else item.value_version}/{item.day}"
            before = counted.pop(name, Counted(0, item.sample))
            now = counted[name] = Counted(before.records + item.records, before.sample)
            rows.quarantine.append(_row(cluster, now.sample, "unknown", now.records, item.last_offset))
            if len(counted) > _COUNTED:
                del counted[next(iter(counted))]
    return PartitionState(counted), rows


def _position(item: PartitionInput) -> int:
    if isinstance(item, LogGap):
        return item.from_offset
    return item.offset if isinstance(item, QuarantinedRecord) else item.last_offset


def _row(cluster: str, record: QuarantinedRecord, kind: str, records: int, last_offset: int) -> QuarantineRow:
    return QuarantineRow(
        cluster=cluster,
        topic=record.topic,
        partition=record.partition,
        record_offset=record.offset,
        record_time=record.record_time,
        event_date=day_of(record.record_time),
        kind=kind,
        key_type=record.key_type,
        value_version=record.value_version,
        reason=record.reason,
        records=records,
        last_record_offset=last_offset,
        key=record.key,
        value=record.value,
        key_size=record.key_size,
        value_size=record.value_size,
        sha256=record.sha256,
    )
