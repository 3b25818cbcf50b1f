"""Layouts of records as data: the files `schemas/*.json`, in the form of Kafka's own message definitions.

Kafka explains the form in `clients/src/main/resources/common/message/README.md`. A record type is the file of its key,
`<Name>Key.json`, and that of its value, `<Name>Value.json`, unless no release ever wrote a value. Their `apiKey` is the
int16 at the head of the key; fields stand in byte order. Lines that begin with `//` are comments. Refused is what the
codec would not heed: `ignorable`, `mapKey` and the like, types that no record has, and fields that are nullable or
tagged in only some of their versions. `RecordSchema` has the names as Kafka prints them, with a small first letter.

`wire.py` has the reading rules of each type; `interpreter.py` how Java's classes treat defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Literal

import msgspec

_FOLDER = "streaming.offsets_log.codec.schemas"
_SCALARS = frozenset({"int8", "int16", "uint16", "int32", "int64", "string", "bytes", "uuid"})
_NEWEST = 0x7FFF
_Range = Annotated[str, msgspec.Meta(pattern=r"^(none|\d+(\+|-\d+)?)$")]

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


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z]\w*$")]
    versions: _Range
    fields: tuple[_Field, ...]


class _Field(_Struct, frozen=True, kw_only=True):
    type: Annotated[str, msgspec.Meta(pattern=r"^(\[\])?[A-Za-z]\w*$")]
    nullable_versions: _Range = "none"
    tagged_versions: _Range = "none"
    tag: int | None = None
    default: str | None = None
    about: str = ""
    fields: tuple[_Field, ...] = ()


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_key: int
    type: Literal["coordinator-key", "coordinator-value", "request", "response"]
    name: str
    valid_versions: _Range
    flexible_versions: _Range
    fields: tuple[_Field, ...]
    common_structs: tuple[_Struct, ...] = ()


def parse_message(text: str) -> _Message:
    """Parse one file, of a record or of a message of the protocol (`probe/messages/`); may raise `ValueError`."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    return msgspec.json.decode("\n".join(lines), type=_Message)


def record_schemas() -> dict[int, RecordSchema]:
    """Every schema of the folder by key type.

    Raises:
        ValueError: A file breaks the form, or two have the same type.
    """
    texts = {path.name: path.read_text("utf-8") for path in files(_FOLDER).iterdir() if path.name.endswith(".json")}
    schemas: dict[int, RecordSchema] = {}
    for name in [file.removesuffix("Key.json") for file in texts if file.endswith("Key.json")]:
        schema = parse_schema(name, texts[f"{name}Key.json"], texts.get(f"{name}Value.json"))
        if schema.key_type in schemas:
            message = f"{name}Key.json: type {schema.key_type} is that of {schemas[schema.key_type].name} too"
            raise ValueError(message)
        schemas[schema.key_type] = schema
    return dict(sorted(schemas.items()))


def parse_schema(name: str, key: str, value: str | None) -> RecordSchema:
    """Parse the texts of a type's key and value (None without one); a `ValueError` names the file that is wrong."""
    file = f"{name}Key.json"
    try:
        of_key, key_fields, _ = _read(key)
        if value is None:
            return RecordSchema(of_key.api_key, name, None, _versions("none"), key_fields, (), {})
        file = f"{name}Value.json"
        of_value, fields, structs = _read(value)
    except ValueError as error:
        message = f"{file} is no schema of a record: {error}"
        raise ValueError(message) from error
    versions, flexible = _versions(of_value.valid_versions), _versions(of_value.flexible_versions)
    return RecordSchema(of_key.api_key, name, versions, flexible, key_fields, fields, structs)


def _read(text: str) -> tuple[_Message, tuple[Field, ...], dict[str, tuple[Field, ...]]]:
    """What a file says, the fields of its message, and those of every struct in it."""
    message = parse_message(text)
    structs: dict[str, tuple[Field, ...]] = {}
    waiting = [("", message.fields), *((struct.name, struct.fields) for struct in message.common_structs)]
    for struct, written in waiting:
        fields = tuple([_field(field) for field in written])
        marks = [*(field.name for field in fields), *(field.tag for field in fields if field.tag is not None)]
        if struct in _SCALARS | structs.keys() or len(set(marks)) < len(marks):
            reason = f"{struct or 'it'} is described twice, or its fields and tags {marks} cannot be told apart"
            raise ValueError(reason)
        structs[struct] = fields
        waiting += [(field.type.removeprefix("[]"), field.fields) for field in written if field.fields]
    for field in [field for fields in structs.values() for field in fields]:
        if field.kind not in _SCALARS and field.kind not in structs:
            reason = f"{field.name} is of type {field.kind}, which nothing here describes"
            raise ValueError(reason)
    return message, structs.pop(""), structs


def _field(written: _Field) -> Field:
    null = written.default == "null"
    tagged = "none" if written.tag is None else written.versions
    if written.tagged_versions != tagged or written.nullable_versions not in {"none", written.versions}:
        message = f"{written.name} is nullable or tagged in only some of its versions"
        raise ValueError(message)
    if null and written.nullable_versions == "none":
        message = f"{written.name} has the default null, which its type does not allow"
        raise ValueError(message)
    return Field(
        name=written.name[0].lower() + written.name[1:],
        kind=written.type.removeprefix("[]"),
        array=written.type.startswith("[]"),
        nullable=written.nullable_versions != "none",
        versions=_versions(written.versions),
        tag=written.tag,
        default=None if written.default is None or null else int(written.default),
        null_default=null,
    )


def _versions(text: str) -> Versions:
    if text == "none":
        return _NEWEST, -1
    first, _, last = text.removesuffix("+").partition("-")
    return int(first), _NEWEST if text.endswith("+") else int(last or first)
