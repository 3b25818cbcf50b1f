"""Schemas are data: the notation, its meaning for bytes, and the errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.offsets_log import RECORD_TYPES
from streaming.offsets_log.codec.interpreter import is_flexible, value_layout
from streaming.offsets_log.codec.layouts import Field, RecordSchema, parse_schema
from streaming.offsets_log.codec.wire import MalformedError, Reader
from tests.offsets_log.written import compact, uvarint

HEAD = 'type = 99\nname = "Test"\nkey = ["group string"]\n'


def schema_of(*fields: str, flexible: str = "1+", structs: str = "") -> RecordSchema:
    value = ", ".join(f'"{field}"' for field in fields)
    return parse_schema("test.toml", f'{HEAD}versions = "0-3"\nflexible = "{flexible}"\nvalue = [{value}]\n{structs}')


def read(schema: RecordSchema, version: int, data: bytes) -> Any:
    reader = Reader(data, flexible=is_flexible(schema, version))
    value = value_layout(schema, version).read(reader)
    reader.end("value")
    return value


def printed(schema: RecordSchema, version: int, data: bytes) -> Any:
    return value_layout(schema, version).printed(read(schema, version, data))


def test_a_field_is_a_name_a_type_and_options() -> None:
    schema = schema_of("epochs []int32? versions=2+ tag=3 default=null", "port uint16 versions=1 default=7")
    assert schema.value == (
        Field("epochs", "int32", True, True, (2, 0x7FFF), 3, None, True),
        Field("port", "uint16", False, False, (1, 1), None, 7, False),
    )
    assert (schema.versions, schema.flexible) == ((0, 3), (1, 0x7FFF))


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("epoch int33", "nothing here describes"),
        ("epoch", "is not `name type"),
        ("Epoch int32", "is not `name type"),
        ("epoch int32 version=3", "is not `name type"),
        ("epoch int32 versions=3-", "is not a range of versions"),
        ("epoch int32 default=null", "which its type does not allow"),
        ('a int32", "a int8', "cannot be told apart"),
        ('a int32 tag=1", "b int8 tag=1', "cannot be told apart"),
    ],
)
def test_a_file_that_breaks_the_notation_is_named_with_what_is_wrong(field: str, what: str) -> None:
    with pytest.raises(ValueError, match=r"^test\.toml is no schema of a record: .*" + what):
        schema_of(field)


def test_every_file_of_the_folder_has_a_type_of_its_own() -> None:
    assert list(RECORD_TYPES) == list(range(24))
    assert {schema.name for schema in RECORD_TYPES.values() if schema.versions is None} == {
        "StreamsGroupPartitionMetadata"
    }


def test_a_field_that_a_version_lacks_has_its_default_and_is_not_printed() -> None:
    schema = schema_of("a int8", "b int8 versions=1-2 default=-1", flexible="none")
    assert [read(schema, version, data).b for version, data in [(0, b"\5"), (1, b"\5\6"), (3, b"\5")]] == [-1, 6, -1]
    assert printed(schema, 0, b"\5") == {"a": 5}
    assert printed(schema, 2, b"\5\6") == {"a": 5, "b": 6}


def test_a_tagged_field_is_printed_only_where_it_differs_from_its_default() -> None:
    schema = schema_of("a int8", "t int8 tag=0 default=-1")
    assert printed(schema, 1, b"\5\0") == printed(schema, 1, b"\5\1\0\1\xff") == {"a": 5}
    assert printed(schema, 1, b"\5\1\0\1\x07") == {"a": 5, "t": 7}
    assert printed(schema, 1, b"\5\2\0\1\x07\x09\2xx") == {"a": 5, "t": 7}


def test_an_absent_tagged_struct_is_an_empty_one_and_an_explicit_null_is_null() -> None:
    schema = schema_of("s S? tag=0", structs='[structs]\nS = ["a int8", "l []string"]')
    assert read(schema, 1, b"\0").s == (0, ())
    assert printed(schema, 1, b"\0") == {}
    assert printed(schema, 1, b"\1\0\1\0") == {"s": None}
    assert printed(schema, 1, b"\1\0\4\1\7\1\0") == {"s": {"a": 7, "l": []}}


def test_a_nullable_struct_among_the_fields_has_a_byte_before_it() -> None:
    schema = schema_of("s S? default=null", structs='[structs]\nS = ["a int8"]')
    assert printed(schema, 1, b"\xff\0") == {"s": None}
    assert printed(schema, 1, b"\1\7\0\0") == {"s": {"a": 7}}
    with pytest.raises(MalformedError, match="s at byte 0 is neither null nor there: 2 stands before it"):
        read(schema, 1, b"\2\7\0\0")


@pytest.mark.parametrize("size", [125, 126, 127, 128, 16_382, 16_383])
@pytest.mark.parametrize(
    ("field", "element"), [("a []string", lambda i: compact(str(i))), ("a []S", lambda i: bytes([i % 100, 0]))]
)
def test_a_count_of_127_takes_a_second_byte(size: int, field: str, element: Callable[[int], bytes]) -> None:
    schema = schema_of(field, structs='[structs]\nS = ["x int8"]')
    data = uvarint(size + 1) + b"".join(map(element, range(size))) + b"\0"
    assert len(read(schema, 1, data).a) == size
    with pytest.raises(MalformedError):
        read(schema, 1, data[:-2])


def test_what_is_wrong_inside_is_said_with_the_way_to_it() -> None:
    schema = schema_of("list []S", "t S? tag=1", structs='[structs]\nS = ["inner []T"]\nT = ["name string"]')
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
    schema = schema_of(
        *(f"f{at} {kind}" for at, kind in enumerate(kinds)),
        "all []S",
        structs="[structs]\nS = [" + ", ".join(f'"f{at} {kind}"' for at, kind in enumerate(kinds)) + "]",
    )
    rows = data.draw(st.lists(st.tuples(*(_values[kind][0] for kind in kinds)), min_size=1, max_size=4))
    written = [b"".join(_values[kind][1](value) for kind, value in zip(kinds, row, strict=True)) for row in rows]
    elements = b"".join(row + b"\0" for row in written)
    assert read(schema, 1, written[0] + uvarint(len(rows) + 1) + elements + b"\0") == (*rows[0], tuple(rows))
