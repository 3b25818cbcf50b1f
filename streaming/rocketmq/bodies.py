r"""The text of bodies and JSON headers: what fastjson writes, which is JSON except for its maps.

A map with other keys than texts is written with these keys as they are, bare integers and whole objects:

    {0:"127.0.0.1:20911"}
    {"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"t"}:{"minOffset":0}}}

Here such a key becomes a text with the key's own JSON, so that what remains is JSON: `"0"`, and
`"{\"brokerName\":\"broker-a\",\"queueId\":3,\"topic\":\"t\"}"`. A key that is an object has no objects in it: theirs
are message queues. Seen in 4.9.8 (fastjson 1) and 5.5.0 (fastjson 2).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

_TEXT = rb'"(?:[^"\\]|\\.)*+"'
_FLAT = rb'\{(?:[^{}"]|' + _TEXT + rb")*+\}"
_SPACE = rb"[ \t\r\n]*+"
_BARE = rb"[{,]" + _SPACE + rb"(?:-?[0-9]++|" + _FLAT + rb")" + _SPACE + rb":"

# Everything up to the next key that is no text; then the key. Possessive, so that each byte is looked at a fixed number
# of times whatever the input (`{{{{…` is tried once for each `{`, each time up to the next).
_PARTS: Final = re.compile(
    rb"(?P<plain>(?:[^{,\"]|" + _TEXT + rb"|(?!" + _BARE + rb')[{,]|".*+)++)'
    # A text that does not end is the rest: to look for another one behind each of its quotes would take forever.
    rb"|(?P<mark>[{,])" + _SPACE + rb"(?P<key>-?[0-9]++|" + _FLAT + rb")",
    re.DOTALL,
)

_MAY_HAVE_BARE: Final = re.compile(rb"[{,]" + _SPACE + rb"(?:[{]|-?[0-9]++" + _SPACE + rb":)")


class NotTheirs(ValueError):
    """A text that is no JSON of their kind; the message says where."""


def as_json(data: bytes) -> bytes:
    """The same text with all keys as texts; of what is no JSON of their kind, something that is no JSON either."""
    if _MAY_HAVE_BARE.search(data) is None:
        return data
    return _PARTS.sub(_with_text_key, data)


def _with_text_key(part: re.Match[bytes]) -> bytes:
    key = part["key"]
    if key is None:
        return part[0]
    quoted = key.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return part["mark"] + b'"' + quoted + b'"'


def read_text(data: bytes) -> Any:
    """Read it; objects as dicts, in which the last of equal keys counts.

    Raises:
        NotTheirs: It is no JSON of their kind, or holds what JSON cannot: NaN, infinities, half a surrogate pair.
    """
    # What is not UTF-8 becomes U+FFFD, as in Java.
    text = as_json(data).decode("utf-8", "replace")
    try:
        found = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except NotTheirs:
        raise
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else "too deep or long"
        message = f"not JSON: {why}"
        raise NotTheirs(message) from None
    if "\\u" in text and _has_half_a_pair(found):
        message = "a text contains half of a surrogate pair"
        raise NotTheirs(message)
    return found


def _refuse(name: str) -> NoReturn:
    message = f"{name} is no JSON"
    raise NotTheirs(message)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        message = "a number beyond all bounds"
        raise NotTheirs(message)
    return number


def _has_half_a_pair(found: object) -> bool:
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
