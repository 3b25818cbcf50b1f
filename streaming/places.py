"""Paths of our files, the same in a checkout, an editable install and a wheel.

Files that come with Evenkeel are in `conf/` at the top of a checkout, and in `streaming/conf/` of a wheel (`setup.py`).
The user's own files are searched in this order; only the first one found counts:

    ./conf/NAME, ./NAME                 the working folder
    $XDG_CONFIG_HOME/evenkeel/NAME      ~/.config where the variable is not set
    /etc/evenkeel/NAME
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_PACKAGED = Path(__file__).with_name("conf")
_CHECKOUT = Path(__file__).resolve().parents[1]

_SYSTEM = Path("/etc/evenkeel")


def shipped_folder() -> Path:
    """The folder of the files that come with Evenkeel; Spark takes it as its configuration folder."""
    if _PACKAGED.is_dir():
        return _PACKAGED
    return _CHECKOUT / "conf"


def shipped(name: str) -> Path:
    """A file that comes with Evenkeel: settings explained, rules, jars."""
    return shipped_folder() / name


def own_file(name: str) -> Path | None:
    """The user's own file of this name; None when there is none.

    A folder of that name is returned too: its reader can say what is wrong with it.

    Raises:
        OSError: One of the folders cannot be searched.
    """
    for folder in _own_folders():
        path = folder / name
        if path.exists():
            return path
    return None


def cache_folder() -> Path:
    """The folder of downloaded files; it need not exist yet.

    `$EVENKEEL_CACHE`, else `.cache/evenkeel` of the checkout, else `$XDG_CACHE_HOME/evenkeel` (~/.cache).
    """
    chosen = os.environ.get("EVENKEEL_CACHE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    if not _PACKAGED.is_dir():
        return _CHECKOUT / ".cache" / "evenkeel"
    return (_xdg("XDG_CACHE_HOME", ".cache") or Path(".cache").resolve()) / "evenkeel"


def private_folder(path: Path) -> None:
    """Create a folder that only this user can open; an existing one keeps its rights.

    Raises:
        OSError: It cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def open_private(path: str, flags: int) -> int:
    """Open a file; if it is new, only this user can read it. An `opener` for `open`."""
    return os.open(path, flags, 0o600)


def _own_folders() -> Iterator[Path]:
    yield Path("conf")
    yield Path()
    home = _xdg("XDG_CONFIG_HOME", ".config")
    if home is not None:
        yield home / "evenkeel"
    yield _SYSTEM


def _xdg(variable: str, default: str) -> Path | None:
    """A folder of the XDG Base Directory Specification, which says to ignore a path that is not absolute."""
    chosen = Path(os.environ.get(variable, ""))
    if chosen.is_absolute():
        return chosen
    try:
        return Path.home() / default
    except RuntimeError:
        return None  # a user without a home, as in some containers
