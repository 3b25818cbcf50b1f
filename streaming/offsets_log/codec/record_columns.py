"""Records as columns over one buffer, which a reader of record batches returns instead of Python values.

And the leader epochs of their batches. Every record batch has the epoch of the leader that wrote it (KIP-101). The
leader of a log partition coordinates the groups in it, so another epoch means that their coordinator was elected again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

PADDING = 256
"""Bytes that follow the last record's in the buffer: reads of a fixed width may go beyond a record's end."""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """One row per record, in log order.

    Attributes:
        data: Holds keys and values, and at least `PADDING` further bytes behind them.
        offset: Log offset, ascending.
        timestamp: Record timestamp, ms.
        key_start: Where the key begins in `data`.
        key_size: Its bytes; -1 for null.
        value_start: Where the value begins.
        value_size: Its bytes; -1 for null, a tombstone.
    """

    data: Bytes
    offset: Ints
    timestamp: Ints
    key_start: Ints
    key_size: Ints
    value_start: Ints
    value_size: Ints

    def __len__(self) -> int:
        return int(self.offset.size)

    def part(self, start: int, end: int) -> RecordColumns:
        """Rows [start, end)."""
        return RecordColumns(self.data, *(getattr(self, name)[start:end] for name in _COLUMNS))

    def where(self, mask: npt.NDArray[np.bool_]) -> RecordColumns:
        """The rows selected by a mask."""
        return RecordColumns(self.data, *(getattr(self, name)[mask] for name in _COLUMNS))

    def keys(self, rows: Ints) -> list[bytes | None]:
        """Keys of several rows: a fifth of the time of reading each by itself."""
        data = self.data.data
        places = zip(self.key_start[rows].tolist(), self.key_size[rows].tolist(), strict=True)
        return [None if size < 0 else data[start : start + size].tobytes() for start, size in places]

    def key(self, row: int) -> bytes | None:
        """Key of one row."""
        return self._bytes(int(self.key_start[row]), int(self.key_size[row]))

    def value(self, row: int) -> bytes | None:
        """Value of one row."""
        return self._bytes(int(self.value_start[row]), int(self.value_size[row]))

    def _bytes(self, start: int, size: int) -> bytes | None:
        if size < 0:
            return None
        return self.data[start : start + size].tobytes()


_COLUMNS = [field.name for field in fields(RecordColumns)][1:]


def columns_of(
    offsets: Sequence[int], timestamps: Sequence[int], keys: Sequence[bytes | None], values: Sequence[bytes | None]
) -> RecordColumns:
    """Records in columns of Python values as columns over one buffer."""
    texts = [*keys, *values]
    known = [text or b"" for text in texts]
    sizes = np.fromiter(map(len, known), np.int64, len(known))
    starts = np.cumsum(sizes) - sizes
    sizes[[text is None for text in texts]] = -1
    data = np.frombuffer(b"".join([*known, bytes(PADDING)]), np.uint8)
    of_log, count = np.array([offsets, timestamps], np.int64), len(keys)
    return RecordColumns(data, of_log[0], of_log[1], starts[:count], sizes[:count], starts[count:], sizes[count:])


def rows_at(data: Bytes, starts: Ints, width: int) -> Bytes:
    """The `width` bytes at each start, one row each, copied."""
    # NumPy copies an item of a void type in one piece, whatever its alignment: twice as fast as a row of a sliding
    # window, and ten times as fast as a structured item.
    overlapping: npt.NDArray[np.void] = np.ndarray((data.size - width + 1,), f"V{width}", data, 0, (1,))
    return overlapping[starts].view(np.uint8).reshape(starts.size, width)


UNKNOWN = -1
"""Epoch of batches from before magic 2."""


class LeaderEpochs:
    """Call `add` for all batches in log order; `at` answers for the offsets added so far."""

    def __init__(self) -> None:
        """Begin with no batch."""
        self._firsts: list[int] = []
        self._epochs: list[int] = []

    def add(self, first_offset: Ints, epoch: Ints) -> None:
        """Note batches: the first offset and the epoch of each; some may have been added before."""
        if not epoch.size:
            return
        changes = np.flatnonzero(np.diff(epoch, prepend=self._epochs[-1] if self._epochs else epoch[0] - 1))
        for row in changes.tolist():
            if not self._firsts or self._firsts[-1] < first_offset[row]:
                self._firsts.append(int(first_offset[row]))
                self._epochs.append(int(epoch[row]))

    def at(self, offset: int) -> int:
        """Epoch of the batch that contains an offset; `UNKNOWN` before the first batch."""
        place = bisect_right(self._firsts, offset) - 1
        if place >= 0:
            return self._epochs[place]
        return UNKNOWN
