"""Layouts of records as data: the files `schemas/*.toml`, parsed and checked.

    type     = 5                          # the int16 at the head of the key
    name     = "ConsumerGroupMemberMetadata"
    versions = "0-4"                      # of the value; "none": no release ever wrote one
    flexible = "4+"                       # versions in KIP-482's encoding, "none" without
    key      = ["groupId string", ...]    # fields in byte order, never flexible
    value    = ["instanceId string?", ...]

    [structs]                             # what `value` names, each with its own fields
    Endpoint = ["host string", "port uint16"]

A field is its name in Kafka's camelCase, its type, and options:

    int8 int16 uint16 int32 int64 string bytes uuid Endpoint     the types
    []string                                                     an array
    string?                                                      null is allowed
    versions=3+ | versions=1 | versions=2-3                      versions that have it; default: all
    tag=0                                                        a tagged field, absent when it has its default
    default=-1 | default=null                                    value where absent; default: 0, "", empty, all zero

`wire.py` has the reading rules of each type; `interpreter.py` how Java's classes treat defaults.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

__all__ = ["Field", "RecordSchema", "parse_schema", "record_schemas"]

_FOLDER = "streaming.offsets_log.codec.schemas"
_SCALARS = frozenset({"int8", "int16", "uint16", "int32", "int64", "string", "bytes", "uuid"})
_NEWEST = 0x7FFF

_FIELD = re.compile(
    r"(?P<name>[a-z]\w*) (?P<array>\[\])?(?P<kind>[A-Za-z]\w*)(?P<nullable>\?)?"
    r"(?: versions=(?P<versions>[\d+-]+))?(?: tag=(?P<tag>\d+))?(?: default=(?P<default>-?\d+|null))?"
)
_VERSIONS = re.compile(r"(\d+)(\+|-(\d+))?")

Versions = tuple[int, int]
"""First and last version, both included."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct.

    Attributes:
        name: Name in Kafka's camelCase.
        kind: Scalar type, or the name of a struct.
        array: Whether it is an array of that type.
        nullable: Whether it (not its elements) may be null.
        versions: Versions that have it.
        tag: Tag of a tagged field; None for a plain one.
        default: Value where the field is absent; None also means the type's own default, see `null_default`.
        null_default: The default is null.
    """

    name: str
    kind: str
    array: bool
    nullable: bool
    versions: Versions
    tag: int | None
    default: int | None
    null_default: bool

    def is_in(self, version: int) -> bool:
        """Whether a version has the field."""
        return self.versions[0] <= version <= self.versions[1]


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """One record type.

    Attributes:
        key_type: int16 at the head of the key.
        name: Kafka's name of the type.
        versions: Versions of the value; None when no release ever wrote one.
        flexible: Flexible versions of the value.
        key: Fields of the key behind the type.
        value: Fields of the value behind the version.
        structs: Structs that `value` names.
    """

    key_type: int
    name: str
    versions: Versions | None
    flexible: Versions
    key: tuple[Field, ...]
    value: tuple[Field, ...]
    structs: Mapping[str, tuple[Field, ...]]


def record_schemas() -> dict[int, RecordSchema]:
    """Every schema of the folder by key type.

    Raises:
        ValueError: A file breaks the notation, or two have the same type.
    """
    schemas: dict[int, RecordSchema] = {}
    for path in files(_FOLDER).iterdir():
        if path.name.endswith(".toml"):
            schema = parse_schema(path.name, path.read_text("utf-8"))
            if schema.key_type in schemas:
                message = f"{path.name}: type {schema.key_type} is that of {schemas[schema.key_type].name} too"
                raise ValueError(message)
            schemas[schema.key_type] = schema
    return dict(sorted(schemas.items()))


def parse_schema(file: str, text: str) -> RecordSchema:
    """Parse one schema file.

    Args:
        file: Name for the message.
        text: The file's text.

    Raises:
        ValueError: The text breaks the notation.
    """
    try:
        document = tomllib.loads(text)
        none = document["versions"] == "none"
        schema = RecordSchema(
            key_type=document["type"],
            name=document["name"],
            versions=None if none else _versions(document["versions"]),
            flexible=(_NEWEST, -1) if document["flexible"] == "none" else _versions(document["flexible"]),
            key=_fields(document["key"]),
            value=_fields(document["value"]),
            structs={name: _fields(fields) for name, fields in document.get("structs", {}).items()},
        )
        _check(schema)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{file} is no schema of a record: {error!r}"
        raise ValueError(message) from error
    return schema


def _fields(lines: list[Any]) -> tuple[Field, ...]:
    return tuple([_field(line) for line in lines])


def _field(line: str) -> Field:
    match = _FIELD.fullmatch(line)
    if match is None:
        message = f"{line!r} is not `name type [versions=..] [tag=..] [default=..]`"
        raise ValueError(message)
    default = match["default"]
    null = default == "null"
    if null and not match["nullable"]:
        message = f"{line!r} has the default null, which its type does not allow"
        raise ValueError(message)
    return Field(
        name=match["name"],
        kind=match["kind"],
        array=match["array"] is not None,
        nullable=match["nullable"] is not None,
        versions=_versions(match["versions"]) if match["versions"] else (0, _NEWEST),
        tag=None if match["tag"] is None else int(match["tag"]),
        default=None if default is None or null else int(default),
        null_default=null,
    )


def _versions(text: str) -> Versions:
    match = _VERSIONS.fullmatch(text)
    if match is None:
        message = f"{text!r} is not a range of versions (3, 1-2 or 4+)"
        raise ValueError(message)
    first = int(match[1])
    if match[2] == "+":
        return first, _NEWEST
    return first, int(match[3]) if match[3] else first


def _check(schema: RecordSchema) -> None:
    for fields in (schema.key, schema.value, *schema.structs.values()):
        for field in fields:
            if field.kind not in _SCALARS and field.kind not in schema.structs:
                message = f"{field.name} is of type {field.kind}, which nothing here describes"
                raise ValueError(message)
        names = [field.name for field in fields]
        tags = [field.tag for field in fields if field.tag is not None]
        if len(set(names)) < len(names) or len(set(tags)) < len(tags):
            message = f"fields {names} with tags {tags} cannot be told apart"
            raise ValueError(message)
