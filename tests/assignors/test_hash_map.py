"""The order of `java.util.HashMap`; expected values are from the class itself."""

from __future__ import annotations

from random import Random

from assignors.hash_map import in_hash_order, in_hash_order_or_none, string_hash, string_hashes


def test_strings_hash_as_in_java() -> None:
    assert string_hash("") == 0
    assert string_hash("hello") == 99162322
    assert string_hash("polygenelubricants") == 0x80000000
    assert string_hash("\U0001f600") == 0x1B0D63


def test_many_hashes_at_once_are_the_hashes_one_by_one() -> None:
    random = Random(0)
    for alphabet in ("abc-09", "ab\u00e9\U0001f600"):
        texts = ["".join(random.choices(alphabet, k=random.randrange(60))) for _ in range(200)]
        assert string_hashes(texts) == [string_hash(text) for text in texts]


def test_the_checked_order_is_the_order() -> None:
    random = Random(1)
    for size in (0, 1, 8, 9, 12, 13, 50, 1000):
        keys = [f"member-{random.random()}" for _ in range(size)]
        assert in_hash_order_or_none(keys) == in_hash_order(keys)


def test_nine_keys_in_one_bucket_are_not_followed() -> None:
    collide = [a + b + c + d for a in ("Aa", "BB") for b in ("Aa", "BB") for c in ("Aa", "BB") for d in ("Aa", "BB")]
    assert len({string_hash(key) for key in collide}) == 1

    assert in_hash_order_or_none(collide[:8]) == collide[:8]
    assert in_hash_order_or_none(collide[:9]) is None
    assert in_hash_order_or_none([*(f"k{n}" for n in range(100)), *collide[:9]]) is None


def test_nine_keys_share_a_bucket_of_the_smallest_table_only_as_long_as_there_is_that_table() -> None:
    # A text of one character has its code as hash: multiples of 16 share a bucket of 16, and are in two of 32.
    # The thirteenth key is the last one of the table of 16: it comes in, and the table grows.
    alike, others = [chr(16 * number) for number in range(16, 25)], [chr(256 + number) for number in range(1, 6)]
    assert in_hash_order_or_none([*alike[:8], *others[:4], alike[8]]) is None
    of_32 = [*alike[::2], others[0], others[1], others[2], others[3], others[4], *alike[1::2]]
    assert in_hash_order_or_none([*alike[:8], *others, alike[8]]) == of_32
    assert in_hash_order_or_none([*alike, *others[:3]]) is None
    assert in_hash_order_or_none([*alike[:8], *others[:4]]) == [*alike[:8], *others[:4]]
