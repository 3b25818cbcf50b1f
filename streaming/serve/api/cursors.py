"""Opaque cursors: where a page ended, by the key of its last row, so that rows that come and go shift nothing."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What fits into 64 bits, as the tables' numbers and DuckDB's parameters do.
_LARGEST = 2**63 - 1


class CursorError(ValueError):
    """A text is no cursor of that list."""


def written(values: Sequence[Any]) -> str:
    """The cursor behind a row, from the values of its key."""
    plain = [(v - _EPOCH) // timedelta(microseconds=1) if isinstance(v, datetime) else v for v in values]
    return base64.urlsafe_b64encode(msgspec.json.encode(plain)).decode().rstrip("=")


def read(cursor: str, kinds: Sequence[type]) -> list[Any]:
    """The values of the key.

    Args:
        cursor: What a client has sent.
        kinds: The types of the key's columns: str, int or datetime.

    Raises:
        CursorError: It is none of this list.
    """
    try:
        values = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise CursorError from error
    if not isinstance(values, list) or len(values) != len(kinds):
        raise CursorError
    return [_value(value, kind) for value, kind in zip(values, kinds, strict=True)]


def _value(value: Any, kind: type) -> Any:
    if kind is str and isinstance(value, str):
        return value
    if kind is str or type(value) is not int or abs(value) > _LARGEST:
        raise CursorError
    if kind is int:
        return value
    try:
        return _EPOCH + timedelta(microseconds=value)
    except OverflowError as error:
        raise CursorError from error
