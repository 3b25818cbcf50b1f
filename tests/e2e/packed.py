"""Recorded data as text: JSON lines, compressed, in base64, after a comment with their origin."""

from __future__ import annotations

import base64
import json
import textwrap
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["RELEASES", "read_packed", "write_packed"]

_RECORDED = Path(__file__).parent / "data"

RELEASES = sorted((path.name for path in _RECORDED.iterdir()), key=lambda name: [int(part) for part in name.split(".")])
"""Releases with a folder in `data`, written by `e2e.record_data`; the newest is the last."""


def read_packed(name: str, release: str = RELEASES[-1]) -> list[Any]:
    """The lines of a file that a release recorded."""
    text = (_RECORDED / release / name).read_text("ascii")
    data = "".join(line for line in text.splitlines() if not line.startswith("#"))
    return [json.loads(line) for line in zlib.decompress(base64.b64decode(data)).splitlines()]


def write_packed(name: str, release: str, origin: str, lines: Iterable[Any]) -> int:
    """Write a file of a release; returns its size in bytes."""
    packed = zlib.compress("\n".join(json.dumps(line) for line in lines).encode(), 9)
    (_RECORDED / release).mkdir(exist_ok=True)
    comment = textwrap.indent(textwrap.fill(origin, 116), "# ")
    data = textwrap.fill(base64.b64encode(packed).decode(), 118)
    return (_RECORDED / release / name).write_text(f"{comment}\n{data}\n", "ascii")
