"""The iteration order of Java's `HashMap` and `HashSet` by the hash codes of their keys.

`assignors.hash_map` does this for strings; this module takes any key and a table size chosen at construction, and
refuses a bucket so full (nine keys) that Java resizes the table early or turns the bucket into a tree. This does not
happen by accident, and we do not follow the order then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, permutations

import numpy as np
from numpy.typing import NDArray

from assignors.exceptions import CannotTell
from assignors.hash_map import string_hashes

Codes = Sequence[int] | NDArray[np.uint32]

_SMALLEST = 16
_TREEIFY_THRESHOLD = 8
# With fewer keys a Python sort is faster than arrays.
_FEW = 64


def grown(count: int) -> int:
    """Table size of a map of default capacity after `count` keys were inserted one by one."""
    size = _SMALLEST
    while count * 4 > size * 3:
        size *= 2
    return size


def sized_for(count: int) -> int:
    """Table size of `new HashSet<>(collection)` for a collection of this size."""
    capacity = max(int(count / 0.75) + 1, _SMALLEST)
    return 1 << (capacity - 1).bit_length()


def in_hash_map(codes: Sequence[int]) -> list[int]:
    """Positions of keys in iteration order, after they were inserted in the given order into a default-capacity map.

    Args:
        codes: Hash codes of distinct keys, unsigned 32-bit, in order of insertion.

    Raises:
        CannotTell: A bucket became too full.
    """
    size = grown(len(codes))
    smaller = _SMALLEST
    while smaller < size:
        # The table had this size until it held one key more than three quarters of it.
        _refuse_trees(codes[: smaller * 3 // 4 + 1], smaller)
        smaller *= 2
    return order_in_table(codes, size)


def in_hash_set(codes: Codes, listed: int | None = None) -> list[int]:
    """Positions of keys in the iteration order of `new HashSet<>(collection)`.

    Args:
        codes: As in `in_hash_map`.
        listed: Size of the collection, if it contains keys more than once.

    Raises:
        CannotTell: A bucket became too full.
    """
    return order_in_table(codes, sized_for(len(codes) if listed is None else listed))


def order_in_table(codes: Codes, size: int) -> list[int]:
    """Positions of keys in the iteration order of a table of this size.

    Raises:
        CannotTell: A bucket is too full.
    """
    _refuse_trees(codes, size)
    if len(codes) < _FEW:
        few = codes.tolist() if isinstance(codes, np.ndarray) else codes
        return sorted(range(len(few)), key=lambda position: (few[position] ^ few[position] >> 16) & (size - 1))
    spread = np.asarray(codes, dtype=np.uint32)
    order: list[int] = np.argsort((spread ^ (spread >> 16)) & np.uint32(size - 1), kind="stable").tolist()
    return order


def members_in_hash_order(member_ids: Iterable[str]) -> list[str]:
    """Member ids in the order of a HashMap of default capacity, inserted in the given order.

    Raises:
        CannotTell: A bucket became too full.
    """
    listed = list(member_ids)
    return [listed[position] for position in in_hash_map(string_hashes(listed))]


def names_in_hash_order(names: Sequence[str]) -> list[str]:
    """Names in the order of `new HashSet<>(names)`, in which a coordinator keeps the names of a member's record.

    Raises:
        CannotTell: A bucket became too full.
    """
    listed = list(dict.fromkeys(names))
    return [listed[position] for position in in_hash_set(string_hashes(listed), len(names))]


def member_orders(member_ids: Iterable[str]) -> Iterator[list[str]]:
    """All possible orders of members in a HashMap of default capacity, over all orders of insertion.

    Only members that share a bucket can have several orders. A coordinator inserts them in the order of a
    `TimelineHashMap`, which no record shows, so a comparison with its log tries all of these; mostly there is one.

    Raises:
        CannotTell: A bucket is too full.
    """
    listed = list(member_ids)
    codes = string_hashes(listed)
    size = grown(len(listed))
    buckets: dict[int, list[str]] = {}
    for position in order_in_table(codes, size):
        code = codes[position]
        buckets.setdefault((code ^ code >> 16) & (size - 1), []).append(listed[position])
    yield from map(list, map(chain.from_iterable, _every_order(list(buckets.values()))))


def _every_order(buckets: Sequence[Sequence[str]]) -> Iterator[Sequence[Sequence[str]]]:
    """Every order of every bucket; the last bucket's changes fastest.

    (`itertools.product` would build all orders of each bucket before it yields the first: eight keys have 40,320, and
    anyone can fill a group with members whose ids share buckets.)
    """
    now = list(buckets)
    turning = [number for number, bucket in enumerate(buckets) if len(bucket) > 1]
    left = {number: permutations(buckets[number]) for number in turning}
    for number in turning:
        now[number] = next(left[number])
    while True:
        yield now
        for number in reversed(turning):
            following = next(left[number], None)
            if following is not None:
                now[number] = following
                break
            left[number] = permutations(buckets[number])
            now[number] = next(left[number])
        else:
            return


def _refuse_trees(codes: Codes, size: int) -> None:
    if len(codes) <= _TREEIFY_THRESHOLD:
        return
    spread = np.asarray(codes, dtype=np.uint32)
    buckets = ((spread ^ (spread >> 16)) & np.uint32(size - 1)).astype(np.int64)
    if np.bincount(buckets).max() > _TREEIFY_THRESHOLD:
        reason = "more than eight keys fall into one bucket of a HashMap, whose order is then not reproduced"
        raise CannotTell(reason)
