"""What compaction has removed from a stretch of the log, and which groups that concerns.

The log cleaner removes records whose key has a later record, up to an offset that no API reports: the beginning of the
part it has not cleaned yet. Below that offset the last record of every key remains, and nothing shows what came before
it. So for a round in the middle of a cleaned stretch nobody knows what a group had committed by then: its last commit
below the round may have been removed for one above. Two things can be seen:

- **Missing offsets.** A log that was not cleaned has every offset, counting control records and aborted transactions.
  Where none is missing, nothing was removed.
- **A key that comes twice.** If the second of two records with one key had been cleaned over, the first would be gone.
  So a repeated key after the last missing offset marks the end of the cleaned part.

A removed record has given way to one that remains, of the same group, in the same stretch. So only the groups with
records between the first missing offset and the end can have lost any, and each of them is complete again after its
last such record: by then the newest record of each of its keys is known.

Two things remain hidden. Tombstones are removed as well (`delete.retention.ms`, a day by default), and with them
everything that they deleted. And while a cleaner is at work it replaces one segment after the other, so for some
seconds the log is cleaned in front and not yet behind, and a key that comes twice there ends the stretch too early.

Source of the rules: Kafka's `LogCleaner` and `MemoryRecords.filterTo` (2.0 to 4.3): a batch keeps its base and last
offset, records keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streaming.offsets_log.codec.record_columns import RecordColumns
from streaming.records import Compacted

# The size of the group's name follows the type in keys of every type (`schemas/`).
_SIZE_AT = 2
_NAME_AT = 4


@dataclass(frozen=True, slots=True)
class StretchEnd:
    """Where a stretch was found to end, and which groups it concerns; valid as long as `record` is still there.

    (If the log were cleaned beyond `end`, `record` would be gone. If it were cleaned up to there, only records would go
    that have given way to others in the stretch, so `newest` would stay as it is.)

    Attributes:
        first: First missing offset.
        record: Offset of the first record of the repeated key.
        key: The repeated key.
        end: Offset of the record that repeats it.
        newest: Offset of the last record before `end`, by the group's name.
    """

    first: int
    record: int
    key: bytes
    end: int
    newest: dict[bytes, int]


class CompactedStretches:
    """Follows one partition of the log, and finds its compacted stretches.

    Call `missing` for offsets that are not there, before the records behind them; `add` or `add_columns` for every
    record, in log order, while a stretch is `open`; `end_at` where its end is known already; and at the end `groups`.

    Attributes:
        newest_end: End of the newest stretch that a repeated key has ended; None before the first.
    """

    def __init__(self) -> None:
        self.newest_end: StretchEnd | None = None
        self._first: int | None = None
        self._last = -1
        self._seen: dict[bytes, int] = {}
        self._newest: dict[bytes, int] = {}
        self._found: dict[bytes, list[Compacted]] = {}

    @property
    def open(self) -> bool:
        """Whether a stretch has begun, and nothing has shown its end yet."""
        return self._first is not None

    def missing(self, first: int, last: int) -> None:
        """Report that offsets between these two, both included, are missing; not necessarily all of them."""
        if self._first is None:
            self._first = first
        self._last = max(self._last, last)
        self._seen.clear()

    def add(self, offset: int, key: bytes | None) -> None:
        """Process the next record that is there."""
        if self._first is None or key is None or offset < self._first:
            return
        if offset > self._last:
            record = self._seen.setdefault(key, offset)
            if record != offset:
                self.newest_end = StretchEnd(self._first, record, key, offset, dict(self._newest))
                self._close()
                return
        self._newest[_group(key)] = offset

    def add_columns(self, records: RecordColumns) -> None:
        """Process the next records."""
        for offset, key in zip(
            records.offset.tolist(), records.keys(np.arange(len(records), dtype=np.int64)), strict=True
        ):
            self.add(offset, key)

    def end_at(self, end: StretchEnd, since: int) -> None:
        """Take the known end of an open stretch, in place of the records from offset `since` on."""
        self._newest.update((group, offset) for group, offset in end.newest.items() if offset >= since)
        self._close()

    def groups(self) -> Iterator[tuple[str, list[Compacted]]]:
        """The groups that may have lost records, each with its stretches; an open stretch ends here."""
        self._close()
        for name, stretches in self._found.items():
            try:
                yield name.decode("utf-8"), stretches
            except UnicodeDecodeError:
                continue  # such a key belongs to no group, and is in `quarantine`

    def _close(self) -> None:
        if self._first is not None:
            for group, offset in self._newest.items():
                self._found.setdefault(group, []).append(Compacted(self._first, offset + 1))
        self._first = None
        self._seen.clear()
        self._newest.clear()


def _group(key: bytes) -> bytes:
    return key[_NAME_AT : _NAME_AT + int.from_bytes(key[_SIZE_AT:_NAME_AT], "big")]
