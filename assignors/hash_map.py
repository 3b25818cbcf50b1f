"""The iteration order of a `java.util.HashMap` with default capacity, keyed by strings.

Bucket = (h ^ (h >>> 16)) & (n - 1) with h = String.hashCode() and n the table's size: 16, doubled when there are more
than 0.75 n keys. Buckets are walked in ascending order. Inside a bucket `put` appends, `computeIfAbsent` inserts at the
front (OpenJDK 8 to 21), and a table that grows keeps the relative order. We do not follow buckets that turn into trees
(nine keys and more in one bucket), which does not happen by accident.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

_SMALLEST_TABLE = 16

_Key = TypeVar("_Key")

# A ninth key in a bucket makes a table below 64 grow, and turns the bucket of a larger table into a tree
# (HashMap.TREEIFY_THRESHOLD, MIN_TREEIFY_CAPACITY): both change the order.
_TREE = 9

# Fewer texts are hashed faster one by one.
_WORTH_ARRAYS = 32


def string_hash(text: str) -> int:
    """`String.hashCode()` as an unsigned 32-bit number: a polynomial of 31 over UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for index in range(0, len(units), 2):
        result = (31 * result + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return result


def in_hash_order(keys: Iterable[str], *, newest_first: bool = False) -> list[str]:
    """Order keys as a HashMap iterates them after insertion in the given order; repeated keys once.

    Args:
        keys: Keys in order of insertion.
        newest_first: Whether they were inserted by `computeIfAbsent` instead of `put`.
    """
    inserted = list(dict.fromkeys(keys))
    mask = table_size(len(inserted)) - 1
    if newest_first:
        inserted.reverse()
    return sorted(inserted, key=lambda key: _spread(string_hash(key)) & mask)


def table_size(keys: int) -> int:
    """Table size of a map or set that has held this many keys at once and began with the default size."""
    size = _SMALLEST_TABLE
    while keys * 4 > size * 3:
        size *= 2
    return size


def in_hash_order_or_none(keys: Iterable[str]) -> list[str] | None:
    """The same as `in_hash_order`; None if the order may be another.

    The order may differ when many keys share a bucket, at any size that the table has had.
    """
    inserted = list(dict.fromkeys(keys))
    if len(inserted) < _TREE:
        return in_hash_order(inserted)
    codes = [_spread(code) for code in string_hashes(inserted)]
    size = _SMALLEST_TABLE
    while True:
        # Keys that a table of this size holds before it grows, including the one that makes it grow.
        held = codes[: size * 3 // 4 + 1]
        if max(Counter(code & (size - 1) for code in held).values()) >= _TREE:
            return None
        if len(codes) * 4 <= size * 3:
            break
        size *= 2
    mask = size - 1
    return [inserted[position] for position in sorted(range(len(codes)), key=lambda position: codes[position] & mask)]


def string_hashes(texts: Sequence[str]) -> list[int]:
    """`string_hash` of each."""
    if len(texts) < _WORTH_ARRAYS or not all(map(str.isascii, texts)):
        return [string_hash(text) for text in texts]
    codes = np.zeros(len(texts), dtype=np.uint32)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    letters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).astype(np.uint32)
    starts = np.cumsum(lengths) - lengths
    longer = np.arange(len(texts))
    for position in range(int(lengths.max())):
        longer = longer[lengths[longer] > position]
        codes[longer] = codes[longer] * np.uint32(31) + letters[starts[longer] + position]
    result: list[int] = codes.tolist()
    return result


def partition_hash(topic_hash: int, partition: int) -> int:
    """`TopicPartition.hashCode()` as an unsigned 32-bit number, from the hash of its topic."""
    return (31 * (31 + partition) + topic_hash) & 0xFFFFFFFF


def first_in_set(codes: Mapping[_Key, int], largest: int) -> _Key:
    """The element that a HashSet iterates first.

    Args:
        codes: Hash codes by element, in order of insertion; not empty.
        largest: Most elements that the set has held at once: its table never shrinks.
    """
    mask = table_size(largest) - 1
    return min(codes, key=lambda element: _spread(codes[element]) & mask)


def _spread(code: int) -> int:
    return code ^ (code >> 16)
