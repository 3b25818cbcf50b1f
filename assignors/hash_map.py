"""The iteration order of Java's `HashMap` and `HashSet`, by the hash codes of their keys.

Bucket = (h ^ (h >>> 16)) & (n - 1) with h the key's hashCode() and n the table's size: 16, doubled when there are more
than 0.75 n keys. Buckets are walked in ascending order. Inside a bucket `put` appends, `computeIfAbsent` inserts at the
front (OpenJDK 8 to 21), and a table that grows keeps the relative order. A bucket of nine keys makes Java resize the
table early or turns the bucket into a tree. This does not happen by accident, and we do not follow the order then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, permutations, product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from assignors.exceptions import CannotTell

_DEFAULT_TABLE = 16

# HashMap.TREEIFY_THRESHOLD.
_FULL_BUCKET = 8

# `put` makes a tree when it adds to a full bucket, `computeIfAbsent` when it fills one.
_FULL_COMPUTED = 7

_TOO_FULL = "more than eight keys fall into one bucket of a HashMap, whose order is then not reproduced"

_Key = TypeVar("_Key")

Codes = Sequence[int] | NDArray[np.uint32]
"""Hash codes as unsigned 32-bit numbers."""


def string_hash(text: str) -> int:
    """`String.hashCode()` as an unsigned 32-bit number: a polynomial of 31 over UTF-16 code units."""
    units: Iterable[int]
    if text.isascii():
        units = text.encode()
    else:
        units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2").tolist()
    result = 0
    for unit in units:
        result = (31 * result + unit) & 0xFFFFFFFF
    return result


def partition_hash(topic_hash: int, partition: int) -> int:
    """`TopicPartition.hashCode()` as an unsigned 32-bit number, from the hash of its topic."""
    return (31 * (31 + partition) + topic_hash) & 0xFFFFFFFF


def table_size(keys: int, smallest: int = _DEFAULT_TABLE) -> int:
    """Table size of a map or set that has held this many keys at once and began with a size, by default 16."""
    size = smallest
    while keys * 4 > size * 3:
        size *= 2
    return size


def in_hash_map(codes: Sequence[int], capacity: int = _DEFAULT_TABLE) -> list[int]:
    """Positions of keys in iteration order, after they were inserted in the given order into `new HashMap<>(capacity)`.

    Args:
        codes: Hash codes of distinct keys, in order of insertion.
        capacity: The map's initial capacity.

    Raises:
        CannotTell: A bucket became too full, at any size that the table has had.
    """
    smaller = _at_least(capacity)
    size = table_size(len(codes), smaller)
    while smaller < size:
        # The table had this size until it held one key more than three quarters of it.
        _buckets(codes[: smaller * 3 // 4 + 1], smaller)
        smaller *= 2
    return _in_table(codes, size)


def names_computed(names: Sequence[str], capacity: int) -> list[str]:
    """Names as `new HashMap<>(capacity)` iterates them after `computeIfAbsent` was called for each; repeated ones once.

    Args:
        names: Names in the order of the calls.
        capacity: The map's initial capacity.

    Raises:
        CannotTell: A bucket became too full, at any size that the table has had.
    """
    listed = list(dict.fromkeys(names))
    codes = list(map(string_hash, listed))
    return [listed[at] for at in in_computed_map(codes, capacity, len(set(names[:-1])))]


def in_hash_set(codes: Codes, listed: int | None = None) -> list[int]:
    """Positions of keys in the iteration order of `new HashSet<>(collection)`.

    Args:
        codes: As in `in_hash_map`.
        listed: Size of the collection, if it contains keys more than once.

    Raises:
        CannotTell: A bucket became too full.
    """
    count = len(codes) if listed is None else listed
    capacity = max(int(count / 0.75) + 1, _DEFAULT_TABLE)
    return _in_table(codes, 1 << (capacity - 1).bit_length())


def in_computed_map(codes: Sequence[int], capacity: int, largest: int) -> list[int]:
    """Positions of keys in the iteration order of a map that was filled with `computeIfAbsent` alone.

    It puts a new key before those of its bucket, enlarges the table at the start of the next call, and turns a
    bucket of eight keys into a tree.

    Args:
        codes: Hash codes of distinct keys, in the order in which they came first.
        capacity: The map's initial capacity.
        largest: Number of keys before the last call.

    Raises:
        CannotTell: A bucket became too full, at any size that the table has had.
    """
    smaller = _at_least(capacity)
    size = table_size(largest, smaller)
    while smaller < size:
        _buckets(codes[: smaller * 3 // 4 + 1], smaller, _FULL_COMPUTED)
        smaller *= 2
    buckets = _buckets(codes[::-1], size, _FULL_COMPUTED)
    backwards: list[int] = np.argsort(buckets, kind="stable").tolist()
    return [len(codes) - 1 - position for position in backwards]


def capacity_for(keys: int) -> int:
    """Initial capacity of `AssignorHelpers.newHashMap` (Kafka 4.2 and later) for this many expected keys."""
    return int((keys + 1) / 0.75 + 1)


def in_hash_order(names: Iterable[str]) -> list[str]:
    """Names as a HashMap iterates them after insertion in the given order; repeated ones once.

    Args:
        names: Names in order of insertion.

    Raises:
        CannotTell: A bucket became too full.
    """
    listed = list(dict.fromkeys(names))
    return [listed[position] for position in in_hash_map(list(map(string_hash, listed)))]


def names_in_hash_order(names: Sequence[str]) -> list[str]:
    """Names in the order of `new HashSet<>(names)`, in which a coordinator keeps the names of a member's record.

    Raises:
        CannotTell: A bucket became too full.
    """
    listed = list(dict.fromkeys(names))
    return [listed[position] for position in in_hash_set(list(map(string_hash, listed)), len(names))]


def member_orders(member_ids: Iterable[str], most: int) -> list[list[str]]:
    """Possible orders of members in a HashMap of default capacity, over all orders of insertion.

    Only members that share a bucket can have several orders; those of the last bucket change fastest. A coordinator
    inserts members in the order of a `TimelineHashMap`, which no record shows, so a comparison with its log tries
    these; mostly there is one.

    Args:
        member_ids: The members.
        most: The number of orders that are wanted: eight members of one bucket alone have 40,320.

    Raises:
        CannotTell: A bucket is too full.
    """
    listed = list(member_ids)
    codes = list(map(string_hash, listed))
    size = table_size(len(listed))
    buckets: dict[int, list[str]] = {}
    for position in _in_table(codes, size):
        buckets.setdefault(_spread(codes[position]) & (size - 1), []).append(listed[position])
    turned = [list(islice(permutations(bucket), most)) for bucket in buckets.values()]
    return [list(chain.from_iterable(order)) for order in islice(product(*turned), most)]


def first_in_set(codes: Mapping[_Key, int], largest: int) -> _Key:
    """The element that a HashSet iterates first.

    Args:
        codes: Hash codes by element, in order of insertion; not empty.
        largest: Most elements that the set has held at once: its table never shrinks.
    """
    mask = table_size(largest) - 1
    return min(codes, key=lambda element: _spread(codes[element]) & mask)


def _at_least(capacity: int) -> int:
    """`HashMap.tableSizeFor`: the next power of two."""
    return 1 << max(0, capacity - 1).bit_length()


def _spread(code: int) -> int:
    return code ^ (code >> 16)


def _in_table(codes: Codes, size: int) -> list[int]:
    """Positions of keys in the iteration order of a table of this size; refuses full buckets."""
    if len(codes) <= _FULL_BUCKET:
        few = codes.tolist() if isinstance(codes, np.ndarray) else codes
        return sorted(range(len(few)), key=lambda position: _spread(few[position]) & (size - 1))
    order: list[int] = np.argsort(_buckets(codes, size), kind="stable").tolist()
    return order


def _buckets(codes: Codes, size: int, most: int = _FULL_BUCKET) -> NDArray[np.int64]:
    """The bucket of each key in a table of this size; refuses those with more keys than `most`."""
    spread = np.asarray(codes, dtype=np.uint32)
    buckets = ((spread ^ (spread >> 16)) & np.uint32(size - 1)).astype(np.int64)
    if np.bincount(buckets, minlength=1).max() > most:
        raise CannotTell(_TOO_FULL)
    return buckets
