"""Decoded keys that lead to no window (dropped, junk, other types): the same ones come again and again."""

from __future__ import annotations

from streaming.offsets_log.codec.keys import Key, decode_key

# Cleared when full, so that a log of ever new keys cannot fill the memory.
_KEPT = 65_536
_BYTES_KEPT = 16 * 1024 * 1024


class DecodedKeys:
    """A cache of `decode_key`, limited in keys and in their bytes."""

    def __init__(self) -> None:
        self._keys: dict[bytes, Key] = {}
        self._bytes = 0

    def of(self, key: bytes | None) -> Key:
        """`decode_key` of a key."""
        if key is None:
            return decode_key(None)
        decoded = self._keys.get(key)
        if decoded is None:
            decoded = decode_key(key)
            if len(self._keys) >= _KEPT or self._bytes >= _BYTES_KEPT:
                self._keys.clear()
                self._bytes = 0
            self._keys[key] = decoded
            self._bytes += len(key)
        return decoded
