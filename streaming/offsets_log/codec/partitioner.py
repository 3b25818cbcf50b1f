"""The partition of the offsets log that holds a group: `Utils.abs(groupId.hashCode()) % partitions`.

Source: `GroupMetadataManager.partitionFor` (Kafka 3.9.1), `GroupCoordinatorService.partitionFor` (4.x).
`hashCode` is Java's String hash over UTF-16 code units, wrapping at 32 bits; `Utils.abs(Integer.MIN_VALUE)`
is 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

__all__ = ["java_hash", "partition_for"]

# As many groups as the largest clusters we know of; a miss costs some microseconds, an entry about 200 bytes.
_GROUPS_KEPT = 65_536


def java_hash(text: str) -> int:
    """`String.hashCode()` of Java: an int32. A lone surrogate counts as the code unit it is."""
    value = 0
    for unit in np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2").tolist():
        value = (31 * value + unit) & 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


@lru_cache(maxsize=_GROUPS_KEPT)
def partition_for(group: str, partitions: int) -> int:
    """Partition of the offsets log that holds all records of a group.

    Args:
        group: Group id.
        partitions: Actual partition count of `__consumer_offsets`, at least 1.
    """
    value = java_hash(group)
    return (0 if value == -0x8000_0000 else abs(value)) % partitions
