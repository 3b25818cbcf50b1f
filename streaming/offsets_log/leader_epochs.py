"""Leader epochs of one partition of the log, by offset.

Every record batch has the epoch of the leader that wrote it (KIP-101). The leader of a log partition coordinates the
groups in it, so another epoch means that their coordinator was elected again.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from streaming.offsets_log.codec.record_columns import Ints

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
        return self._epochs[place] if place >= 0 else UNKNOWN
