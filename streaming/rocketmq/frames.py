"""One frame of RocketMQ's remoting protocol: `RemotingCommand` and `RocketMQSerializable` of 5.5.0.

    int32  total    bytes after this field, big-endian like all that follow
    int32  header   the top byte is the header's type (0 JSON, 1 ROCKETMQ), the other three its length
    ...    header
    ...    body     what is left of `total`

A JSON header is an object with `code`, `language`, `version`, `opaque`, `flag`, `remark`, `extFields`. A ROCKETMQ
header has the same fields in binary:

    int16 code, int8 language, int16 version, int32 opaque, int32 flag, int32 length + remark,
    int32 length + fields, each int16 length + name, int32 length + value

A server answers in either, whatever the request had.
"""

from __future__ import annotations

import hmac
import json
import struct
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated, Any, Final

import msgspec

from streaming.rocketmq.answers import Unreadable, read_body, read_text


def decode_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """Decode one frame given in hex. Never raises on what a JSON line can hold."""
    try:
        data = bytes.fromhex(line["bytes"])
    except (KeyError, TypeError, ValueError):
        return {"error": 'the line is not {"bytes": hex}'}
    frame = decode_frame(data)
    if isinstance(frame, Malformed):
        return {"error": frame.reason}
    return {
        "code": frame.code,
        "language": frame.language,
        "version": frame.version,
        "opaque": frame.opaque,
        "flag": frame.flag,
        "remark": frame.remark,
        "extFields": frame.fields,
        "body": _body(frame.body),
    }


def _body(body: bytes | None) -> Any:
    if body is None:
        return None
    try:
        found = read_text(body)
    except Unreadable:
        found = None
    # A bare number or word may be JSON by chance.
    if isinstance(found, dict | list):
        return found
    return b64encode(body).decode("ascii")


_SIGNATURE = "Signature"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who asks.

    Attributes:
        access_key: Name of the user.
        secret_key: Its secret.
    """

    access_key: str
    secret_key: str = field(repr=False)


def signed(fields: Mapping[str, str], body: bytes | None, credentials: Credentials) -> dict[str, str]:
    """The fields with the signature that covers them and the body."""
    found = {name: value for name, value in fields.items() if name != _SIGNATURE}
    found["AccessKey"] = credentials.access_key
    # Java's TreeMap sorts by UTF-16 units. Names of fields are ASCII.
    content = "".join(found[name] for name in sorted(found)).encode() + (body or b"")
    digest = hmac.digest(credentials.secret_key.encode(), content, "sha1")
    return found | {_SIGNATURE: b64encode(digest).decode("ascii")}


LARGEST_FRAME: Final = 16 * 1024 * 1024
"""Bytes after the length prefix: their own limit (`com.rocketmq.remoting.frameMaxLength`). Each side refuses more."""

JSON: Final = 0
ROCKETMQ: Final = 1

# `LanguageCode` of 5.5.0: the byte in a ROCKETMQ header, and the name in a JSON one.
LANGUAGES: Final = (
    *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST"),
    "NODE_JS",
)

# Bit of `flag` in answers.
RESPONSE: Final = 1

_PREFIX = struct.Struct(">i")
_HEAD = struct.Struct(">hbhii")
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Frame:
    """A request or an answer.

    Attributes:
        code: What is asked, or how it went (0 is success).
        opaque: Number that an answer has in common with its request.
        flag: Bits: `RESPONSE`, and 2 where no answer is expected.
        language: The sender's, by name; by number where `LANGUAGES` has no name for the byte; None where a JSON
            header has none.
        version: The sender's release, as an ordinal of their `MQVersion.Version`.
        remark: A sentence for people; None for none.
        fields: `extFields`; None for none. (Java cannot tell none from none at all in a ROCKETMQ header.)
        body: None for none.
        header: `JSON` or `ROCKETMQ`.
    """

    code: int
    opaque: int
    flag: int = 0
    language: str | int | None = "PYTHON"
    version: int = 0
    remark: str | None = None
    fields: dict[str, str] | None = field(default=None, hash=False)
    body: bytes | None = None
    header: int = JSON

    @property
    def is_answer(self) -> bool:
        """Whether it answers a request; else it is one."""
        return bool(self.flag & RESPONSE)


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that are no frame.

    Attributes:
        reason: What is wrong, and at which byte of the header.
    """

    reason: str


class Code(IntEnum):
    """How an answer went (`ResponseCode` of 5.5.0; the same in 4.9.8), as far as we tell codes apart."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    CONSUMER_NOT_ONLINE = 206
    CONSUME_MSG_TIMEOUT = 207


_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class _JsonHeader(msgspec.Struct, omit_defaults=True):
    """A JSON header; values of `extFields` that are no texts are read as Java does, by their text."""

    code: _Int32
    opaque: _Int32
    flag: _Int32 = 0
    language: str | None = None
    version: _Int32 = 0
    remark: str | None = None
    extFields: dict[str, str | bool | int | float | None] | None = None  # noqa: N815 - their name


class _Broken(Exception):
    """A header that breaks its layout; its text is the reason."""


def encode_frame(frame: Frame) -> bytes:
    """Write a frame with a JSON header, its length prefix included.

    Raises:
        ValueError: It is larger than `LARGEST_FRAME`.
    """
    header = _json_header(frame)
    body = frame.body or b""
    total = 4 + len(header) + len(body)
    if total > LARGEST_FRAME:
        message = f"a frame of {total:,} bytes is larger than the {LARGEST_FRAME:,} that servers take"
        raise ValueError(message)
    return b"".join((_PREFIX.pack(total), _INT.pack(JSON << 24 | len(header)), header, body))


def decode_frame(data: bytes) -> Frame | Malformed:
    """Read one frame, length prefix included; any bytes are allowed, and it never raises."""
    if len(data) < 8:
        return Malformed(f"{len(data)} bytes are no frame: length prefix and header length alone take 8")
    [total] = _PREFIX.unpack_from(data)
    if not 4 <= total <= LARGEST_FRAME:
        return Malformed(f"a length of {total:,}; frames have 4 to {LARGEST_FRAME:,} bytes after it")
    if total != len(data) - 4:
        return Malformed(f"a length of {total:,}, but {len(data) - 4:,} bytes follow")
    kind, length = data[4], int.from_bytes(data[5:8], "big")
    if length > total - 4:
        return Malformed(f"a header of {length:,} bytes in a frame of {total:,}")
    header, body = data[8 : 8 + length], data[8 + length :] or None
    try:
        if kind == JSON:
            return _from_json(header, body)
        if kind == ROCKETMQ:
            return _from_binary(header, body)
    except _Broken as error:
        return Malformed(str(error))
    return Malformed(f"a header of type {kind}, which is neither JSON (0) nor ROCKETMQ (1)")


def take_frames(incoming: bytearray) -> list[Frame | Malformed]:
    """Remove the whole frames from what a connection has brought. Behind a malformed one nothing can be read."""
    found: list[Frame | Malformed] = []
    at = 0
    while len(incoming) - at >= _PREFIX.size:
        [total] = _PREFIX.unpack_from(incoming, at)
        end = at + _PREFIX.size + total
        if 4 <= total <= LARGEST_FRAME and end > len(incoming):
            break
        found.append(decode_frame(bytes(incoming[at : max(end, at + 8)])))
        if isinstance(found[-1], Malformed):
            break
        at = end
    del incoming[:at]
    return found


def _json_header(frame: Frame) -> bytes:
    language = None if frame.language is None else str(frame.language)
    fields: dict[str, Any] | None = frame.fields
    header = _JsonHeader(frame.code, frame.opaque, frame.flag, language, frame.version, frame.remark, fields)
    # ASCII alone: fastjson 2 does not read every character that JSON allows.
    return json.dumps(msgspec.to_builtins(header), separators=(",", ":")).encode("ascii")


def _from_json(header: bytes, body: bytes | None) -> Frame:
    try:
        head = read_body(_JsonHeader, header)
    except Unreadable as error:
        message = f"header: {error}"
        raise _Broken(message) from None
    told = head.extFields
    fields = None if told is None else {name: _as_text(value) for name, value in told.items() if value is not None}
    return Frame(head.code, head.opaque, head.flag, head.language, head.version, head.remark, fields, body, JSON)


def _as_text(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _from_binary(header: bytes, body: bytes | None) -> Frame:
    if len(header) < _HEAD.size:
        message = f"header: {len(header)} bytes, where the fixed fields alone have {_HEAD.size}"
        raise _Broken(message)
    code, language, version, opaque, flag = _HEAD.unpack_from(header)
    remark, at = _text(header, _HEAD.size, _INT, len(header))
    length, at = _length(header, at, _INT, len(header))
    end = at + length
    fields: dict[str, str] = {}
    while at < end:
        name, at = _text(header, at, _SHORT, end)
        value, at = _text(header, at, _INT, end)
        if name is not None and value is not None:  # Java reads a text of no length as null
            fields[name] = value
    if end != len(header):
        message = f"header: {len(header) - end} bytes after its last field, at byte {end}"
        raise _Broken(message)
    named = LANGUAGES[language] if 0 <= language < len(LANGUAGES) else language
    return Frame(code, opaque, flag, named, version, remark, fields if length else None, body, ROCKETMQ)


def _length(data: bytes, at: int, size: struct.Struct, end: int) -> tuple[int, int]:
    if end - at < size.size:
        message = f"header: a length needs {size.size} bytes at byte {at}, but {end - at} are left"
        raise _Broken(message)
    [length] = size.unpack_from(data, at)
    at += size.size
    if not 0 <= length <= end - at:
        message = f"header: a length of {length} at byte {at - size.size}, but {end - at} bytes are left"
        raise _Broken(message)
    return length, at


def _text(data: bytes, at: int, size: struct.Struct, end: int) -> tuple[str | None, int]:
    length, at = _length(data, at, size, end)
    # What is not UTF-8 becomes U+FFFD, as in Java: a remark may quote anything.
    return data[at : at + length].decode("utf-8", "replace") or None, at + length
