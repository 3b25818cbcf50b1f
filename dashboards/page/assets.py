"""The page's style, script and libraries, under addresses that contain their digest: browsers keep them for good.

Ours are in `static/`; the libraries' are in `static/vendor/`, which is not in the repository: `conf/scripts.toml` has
their versions and hashes, and set-up or the build of the wheel fetches them.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["Asset", "asset", "assets"]

_log = logging.getLogger(__name__)

FOLDER: Final = Path(__file__).parent.parent / "static"

_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

LIBRARIES: Final = ("htmx.min.js", "uPlot.iife.min.js", "uPlot.min.css")
"""Files of others that the page loads. Without them it works, but does not refresh itself and has no charts."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file.

    Attributes:
        name: Its address below `static/`: digest and name.
        kind: Media type.
        body: Its bytes.
        packed: The same, compressed by gzip.
    """

    name: str
    kind: str
    body: bytes
    packed: bytes


@cache
def assets() -> dict[str, Asset]:
    """Every file by its address below `static/`."""
    return {found.name: found for found in _by_file().values()}


def asset(file: str) -> str:
    """The address of a file below the root; "" for a library that was not fetched."""
    found = _by_file().get(file)
    return f"static/{found.name}" if found else ""


@cache
def _by_file() -> dict[str, Asset]:
    found = {}
    for path in (*sorted(FOLDER.glob("*.*")), *(FOLDER / "vendor" / name for name in LIBRARIES)):
        if not path.is_file():
            _log.warning(
                "%s is missing, so the page neither refreshes itself nor draws charts: run `make setup`.", path.name
            )
            continue
        body = path.read_bytes()
        name = f"{hashlib.sha256(body).hexdigest()[:16]}/{path.name}"
        found[path.name] = Asset(name, _TYPES[path.suffix], body, gzip.compress(body, 9))
    return found
