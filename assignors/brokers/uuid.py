"""`org.apache.kafka.common.Uuid`: its text form, hash code and order."""

from __future__ import annotations

import binascii
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from assignors.exceptions import BadUuid

_LENGTH = 16
_SIGN = 1 << 63


class Uuid(NamedTuple):
    """The two halves of a UUID as Java's signed longs, so that it compares like `Uuid.compareTo`.

    Attributes:
        most: Most significant bits.
        least: Least significant bits.
        code: `hashCode()` as an unsigned 32-bit number.
        text: Unpadded URL-safe base64, as Kafka prints it.
    """

    most: int
    least: int
    code: int
    text: str


@lru_cache(maxsize=1 << 17)
def uuid_of(text: str) -> Uuid:
    """Parse Kafka's text form; padding is ignored, as in `Uuid.fromString`.

    Raises:
        BadUuid: The text is not a UUID.
    """
    stripped = text.rstrip("=")
    try:
        data = b64decode(stripped + "=" * (-len(stripped) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        data = b""
    if len(data) != _LENGTH:
        message = f"Topic id {text[:100]!r} is not a UUID: give 16 bytes in URL-safe base64, as Kafka prints them."
        raise BadUuid(message)
    most, least = int.from_bytes(data[:8], "big"), int.from_bytes(data[8:], "big")
    mixed = most ^ least
    return Uuid(
        most - 2 * (most & _SIGN),
        least - 2 * (least & _SIGN),
        (mixed >> 32 ^ mixed) & 0xFFFFFFFF,
        urlsafe_b64encode(data).rstrip(b"=").decode("ascii"),
    )


def texts_of(uuids: Iterable[Uuid]) -> list[str]:
    """UUIDs as Kafka prints them."""
    return [uuid.text for uuid in uuids]
