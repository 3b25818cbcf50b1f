"""Damaged real records: possible effects of disks, networks, other producers and future versions on the log."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

# Lengths and counts that have broken decoders: null, below null, the largest of 8, 16 and 32 bits, just beyond these.
_LENGTHS = [-1, -2, 0, 1, 127, 128, 32_767, 32_768, 65_535, 2**31 - 1, -(2**31)]

# Not UTF-8: a lone continuation, an overlong slash, a surrogate, beyond Unicode, a cut sequence.
_NOT_UTF8 = [b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"]


def mutated_records(
    real: list[tuple[bytes, bytes | None]], count: int, seed: int
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """`count` records; each is a real one with one to three kinds of damage to its key or value, or none."""
    # The seed makes failures repeatable; nothing here is secret.
    chance = random.Random(seed)
    for _ in range(count):
        key: bytes | None
        key, value = chance.choice(real)
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            # Mostly values are damaged, because they have the layouts; a damaged key is seldom decoded that far.
            if value and chance.random() < 0.8:
                value = _damaged(value, chance, real)
            elif key:
                key = _damaged(key, chance, real)
        if chance.random() < 0.01:
            value = None
        if chance.random() < 0.002:
            key = None
        yield key, value


def _damaged(data: bytes, chance: random.Random, real: list[tuple[bytes, bytes | None]]) -> bytes:
    if not data:
        return bytes(chance.randrange(5))
    at = chance.randrange(len(data))
    match chance.randrange(9):
        case 0:  # a flipped bit
            return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        case 1:  # another byte
            return data[:at] + chance.randbytes(1) + data[at + 1 :]
        case 2:  # cut
            return data[:at]
        case 3:  # the head of one record with the tail of another
            key, value = chance.choice(real)
            other = value or key
            return data[:at] + other[chance.randrange(len(other)) :]
        case 4:  # a hostile int16 length, or version
            return data[:at] + struct.pack(">h", _wrapped(chance.choice(_LENGTHS), 16)) + data[at + 2 :]
        case 5:  # a hostile int32 length or count
            return data[:at] + struct.pack(">i", chance.choice(_LENGTHS)) + data[at + 4 :]
        case 6:  # not UTF-8, of the same size or in between
            junk = chance.choice(_NOT_UTF8)
            return data[:at] + junk + data[at + chance.choice([0, len(junk)]) :]
        case 7:  # another version
            return struct.pack(">h", chance.choice([-1, 0, 1, 2, 3, 4, 5, 9, 32_767])) + data[2:]
        case _:  # bytes in excess
            return data + chance.randbytes(chance.randrange(1, 40))


def _wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half
