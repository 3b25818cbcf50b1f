"""The iteration order of a `java.util.HashMap` with default capacity, keyed by strings.

Bucket = (h ^ (h >>> 16)) & (n - 1) with h = String.hashCode() and n the table's size: 16, doubled when there are
more than 0.75 n keys. Buckets are walked in ascending order. Inside a bucket `put` appends, `computeIfAbsent`
puts in front (OpenJDK 8 to 21), and a table that grows keeps the relative order. Buckets that turn into trees
(nine keys and more in one bucket) are not followed; that does not happen by accident.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["in_hash_order", "string_hash"]

_SMALLEST_TABLE = 16


def string_hash(text: str) -> int:
    """`String.hashCode()` as an unsigned 32-bit number: a polynomial of 31 over UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for index in range(0, len(units), 2):
        result = (31 * result + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return result


def in_hash_order(keys: Iterable[str], *, newest_first: bool = False) -> list[str]:
    """Order keys as a HashMap iterates them after they were inserted in the given order; repeated keys once.

    Args:
        keys: Keys in order of insertion.
        newest_first: Inserted by `computeIfAbsent` instead of `put`.
    """
    inserted = list(dict.fromkeys(keys))
    size = _SMALLEST_TABLE
    while len(inserted) * 4 > size * 3:
        size *= 2
    if newest_first:
        inserted.reverse()

    def bucket(key: str) -> int:
        code = string_hash(key)
        return (code ^ (code >> 16)) & (size - 1)

    return sorted(inserted, key=bucket)
