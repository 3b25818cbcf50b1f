"""The partition of `__consumer_offsets` that holds all records of a group.

Kafka: `Utils.abs(groupId.hashCode()) % partitions`, by `GroupMetadataManager.partitionFor` (Kafka 3.9.1) and
`GroupCoordinatorService.partitionFor` (4.x). `hashCode` is Java's String hash over UTF-16 code units, wrapping at 32
bits; `Utils.abs(Integer.MIN_VALUE)` is 0.

Redpanda: the jump consistent hash (arXiv 1406.2294) of XXH64 over the UTF-8 bytes, by `coordinator_ntp_mapper.h`. Its
cluster ids begin with "redpanda.", so that clients can tell (`handlers/metadata.cc`).
"""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np

_REDPANDA = "redpanda."

# As many groups as the largest clusters we know of; a miss costs some microseconds, an entry about 200 bytes. An id can
# have 32 KB: those of more characters than people write are not kept.
_GROUPS_KEPT = 65_536
_LONGEST_KEPT = 256

# Above this many code units NumPy is faster than Python.
_SHORT = 64


def partition_for(group: str, partitions: int, cluster_id: str | None = None) -> int:
    """Partition of the offsets log that holds all records of a group.

    Args:
        group: Group id.
        partitions: Actual partition count of `__consumer_offsets`, at least 1.
        cluster_id: Kafka's own id of the cluster, which tells whose brokers these are; None for Kafka's.
    """
    redpanda = cluster_id is not None and cluster_id.startswith(_REDPANDA)
    return (_kept if len(group) <= _LONGEST_KEPT else _partition)(group, partitions, redpanda)


def _partition(group: str, partitions: int, redpanda: bool) -> int:
    if redpanda:
        return jump_hash(xxh64(group.encode("utf-8", "surrogatepass")), partitions)
    value = java_hash(group)
    return (0 if value == -0x8000_0000 else abs(value)) % partitions


_kept = lru_cache(maxsize=_GROUPS_KEPT)(_partition)


def java_hash(text: str) -> int:
    """`String.hashCode()` of Java: an int32. A lone surrogate counts as the code unit it is."""
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")
    value = 0
    if units.size > _SHORT:
        # The sum of unit * 31 ** (units that follow); like Java's int, uint32 wraps.
        powers = np.full(units.size, 31, np.uint32)
        powers[0] = 1
        value = int(np.dot(units.astype(np.uint32), np.cumprod(powers, dtype=np.uint32)[::-1]))
    else:
        for unit in units.tolist():
            value = (31 * value + unit) & 0xFFFF_FFFF
    if value & 0x8000_0000:
        return value - 0x1_0000_0000
    return value


def jump_hash(key: int, buckets: int) -> int:
    """The bucket of a 64-bit key: where the last jump below `buckets` lands."""
    bucket, jump = -1, 0
    while jump < buckets:
        bucket = jump
        key = (key * 2_862_933_555_777_941_757 + 1) & _MASK
        jump = int((bucket + 1) * (float(1 << 31) / float((key >> 33) + 1)))
    return bucket


_MASK = 0xFFFF_FFFF_FFFF_FFFF
_PRIMES = (
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
)


def xxh64(data: bytes) -> int:
    """XXH64 with the seed 0, by its specification (xxHash's `doc/xxhash_spec.md`, 0.1.1)."""
    first, second, third, fourth, fifth = _PRIMES
    whole = len(data) - len(data) % 32
    if whole:
        lanes = [(first + second) & _MASK, second, 0, -first & _MASK]
        for at in range(0, whole, 32):
            lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
        value = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * first + fourth) & _MASK
    else:
        value = fifth
    value = (value + len(data)) & _MASK
    for at in range(whole, len(data) - 7, 8):
        value = (_rotated(value ^ _round(0, *struct.unpack_from("<Q", data, at)), 27) * first + fourth) & _MASK
    at = len(data) - len(data) % 8
    if len(data) - at >= 4:
        value = (_rotated(value ^ struct.unpack_from("<I", data, at)[0] * first & _MASK, 23) * second + third) & _MASK
        at += 4
    for byte in data[at:]:
        value = _rotated(value ^ byte * fifth & _MASK, 11) * first & _MASK
    value = (value ^ value >> 33) * second & _MASK
    value = (value ^ value >> 29) * third & _MASK
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK
