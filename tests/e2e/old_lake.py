"""A lake with its checkpoint as a release left them, kept as text."""

from __future__ import annotations

import base64
from pathlib import Path

from e2e.packed import read_packed

__all__ = ["OLD_LAKE", "files_of", "unpack_lake"]

OLD_LAKE = "old_lake.txt"


def files_of(lake: Path) -> list[list[str]]:
    """Every file of a lake, by its path in it."""
    return [
        [str(path.relative_to(lake)), base64.b64encode(path.read_bytes()).decode()]
        for path in sorted(lake.rglob("*"))
        if path.is_file()
    ]


def unpack_lake(lake: Path) -> None:
    """Put the recorded lake into a folder."""
    for name, content in read_packed(OLD_LAKE):
        path = lake / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content))
