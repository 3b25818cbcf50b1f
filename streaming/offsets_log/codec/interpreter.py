"""Compiles layouts into readers: a schema and a version become closures that read bytes and print as Kafka does.

A struct is read into a named tuple with the fields of all versions, under Kafka's names; a field that the version
lacks, or a tagged one that was not written, has its default, as in Kafka's generated classes. Bytes and UUIDs stay
bytes; arrays are tuples.

The output is that of Kafka's generated `...JsonConverter` classes: a field that the version lacks is absent, and so is
a tagged field with its default (so one that was not written and one written with the default look alike), UUIDs are
printed as Kafka prints them, bytes as base64.

kafka-python's protocol layer (3.0.12) was considered and rejected, because it is made for a peer that it trusts. Its
compiled readers take a length beyond the end as a shorter string and any negative one as null, and build a list of as
many elements as a count claims; they ignore the size of a known tag and any bytes after the last field, read a nullable
struct inside a tag with the marker of a plain one, and print nothing as Kafka does. Also, the codec must not import a
client. It would not be faster: most of the time goes into building the values.
"""

from __future__ import annotations

from base64 import b64encode
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from operator import methodcaller
from typing import Any

from streaming.offsets_log.codec.layouts import Field, RecordSchema
from streaming.offsets_log.codec.wire import ELEMENT_BYTES, STRUCT_BYTES, MalformedError, Reader, text_of

_Read = Callable[[Reader], Any]
_Print = Callable[[Any], Any]

_EMPTY: dict[str, Any] = {"string": "", "bytes": b"", "uuid": bytes(16)}
# Bytes of a value: its exact size, or its minimum in the plain encodings and in the flexible one.
_SIZES = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "uuid": 16}
_LEAST_PLAIN = {"string": 2, "bytes": 4}
_LEAST_PLAIN_ARRAY = 4

# Marker before a nullable struct: an int8 among plain fields, a uvarint where the struct is tagged.
_NULL, _PRESENT = -1, 1
_TAGGED_NULL = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """One struct in one version.

    Attributes:
        read: Reads it; raises `MalformedError`.
        printed: Converts the value read to JSON values.
        default: The struct with every field at its default.
        least: Minimum size in bytes.
    """

    read: _Read
    printed: _Print
    default: Any
    least: int


@cache
def key_layout(schema: RecordSchema) -> Layout:
    """Layout of the key behind its type."""
    return _Compiler(schema, 0, flexible=False).struct(f"{schema.name}Key", schema.key)


@cache
def value_layout(schema: RecordSchema, version: int, *, repeats_version: bool = False) -> Layout:
    """Layout of the value behind its version, which the schema must have.

    The reader passed to it must be set to flexible as `is_flexible` says.

    Args:
        schema: Its schema.
        version: Its version.
        repeats_version: Each struct of an array begins with the value's version once more.
    """
    flexible = is_flexible(schema, version)
    compiler = _Compiler(schema, version, flexible=flexible, repeats_version=repeats_version)
    return compiler.struct(f"{schema.name}Value", schema.value)


def is_flexible(schema: RecordSchema, version: int) -> bool:
    """Whether a version of the value is in the flexible encoding."""
    return schema.flexible[0] <= version <= schema.flexible[1]


class _Compiler:
    """Compiles the structs of one schema for one version."""

    def __init__(self, schema: RecordSchema, version: int, *, flexible: bool, repeats_version: bool = False) -> None:
        self._schema = schema
        self._version = version
        self._flexible = flexible
        self._repeats_version = repeats_version

    def struct(self, name: str, fields: tuple[Field, ...]) -> Layout:
        """Compile one struct with everything in it."""
        shape: Any = namedtuple(name, [field.name for field in fields])  # type: ignore[misc]  # made at run time
        parts = [self._field(field) for field in fields]
        here = [field.is_in(self._version) for field in fields]
        plain = [
            part.read if there and field.tag is None else _constant(part.default)
            for field, part, there in zip(fields, parts, here, strict=True)
        ]
        tags = {
            field.tag: (at, part.read)
            for at, (field, part, there) in enumerate(zip(fields, parts, here, strict=True))
            if there and field.tag is not None
        }
        prints = [
            (field.name, at, part.printed, part.default if field.tag is not None else _NEVER)
            for at, (field, part, there) in enumerate(zip(fields, parts, here, strict=True))
            if there
        ]
        least = sum(p.least for f, p, there in zip(fields, parts, here, strict=True) if there and f.tag is None)
        return Layout(
            read=_struct_reader(shape, plain, tags if self._flexible else None),
            printed=_struct_printer(prints),
            default=shape(*(part.default for part in parts)),
            least=least + self._flexible,
        )

    def _field(self, field: Field) -> Layout:
        element = self._element(field)
        if field.array:
            if self._repeats_version and field.kind in self._schema.structs:
                element = _behind_version(element, self._version)
            least = 1 if self._flexible else _LEAST_PLAIN_ARRAY
            memory = STRUCT_BYTES if field.kind in self._schema.structs else ELEMENT_BYTES
            return Layout(
                _array_reader(field, element, memory),
                _or_null(lambda value: [element.printed(item) for item in value]),
                None if field.null_default else (),
                least,
            )
        default = None if field.null_default else element.default if field.default is None else field.default
        return Layout(element.read, element.printed, default, element.least)

    def _element(self, field: Field) -> Layout:
        """The field's type, without the array around it."""
        kind, nullable = field.kind, field.nullable and not field.array
        if kind in self._schema.structs:
            struct = self.struct(kind, self._schema.structs[kind])
            if not nullable:
                return struct
            return Layout(_nullable_reader(field, struct.read), _or_null(struct.printed), struct.default, 1)
        if kind in _SIZES:
            printed: _Print = text_of if kind == "uuid" else _as_it_is
            return Layout(methodcaller(kind, field.name), printed, _EMPTY.get(kind, 0), _SIZES[kind])
        method = f"nullable_{kind}" if nullable else "bytes_" if kind == "bytes" else kind
        printed = base64_of if kind == "bytes" else _as_it_is
        least = 1 if self._flexible else _LEAST_PLAIN[kind]
        return Layout(methodcaller(method, field.name), printed, _EMPTY[kind], least)


_NEVER = object()
"""Equal to no value: a plain field is printed whatever its value."""


def _struct_reader(shape: Any, plain: list[_Read], tags: dict[int, tuple[int, _Read]] | None) -> _Read:
    new = tuple.__new__
    if tags is None:
        return lambda reader: new(shape, [read(reader) for read in plain])
    known = {tag: read for tag, (_, read) in tags.items()}
    places = {tag: at for tag, (at, _) in tags.items()}

    def read_flexible(reader: Reader) -> Any:
        values = [read(reader) for read in plain]
        for tag, value in reader.tagged_fields(known).items():
            values[places[tag]] = value
        return new(shape, values)

    return read_flexible


def _struct_printer(fields: list[tuple[str, int, _Print, Any]]) -> _Print:
    def printed(value: Any) -> dict[str, Any]:
        return {name: show(value[at]) for name, at, show, hidden in fields if value[at] != hidden}

    return printed


def _array_reader(field: Field, element: Layout, memory: int) -> _Read:
    name = field.name
    count = methodcaller("nullable_count" if field.nullable else "count", name, element.least, memory)
    read = element.read
    if field.kind == "int32" and not field.nullable:
        return methodcaller("int32_array", name)

    def read_array(reader: Reader) -> tuple[Any, ...] | None:
        size = count(reader)
        if size is None:
            return None
        found: list[Any] = []
        try:
            for _ in range(size):
                found.append(read(reader))  # noqa: PERF401  # how many there are tells where it broke
        except MalformedError as error:
            message = f"{name}[{len(found)}]: {error}"
            raise MalformedError(message) from None
        return tuple(found)

    return read_array


def _nullable_reader(field: Field, read: _Read) -> _Read:
    name = field.name
    tagged = field.tag is not None

    def read_nullable(reader: Reader) -> Any:
        start = reader.position
        marker = reader.uvarint(name) if tagged else reader.int8(name)
        if marker == (_TAGGED_NULL if tagged else _NULL):
            return None
        if marker != _PRESENT:
            message = f"{name} at byte {start} is neither null nor there: {marker} stands before it"
            raise MalformedError(message)
        try:
            return read(reader)
        except MalformedError as error:
            message = f"{name}: {error}"
            raise MalformedError(message) from None

    return read_nullable


def _behind_version(element: Layout, version: int) -> Layout:
    def read(reader: Reader) -> Any:
        start, own = reader.position, reader.int16("version")
        if own != version:
            message = f"version at byte {start} is {own}, and that of the value is {version}"
            raise MalformedError(message)
        return element.read(reader)

    return replace(element, read=read, least=element.least + _SIZES["int16"])


def _constant(value: Any) -> _Read:
    return lambda _: value


def _or_null(show: _Print) -> _Print:
    return lambda value: None if value is None else show(value)


def _as_it_is(value: Any) -> Any:
    return value


def base64_of(value: bytes | None) -> str | None:
    """Bytes as JSON has them; None for null."""
    if value is None:
        return None
    return b64encode(value).decode("ascii")
