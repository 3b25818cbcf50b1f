"""What the codec could not read, on its way to `quarantine`: one by one, or counted with a sample."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence

from streaming.groups.quarantine import PartitionInput, QuarantinedRecord, UnknownRecords
from streaming.offsets_log.record import LogRecord

__all__ = ["Unread"]

# Kept of key and of value each. Real records of the offsets log stay below (a broker accepts 1 MiB by default);
# larger ones are told apart by their digest, so that junk cannot fill the lake.
_LARGEST_KEPT = 64 * 1024

_MS_PER_DAY = 86_400_000


class _Counted:
    """Records of one unknown type or version, on one day, since the last boundary."""

    __slots__ = ("last_offset", "records", "sample")

    def __init__(self, sample: QuarantinedRecord) -> None:
        self.sample = sample
        self.records = 0
        self.last_offset = sample.offset


class Unread:
    """Collects the unreadable records of one log partition, in log order.

    Call `reject` and `unknown` per record, then `inputs`.
    """

    def __init__(self, partition: int, boundaries: Sequence[int]) -> None:
        """Begin for one partition of the offsets log, with the log positions of rounds, ascending."""
        self._partition = partition
        self._boundaries = boundaries
        self._inputs: list[PartitionInput] = []
        self._counted: dict[tuple[int, int | None, int, int], _Counted] = {}

    def reject(self, record: LogRecord, reason: str) -> None:
        """Keep a record of a known type that could not be decoded, or that stands where it cannot be."""
        self._inputs.append(self._kept(record, reason))

    def unknown(self, record: LogRecord) -> None:
        """Count a record of an unknown type or newer version; the first after a boundary is the sample."""
        key_type, version = _int16(record.key), _int16(record.value)
        assert key_type is not None  # noqa: S101  # a key without a type is rejected, not unknown
        window = bisect_right(self._boundaries, record.offset)
        like = (key_type, version, record.timestamp // _MS_PER_DAY, window)
        counted = self._counted.get(like)
        if counted is None:
            what = f"type {key_type}" if version is None else f"type {key_type}, value version {version},"
            reason = f"{what} is not known to this release; a newer broker may have written it"
            counted = self._counted[like] = _Counted(self._kept(record, reason))
        counted.records += 1
        counted.last_offset = record.offset

    def inputs(self) -> list[PartitionInput]:
        """All that was collected, by offset of the (first) record."""
        counted: list[PartitionInput] = [
            UnknownRecords(
                key_type=key_type,
                value_version=version,
                day=day,
                records=counted.records,
                last_offset=counted.last_offset,
                sample=counted.sample,
            )
            for (key_type, version, day, _), counted in self._counted.items()
        ]
        return sorted(self._inputs + counted, key=_first_offset)

    def _kept(self, record: LogRecord, reason: str) -> QuarantinedRecord:
        key, value = record.key, record.value
        cut = len(key or b"") > _LARGEST_KEPT or len(value or b"") > _LARGEST_KEPT
        return QuarantinedRecord(
            partition=self._partition,
            offset=record.offset,
            record_time=record.timestamp,
            key_type=_int16(key),
            value_version=_int16(value),
            reason=reason,
            key=None if key is None else key[:_LARGEST_KEPT],
            value=None if value is None else value[:_LARGEST_KEPT],
            key_size=None if key is None else len(key),
            value_size=None if value is None else len(value),
            sha256=hashlib.sha256((key or b"") + (value or b"")).hexdigest() if cut else None,
        )


def _int16(data: bytes | None) -> int | None:
    if data is None or len(data) < 2:
        return None
    return int.from_bytes(data[:2], "big", signed=True)


def _first_offset(item: PartitionInput) -> int:
    if isinstance(item, UnknownRecords):
        return item.sample.offset
    return item.offset if isinstance(item, QuarantinedRecord) else item.from_offset
