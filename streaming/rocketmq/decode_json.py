"""One remoting frame as JSON: the lines of `evenkeel rocketmq-decode`.

    in   {"bytes": hex}
    out  {"code", "language", "version", "opaque", "flag", "remark", "extFields", "body"}
         {"error": reason}

A body is printed as JSON where it is an object or a list in JSON of their kind (`bodies.py`), else as base64.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from streaming.rocketmq.bodies import NotTheirs, read_text
from streaming.rocketmq.frames import Malformed, decode_frame


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
    except NotTheirs:
        found = None
    # (A bare number or word may be JSON by chance.)
    return found if isinstance(found, dict | list) else b64encode(body).decode("ascii")
