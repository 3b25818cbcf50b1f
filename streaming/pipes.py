"""Tools in a pipe: JSON lines from standard input, and one line out per line in, in order."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from streaming.terminal import read_by_nobody

# A zlib stream: it begins with 0x78.
_HEX = re.compile(rb"78(?:[0-9A-Fa-f]{2})+")

_NO_OBJECT = {"error": "not a JSON object"}


def answer_lines(
    answer: Callable[[dict[str, Any]], dict[str, Any]], decode: Callable[[bytes], Any] = msgspec.json.decode
) -> None:
    """Answer each line of standard input; a bad line gives `{"error": reason}`.

    Returns at the end of the input, or as soon as nobody reads the answers any more.

    Args:
        answer: Answers one object.
        decode: Reads a line; raises ValueError.
    """
    encoder = msgspec.json.Encoder()
    for line in sys.stdin.buffer:
        try:
            question = decode(line)
        except (ValueError, RecursionError) as error:
            written = encoder.encode({"error": f"not JSON: {error}"})
        else:
            try:
                written = encoder.encode(answer(question) if isinstance(question, dict) else _NO_OBJECT)
            except UnicodeEncodeError:
                written = encoder.encode({"error": "a text contains half of a surrogate pair and cannot be written"})
        try:
            sys.stdout.buffer.write(written + b"\n")
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            read_by_nobody()
            return


def decode_inputs(line: bytes) -> Any:
    """Read a line of JSON, or `drift.inputs` in hex.

    Raises:
        ValueError: It is neither.
    """
    if _HEX.fullmatch(line.strip()):
        from streaming.groups import unpack_inputs  # noqa: PLC0415 - few lines are hex, and the core is slow to load

        line = unpack_inputs(bytes.fromhex(line.decode()))
    return decode_unique(line)


def decode_unique(line: bytes) -> Any:
    """Read JSON; refuse an object in which a key appears twice, a member for instance: the last would count alone.

    Raises:
        ValueError: It is no JSON, or has such an object.
    """
    return json.loads(line, object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        message = f"the key {twice[:100]!r} appears twice in one object"
        raise ValueError(message)
    return found


def _refuse_constant(name: str) -> None:
    message = f"{name} is no JSON"
    raise ValueError(message)
