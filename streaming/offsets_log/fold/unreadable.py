"""Unreadable records of one partition, on their way to `quarantine`: the first of each kind between two rounds.

A million junk records must cause neither a million rows nor a full memory, and those of a newer broker can be very
many. What is kept does not depend on how the log was split: the operator leaves out what an earlier part has told.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from streaming.offsets_log.codec.record_types import LogRecord
from streaming.records import LONGEST_REASON, LONGEST_RECORD, PartitionInput, QuarantinedRecord
from streaming.terminal import visible

OFFSETS_LOG = "__consumer_offsets"

# Approximate memory of a kept record, in addition to its key and value.
_ITEM_BYTES = 1_000


@dataclass(frozen=True, slots=True)
class Windows:
    """The stretches of one partition between the positions of rounds.

    Attributes:
        positions: Ascending; B separates the records below B from the others.
        rounds: The number of a round for each stretch (`QuarantinedRecord.window`): one more than positions.
    """

    positions: Sequence[int] = ()
    rounds: Sequence[int] = (-1,)

    def of(self, offset: int) -> int:
        """The window of a record."""
        return self.rounds[bisect_right(self.positions, offset)]


class UnreadableRecords:
    """Collects the unreadable records of one partition.

    Call `reject` and `unknown` per record, in any order; then `inputs`.

    Attributes:
        held: Approximate bytes held in memory.
    """

    def __init__(self, partition: int, windows: Windows, topic: str = OFFSETS_LOG, *, typed: bool = True) -> None:
        """Start empty.

        Args:
            partition: Partition of the topic.
            windows: Its windows in this batch.
            topic: The topic.
            typed: Keys and values begin with a type and a version, as they do in the offsets log.
        """
        self.held = 0
        self._topic = topic
        self._partition = partition
        self._windows = windows
        self._typed = typed
        self._first: dict[tuple[int, str, int | None, int | None], QuarantinedRecord] = {}

    def reject(self, record: LogRecord, reason: str) -> None:
        """Collect a record of a known type that could not be decoded, or that is where it cannot belong.

        Args:
            record: The record.
            reason: What is wrong, in one sentence; names in it are escaped here.
        """
        self._note("undecodable", record, reason)

    def unknown(self, record: LogRecord, reason: str) -> None:
        """Collect a record of an unknown type or newer version."""
        self._note("unknown", record, reason)

    def inputs(self) -> list[PartitionInput]:
        """The first record of each kind in each window, by offset."""
        return [*sorted(self._first.values(), key=lambda item: item.offset)]

    def _note(self, kind: str, record: LogRecord, reason: str) -> None:
        window, key, value = self._windows.of(record.offset), record.key, record.value
        key_type, version = (_int16(key), _int16(value)) if self._typed else (None, None)
        known = self._first.get((window, kind, key_type, version))
        # Records can come out of order: those that wait to be decoded together come later (`Compactor`).
        if known is not None and known.offset <= record.offset:
            return
        cut = len(key or b"") > LONGEST_RECORD or len(value or b"") > LONGEST_RECORD
        first = QuarantinedRecord(
            partition=self._partition,
            offset=record.offset,
            record_time=record.timestamp,
            key_type=key_type,
            value_version=version,
            reason=visible(reason, LONGEST_REASON),
            key=None if key is None else key[:LONGEST_RECORD],
            value=None if value is None else value[:LONGEST_RECORD],
            key_size=None if key is None else len(key),
            value_size=None if value is None else len(value),
            sha256=hashlib.sha256((key or b"") + (value or b"")).hexdigest() if cut else None,
            topic=self._topic,
            kind=kind,
            window=window,
        )
        self._first[window, kind, key_type, version] = first
        self.held += _ITEM_BYTES + len(first.key or b"") + len(first.value or b"")


def unknown_type(record: LogRecord) -> str:
    """Why a record of the offsets log of an unknown type or newer version is in `quarantine`."""
    key_type, version = _int16(record.key), _int16(record.value)
    what = f"type {key_type}" if version is None else f"type {key_type}, value version {version},"
    return f"{what} is not known to this release; a newer broker may have written it"


def _int16(data: bytes | None) -> int | None:
    if data is None or len(data) < 2:
        return None
    return int.from_bytes(data[:2], "big", signed=True)
