"""Decodes the records of another internal topic of Kafka by a folder of schemas, as the offsets log is decoded.

key    int16 type, then the fields of the type's key schema, never flexible
value  int16 version, then the fields of the type's value schema in that version; null for a tombstone
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streaming.offsets_log.codec.interpreter import Layout, is_flexible, key_layout, value_layout
from streaming.offsets_log.codec.keys import UnknownKey
from streaming.offsets_log.codec.layouts import RecordSchema, record_schemas
from streaming.offsets_log.codec.record_types import Rejected, UnknownVersion
from streaming.offsets_log.codec.wire import MalformedError, Reader


class DecodedRecord(NamedTuple):
    """One record.

    Attributes:
        name: Kafka's name of its type.
        key: Named tuple with Kafka's field names, see `interpreter.py`.
        value: The same; None for a tombstone.
    """

    name: str
    key: Any
    value: Any


class RecordDecoder:
    """The record types of one topic."""

    def __init__(self, folder: str) -> None:
        """Read the schemas of a folder, a package with files as `layouts.py` describes them."""
        self._types = {key_type: _Type(schema) for key_type, schema in record_schemas(folder).items()}

    @property
    def schemas(self) -> Mapping[int, RecordSchema]:
        """The schemas by key type."""
        return {key_type: known.schema for key_type, known in self._types.items()}

    def decode(self, key: bytes | None, value: bytes | None) -> DecodedRecord | UnknownKey | UnknownVersion | Rejected:
        """Decode one record, key and value to their last byte. Never raises."""
        if key is None:
            return Rejected("key is null; every record of this topic has a key")
        part = "key"
        try:
            reader = Reader(key)
            key_type = reader.int16("key type")
            known = self._types.get(key_type)
            if known is None:
                return UnknownKey(key_type)
            fields = known.key.read(reader)
            reader.end("key")
            if value is None:
                return DecodedRecord(known.schema.name, fields, None)
            part = "value"
            version = Reader(value).int16("value version")
            layout = known.values.get(version)
            if layout is None and version >= 0:
                return UnknownVersion(version)
            if layout is None:
                return Rejected(f"value: version {version} is negative")
            reader = Reader(value, _VERSION_BYTES, flexible=is_flexible(known.schema, version))
            content = layout.read(reader)
            reader.end("value")
        except MalformedError as error:
            return Rejected(f"{part}: {error}")
        return DecodedRecord(known.schema.name, fields, content)


_VERSION_BYTES = 2


class _Type:
    """A record type with its compiled layouts."""

    def __init__(self, schema: RecordSchema) -> None:
        self.schema = schema
        self.key = key_layout(schema)
        first, last = schema.versions or (0, -1)
        self.values: dict[int, Layout] = {v: value_layout(schema, v) for v in range(first, last + 1)}
