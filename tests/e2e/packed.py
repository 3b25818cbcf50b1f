"""Recorded data as text: JSON lines, compressed, in base64, after a comment with their origin."""

from __future__ import annotations

import base64
import json
import textwrap
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["RECORDED", "read_packed", "write_packed"]

RECORDED = Path(__file__).parent / "data"
"""Written by `e2e.record_data`."""


def read_packed(name: str) -> list[Any]:
    """The lines of a file in `data`."""
    text = (RECORDED / name).read_text("ascii")
    data = "".join(line for line in text.splitlines() if not line.startswith("#"))
    return [json.loads(line) for line in zlib.decompress(base64.b64decode(data)).splitlines()]


def write_packed(name: str, origin: str, lines: Iterable[Any]) -> int:
    """Write a file in `data`; returns its size in bytes."""
    packed = zlib.compress("\n".join(json.dumps(line) for line in lines).encode(), 9)
    RECORDED.mkdir(exist_ok=True)
    comment = textwrap.indent(textwrap.fill(origin, 116), "# ")
    data = textwrap.fill(base64.b64encode(packed).decode(), 118)
    return (RECORDED / name).write_text(f"{comment}\n{data}\n", "ascii")
