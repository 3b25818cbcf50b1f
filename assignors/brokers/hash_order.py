"""The iteration order of Java's `HashMap` and `HashSet` by the hash codes of their keys.

As `assignors.hash_map` tells it for strings, here for any key, with a table size chosen at construction, and with
a refusal where a bucket grows so full (nine keys) that Java resizes early or turns it into a tree: that does not
happen by accident, and the order is not followed then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, permutations

import numpy as np
from numpy.typing import NDArray

from assignors.exceptions import CannotTell
from assignors.hash_map import string_hashes

__all__ = [
    "grown",
    "in_hash_map",
    "in_hash_set",
    "member_orders",
    "members_in_hash_order",
    "names_in_hash_order",
    "order_in_table",
    "sized_for",
]

Codes = Sequence[int] | NDArray[np.uint32]

_SMALLEST = 16
_TREEIFY_THRESHOLD = 8
# Below this many keys a Python sort is faster than arrays.
_FEW = 64


def grown(count: int) -> int:
    """Size of a table of default capacity after so many keys were put one by one."""
    size = _SMALLEST
    while count * 4 > size * 3:
        size *= 2
    return size


def sized_for(count: int) -> int:
    """Size of the table of `new HashSet<>(collection)` for a collection of that size."""
    capacity = max(int(count / 0.75) + 1, _SMALLEST)
    return 1 << (capacity - 1).bit_length()


def in_hash_map(codes: Sequence[int]) -> list[int]:
    """Positions of keys in iteration order, after they were put into a map of default capacity in the given order.

    Args:
        codes: Hash codes of keys that are all different, unsigned 32-bit, in order of insertion.

    Raises:
        CannotTell: A bucket grew too full.
    """
    size = grown(len(codes))
    smaller = _SMALLEST
    while smaller < size:
        # The table had this size until one key more than three quarters of it were in.
        _refuse_trees(codes[: smaller * 3 // 4 + 1], smaller)
        smaller *= 2
    return order_in_table(codes, size)


def in_hash_set(codes: Codes, listed: int | None = None) -> list[int]:
    """Positions of keys in the iteration order of `new HashSet<>(collection)`.

    Args:
        codes: As in `in_hash_map`.
        listed: Size of the collection, if keys stood in it more than once.

    Raises:
        CannotTell: A bucket grew too full.
    """
    return order_in_table(codes, sized_for(len(codes) if listed is None else listed))


def order_in_table(codes: Codes, size: int) -> list[int]:
    """Positions of keys in the iteration order of a table of that size.

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
    """Member ids as the keys of a HashMap of default capacity into which they were put in the given order.

    Raises:
        CannotTell: A bucket grew too full.
    """
    listed = list(member_ids)
    return [listed[position] for position in in_hash_map(string_hashes(listed))]


def names_in_hash_order(names: Sequence[str]) -> list[str]:
    """Names as `new HashSet<>(names)` iterates them: how a coordinator keeps what a member's record lists.

    Raises:
        CannotTell: A bucket grew too full.
    """
    listed = list(dict.fromkeys(names))
    return [listed[position] for position in in_hash_set(string_hashes(listed), len(names))]


def member_orders(member_ids: Iterable[str]) -> Iterator[list[str]]:
    """Every order in which members can stand in a HashMap of default capacity, whatever order they were put in.

    Only members that share a bucket can stand in several orders. No record holds in which order a coordinator puts
    them in, that of a `TimelineHashMap`: whoever compares with its log tries these, of which there is mostly one.

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
    """Every order of every bucket, the last one's changing first.

    (`itertools.product` would make all orders of each bucket before the first: eight keys have 40,320, and anybody can
    give a group members whose ids share buckets.)
    """
    now = list(buckets)
    turning = [place for place, bucket in enumerate(buckets) if len(bucket) > 1]
    left = {place: permutations(buckets[place]) for place in turning}
    for place in turning:
        now[place] = next(left[place])
    while True:
        yield now
        for place in reversed(turning):
            following = next(left[place], None)
            if following is not None:
                now[place] = following
                break
            left[place] = permutations(buckets[place])
            now[place] = next(left[place])
        else:
            return


def _refuse_trees(codes: Codes, size: int) -> None:
    if len(codes) <= _TREEIFY_THRESHOLD:
        return
    spread = np.asarray(codes, dtype=np.uint32)
    buckets = ((spread ^ (spread >> 16)) & np.uint32(size - 1)).astype(np.int64)
    if np.bincount(buckets).max() > _TREEIFY_THRESHOLD:
        reason = "more than eight keys fall into one bucket of a HashMap, whose order is not followed then"
        raise CannotTell(reason)
