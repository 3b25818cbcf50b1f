"""Layouts of records as data: the files `schemas/*.json`, in the form of Kafka's own message definitions.

Kafka explains the form in `clients/src/main/resources/common/message/README.md`. A record type is the file of its key,
`<Name>Key.json`, and that of its value, `<Name>Value.json`, unless no release ever wrote a value. Their `apiKey` is the
int16 at the head of the key; fields stand in byte order. Lines that begin with `//` are comments. What the codec would
not heed, `ignorable`, `mapKey` and the like, is refused; a nullable or tagged field is that in all of its versions.
`RecordSchema` has the names as Kafka prints them, with a small first letter.

`wire.py` has the reading rules of each type; `interpreter.py` how Java's classes treat defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Literal

import msgspec

_FOLDER = "streaming.offsets_log.codec.schemas"
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


@dataclass(frozen=True, slots=True, eq=False)
class RecordSchema:
    """One record type; layouts are compiled once for each such object.

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
    type: Literal["coordinator-key", "coordinator-value", "request", "response", "data"]
    name: str
    valid_versions: _Range
    flexible_versions: _Range
    fields: tuple[_Field, ...]
    api_key: int = -1
    common_structs: tuple[_Struct, ...] = ()


def parse_message(text: str) -> _Message:
    """Parse one file, of a record or of a message of the protocol (`probe/messages/`); may raise `ValueError`."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    return msgspec.json.decode("\n".join(lines), type=_Message)


def record_schemas(folder: str = _FOLDER) -> dict[int, RecordSchema]:
    """Every schema of a folder by key type; tests compare them with the classes of every release of Kafka."""
    texts = {path.name: path.read_text("utf-8") for path in files(folder).iterdir() if path.name.endswith(".json")}
    names = [file.removesuffix("Key.json") for file in texts if file.endswith("Key.json")]
    schemas = [parse_schema(name, texts[f"{name}Key.json"], texts.get(f"{name}Value.json")) for name in names]
    return {schema.key_type: schema for schema in sorted(schemas, key=lambda schema: schema.key_type)}


def parse_schema(name: str, key: str, value: str | None) -> RecordSchema:
    """Parse the texts of a type's key and value, None without one; may raise `ValueError`."""
    of_key, key_fields, _ = _read(key)
    if value is None:
        return RecordSchema(of_key.api_key, name, None, _versions("none"), key_fields, (), {})
    of_value, fields, structs = _read(value)
    versions, flexible = _versions(of_value.valid_versions), _versions(of_value.flexible_versions)
    return RecordSchema(of_key.api_key, name, versions, flexible, key_fields, fields, structs)


def data_schema(name: str) -> RecordSchema:
    """The schema of bytes inside a record, which have no key; its type is -1."""
    message, fields, structs = _read(files(_FOLDER).joinpath(f"{name}.json").read_text("utf-8"))
    versions, flexible = _versions(message.valid_versions), _versions(message.flexible_versions)
    return RecordSchema(message.api_key, name, versions, flexible, (), fields, structs)


def _read(text: str) -> tuple[_Message, tuple[Field, ...], dict[str, tuple[Field, ...]]]:
    """What a file says, the fields of its message, and those of every struct in it."""
    message = parse_message(text)
    structs: dict[str, tuple[Field, ...]] = {}
    waiting = [("", message.fields), *((struct.name, struct.fields) for struct in message.common_structs)]
    for struct, written in waiting:
        structs[struct] = tuple([_field(field) for field in written])
        waiting += [(field.type.removeprefix("[]"), field.fields) for field in written if field.fields]
    return message, structs.pop(""), structs


def _field(written: _Field) -> Field:
    null = written.default == "null"
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
