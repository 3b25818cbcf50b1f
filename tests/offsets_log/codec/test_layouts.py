"""Schemas are data in Kafka's JSON form: its meaning for bytes, and the errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.offsets_log.codec.interpreter import is_flexible, value_layout
from streaming.offsets_log.codec.layouts import Field, RecordSchema, parse_message, parse_schema
from streaming.offsets_log.codec.wire import MalformedError, Reader
from tests.offsets_log.written import compact, uvarint

STREAMING = Path(__file__).parents[3] / "streaming"
SCHEMAS = sorted((STREAMING / "offsets_log" / "codec" / "schemas").glob("*.json"))
MESSAGES = sorted((STREAMING / "probe" / "messages").glob("*.json"))

Fields = list[dict[str, Any]]


def field(name: str, kind: str, versions: str = "0+", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions, **more}


def nullable(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return field(name, kind, nullableVersions="0+", **more)


def tagged(tag: int) -> dict[str, Any]:
    return {"taggedVersions": "0+", "tag": tag}


def message(kind: str, fields: Fields, **more: Any) -> str:
    head = {"apiKey": 99, "type": f"coordinator-{kind.lower()}", "name": f"Test{kind}"}
    return json.dumps({**head, "validVersions": "0", "flexibleVersions": "none", "fields": fields, **more})


def schema_of(*fields: dict[str, Any], flexible: str = "1+", **more: Any) -> RecordSchema:
    value = message("Value", list(fields), validVersions="0-3", flexibleVersions=flexible, **more)
    return parse_schema("Test", message("Key", [field("group", "string", "0")]), value)


def read(schema: RecordSchema, version: int, data: bytes) -> Any:
    reader = Reader(data, flexible=is_flexible(schema, version))
    value = value_layout(schema, version).read(reader)
    reader.end("value")
    return value


def printed(schema: RecordSchema, version: int, data: bytes) -> Any:
    return value_layout(schema, version).printed(read(schema, version, data))


def test_a_field_is_a_name_a_type_and_options() -> None:
    epochs = {"nullableVersions": "2+", "taggedVersions": "2+", "tag": 3, "default": "null", "about": "Since 4.3."}
    schema = schema_of(field("epochs", "[]int32", "2+", **epochs), field("Port", "uint16", "1-2", default="7"))
    assert schema.value == (
        Field("epochs", "int32", True, True, (2, 0x7FFF), 3, None, True),
        Field("port", "uint16", False, False, (1, 2), None, 7, False),
    )
    assert (schema.key_type, schema.name, schema.versions, schema.flexible) == (99, "Test", (0, 3), (1, 0x7FFF))
    assert schema.key == (Field("group", "string", False, False, (0, 0), None, None, False),)


def test_a_struct_stands_where_it_is_used_or_among_the_common_ones() -> None:
    common = {"name": "C", "versions": "0+", "fields": [field("inner", "T", fields=[field("x", "int8")])]}
    fields = [field("a", "C"), field("b", "[]C"), field("s", "S", fields=[field("c", "C")])]
    schema = schema_of(*fields, commonStructs=[common])
    assert {name: [part.kind for part in fields] for name, fields in schema.structs.items()} == {
        "C": ["T"],
        "S": ["C"],
        "T": ["int8"],
    }


def test_lines_that_begin_with_two_slashes_are_comments() -> None:
    key = message("Key", [field("group", "string", about="// no comment")])
    commented = "// KIP-848\n" + key.replace(", ", ",\n  // since 4.1\n")
    assert asdict(parse_schema("Test", commented, None)) == asdict(parse_schema("Test", key, None))


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ([{"name": "epoch", "versions": "0+"}], "missing required field `type`"),
        ([field("1st", "int32")], r"matching regex .* `\$.fields\[0\].name`"),
        ([field("epoch", "int32[]")], r"matching regex .* `\$.fields\[0\].type`"),
        ([field("epoch", "int32", ignorable=True)], "unknown field `ignorable`"),
        ([field("epoch", "int32", "3-")], r"matching regex .* `\$.fields\[0\].versions`"),
        ([field("epoch", "int32", default="x")], "invalid literal"),
    ],
)
def test_a_file_that_breaks_the_form_is_refused_with_what_is_wrong(fields: Fields, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        schema_of(*fields)


@pytest.mark.parametrize("file", [*SCHEMAS, *MESSAGES], ids=lambda file: file.stem)
def test_every_file_of_records_and_of_messages_is_in_the_one_form(file: Path) -> None:
    written = parse_message(file.read_text(encoding="utf-8"))
    assert written.name == file.stem
    assert written.name.lower().endswith(written.type.removeprefix("coordinator-"))


def test_a_field_that_a_version_lacks_has_its_default_and_is_not_printed() -> None:
    schema = schema_of(field("a", "int8"), field("b", "int8", "1-2", default="-1"), flexible="none")
    assert [read(schema, version, data).b for version, data in [(0, b"\5"), (1, b"\5\6"), (3, b"\5")]] == [-1, 6, -1]
    assert printed(schema, 0, b"\5") == {"a": 5}
    assert printed(schema, 2, b"\5\6") == {"a": 5, "b": 6}


def test_a_tagged_field_is_printed_only_where_it_differs_from_its_default() -> None:
    schema = schema_of(field("a", "int8"), field("t", "int8", **tagged(0), default="-1"))
    assert printed(schema, 1, b"\5\0") == printed(schema, 1, b"\5\1\0\1\xff") == {"a": 5}
    assert printed(schema, 1, b"\5\1\0\1\x07") == {"a": 5, "t": 7}
    assert printed(schema, 1, b"\5\2\0\1\x07\x09\2xx") == {"a": 5, "t": 7}


def test_an_absent_tagged_struct_is_an_empty_one_and_an_explicit_null_is_null() -> None:
    schema = schema_of(nullable("s", "S", **tagged(0), fields=[field("a", "int8"), field("l", "[]string")]))
    assert read(schema, 1, b"\0").s == (0, ())
    assert printed(schema, 1, b"\0") == {}
    assert printed(schema, 1, b"\1\0\1\0") == {"s": None}
    assert printed(schema, 1, b"\1\0\4\1\7\1\0") == {"s": {"a": 7, "l": []}}


def test_a_nullable_struct_among_the_fields_has_a_byte_before_it() -> None:
    schema = schema_of(nullable("s", "S", default="null", fields=[field("a", "int8")]))
    assert printed(schema, 1, b"\xff\0") == {"s": None}
    assert printed(schema, 1, b"\1\7\0\0") == {"s": {"a": 7}}
    with pytest.raises(MalformedError, match="s at byte 0 is neither null nor there: 2 stands before it"):
        read(schema, 1, b"\2\7\0\0")


@pytest.mark.parametrize("size", [125, 126, 127, 128, 16_382, 16_383])
@pytest.mark.parametrize(
    ("array", "element"),
    [
        (field("a", "[]string"), lambda i: compact(str(i))),
        (field("a", "[]S", fields=[field("x", "int8")]), lambda i: bytes([i % 100, 0])),
    ],
)
def test_a_count_of_127_takes_a_second_byte(size: int, array: dict[str, Any], element: Callable[[int], bytes]) -> None:
    schema = schema_of(array)
    data = uvarint(size + 1) + b"".join(map(element, range(size))) + b"\0"
    assert len(read(schema, 1, data).a) == size
    with pytest.raises(MalformedError):
        read(schema, 1, data[:-2])


def test_what_is_wrong_inside_is_said_with_the_way_to_it() -> None:
    inner = field("inner", "[]T", fields=[field("name", "string")])
    schema = schema_of(
        field("list", "[]S"),
        nullable("t", "S", **tagged(1)),
        commonStructs=[{"name": "S", "versions": "0+", "fields": [inner]}],
    )
    with pytest.raises(MalformedError, match=r"^list\[1\]: inner\[0\]: name at byte 4 claims 8 bytes, but 2 are left$"):
        read(schema, 1, b"\3" + b"\1\0" + b"\2\x09xx")
    with pytest.raises(MalformedError, match=r"^tag 1: t: inner at byte 5 is null, which its schema does not allow$"):
        read(schema, 1, b"\1" + b"\1\1\2\1\0")


_values: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], bytes]]] = {
    "int8": (st.integers(-128, 127), lambda v: v.to_bytes(1, "big", signed=True)),
    "int16": (st.integers(-(2**15), 2**15 - 1), lambda v: v.to_bytes(2, "big", signed=True)),
    "uint16": (st.integers(0, 2**16 - 1), lambda v: v.to_bytes(2, "big")),
    "int32": (st.integers(-(2**31), 2**31 - 1), lambda v: v.to_bytes(4, "big", signed=True)),
    "int64": (st.integers(-(2**63), 2**63 - 1), lambda v: v.to_bytes(8, "big", signed=True)),
    "uuid": (st.binary(min_size=16, max_size=16), lambda v: v),
    "string": (st.text(max_size=40), compact),
    "bytes": (st.binary(max_size=200), compact),
    "string?": (st.none() | st.text(max_size=40), compact),
    "bytes?": (st.none() | st.binary(max_size=200), compact),
}


@given(st.data(), st.lists(st.sampled_from(sorted(_values)), min_size=1, max_size=5))
def test_values_of_any_layout_come_back(data: st.DataObject, kinds: list[str]) -> None:
    fields = [
        nullable(f"f{at}", kind[:-1]) if kind.endswith("?") else field(f"f{at}", kind) for at, kind in enumerate(kinds)
    ]
    schema = schema_of(*fields, field("all", "[]S", fields=fields))
    rows = data.draw(st.lists(st.tuples(*(_values[kind][0] for kind in kinds)), min_size=1, max_size=4))
    written = [b"".join(_values[kind][1](value) for kind, value in zip(kinds, row, strict=True)) for row in rows]
    elements = b"".join(row + b"\0" for row in written)
    assert read(schema, 1, written[0] + uvarint(len(rows) + 1) + elements + b"\0") == (*rows[0], tuple(rows))
