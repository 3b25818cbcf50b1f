"""The fields of our schemas in the form in which `RecordReleases.java` tells those of Kafka's classes."""

from __future__ import annotations

from typing import Any

from streaming.offsets_log.codec.layouts import Field, RecordSchema


def fields_of(schema: RecordSchema, fields: tuple[Field, ...], version: int) -> list[dict[str, Any]]:
    """Our fields in the form of `RecordReleases.java`: plain ones in byte order, then tagged ones by tag."""
    here = [field for field in fields if field.is_in(version)]
    in_order = [f for f in here if f.tag is None] + sorted(
        (f for f in here if f.tag is not None), key=lambda f: f.tag or 0
    )
    return [
        {
            "name": field.name,
            "tag": field.tag,
            "array": field.array,
            "nullable": field.nullable,
            "type": "struct" if field.kind in schema.structs else field.kind,
            "fields": fields_of(schema, schema.structs[field.kind], version) if field.kind in schema.structs else None,
        }
        for field in in_order
    ]


def only_tags_of(theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Our fields without the tagged ones that they lack; a struct's nullability was not in SCHEMAS before 4.1."""
    known = {field["name"]: field for field in theirs}
    found = []
    for field in ours:
        if field["tag"] is None or field["name"] in known:
            their = known.get(field["name"], field)
            if field["type"] == "struct":
                fields = only_tags_of(their["fields"] or [], field["fields"])
                nullable = field["nullable"] and (field["array"] or their["nullable"])
                found.append({**field, "fields": fields, "nullable": nullable})
            else:
                found.append(field)
    return found
