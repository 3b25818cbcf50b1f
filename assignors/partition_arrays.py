"""Partitions by topic in arrays, for members of large groups, so that not every topic needs a tuple."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import numpy as np
import numpy.typing as npt

from assignors.assignment import Partitions

__all__ = ["PackedPartitions", "pack"]

_Pair = tuple[str, tuple[int, ...]]

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PackedPartitions(Sequence[_Pair]):
    """A sequence of (topic, (partition, ...)), equal to the tuple of the same pairs; created by `pack`.

    Members that own partitions of the same topics may share one tuple of names. The arrays must not be modified.

    Attributes:
        topics: Topics in order; one may occur twice.
        lengths: Number of partitions of each, int64.
        numbers: Partition numbers of all topics, one topic after the other, int64.
    """

    topics: tuple[str, ...]
    lengths: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.topics)

    def __iter__(self) -> Iterator[_Pair]:
        numbers = self.numbers.tolist()
        start = 0
        for topic, length in zip(self.topics, self.lengths.tolist(), strict=True):
            yield topic, tuple(numbers[start : start + length])
            start += length

    @overload
    def __getitem__(self, place: int) -> _Pair: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[_Pair, ...]: ...
    def __getitem__(self, place: int | slice) -> _Pair | tuple[_Pair, ...]:
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedPartitions):
            return (
                self.topics == other.topics
                and np.array_equal(self.lengths, other.lengths)
                and np.array_equal(self.numbers, other.numbers)
            )
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


def pack(partitions: Mapping[str, Partitions] | Sequence[tuple[str, Partitions]]) -> PackedPartitions:
    """Store partitions by topic in arrays.

    Args:
        partitions: Partitions by topic, as `assign` returns them for a member, or pairs of a topic and its partitions.
            The order is kept.
    """
    if isinstance(partitions, PackedPartitions):
        return partitions
    pairs = partitions.items() if isinstance(partitions, Mapping) else partitions
    if not pairs:
        return PackedPartitions((), _NONE, _NONE)
    topics, lists = zip(*pairs, strict=True)
    each = list(map(len, lists))
    # (Members of large groups usually have one partition of each topic; then nothing need be added up.)
    alone = each.count(1) == len(each)
    lengths = np.ones(len(each), dtype=np.int64) if alone else np.array(each, dtype=np.int64)
    size = len(each) if alone else sum(each)
    return PackedPartitions(topics, lengths, np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=size))
