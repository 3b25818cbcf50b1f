"""The logs of all processes in one folder, followed as one stream where there is no terminal (systemd, a container).

One file per process, `<name>.log`, in lines `time level logger: message`; rotated by size (`_guard.py`), so that
`tail -F <folder>/*.log` shows them merged as well.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from streaming.exceptions import SetupError
from streaming.places import open_private, private_folder

_LONGEST = 1 << 20
"""Characters of an unfinished line; a longer one is passed on as it is."""


def logs_of(lake: str, cluster: str) -> Path:
    """The folder of a cluster's logs: in the lake, or `logs` here when the lake is not a folder."""
    return (Path("logs") if "://" in lake else Path(lake) / "_logs") / cluster


@contextmanager
def hold_logs(folder: Path) -> Iterator[None]:
    """Keep a second `evenkeel up` of this machine away from the folder of a cluster's logs.

    Raises:
        SetupError: Another one runs, or the folder cannot be written.
    """
    try:
        private_folder(folder)
        file = open(folder / "up.lock", "ab", opener=open_private)  # noqa: SIM115
    except OSError as error:
        message = f"The folder {folder} cannot be written ({error.strerror}): give this user write access to it."
        raise SetupError(message) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"Another evenkeel up of this cluster runs, with its logs in {folder}: stop that one."
            raise SetupError(message) from None
        except OSError:
            pass  # a file system without locks keeps nobody away
        yield


class LogFollower:
    """Passes on lines that are appended to the logs of a folder from now on, through rotations."""

    def __init__(self, folder: Path, write: Callable[[str], object]) -> None:
        """Begin.

        Args:
            folder: The logs; it need not exist yet.
            write: Called with whole lines, each with the process's name before it.
        """
        self._folder = folder
        self._write = write
        self._open: dict[Path, BufferedReader] = {}
        self._rest: dict[Path, bytes] = {}
        self._refresh()
        for file in self._open.values():
            file.seek(0, os.SEEK_END)

    def poll(self) -> None:
        """Pass on the new lines."""
        for path, file in list(self._open.items()):
            self._pass_on(path, file)
            if not _is_current(path, file):
                self._pass_on(path, file)  # what was written between the last read and the rotation
                file.close()
                del self._open[path]
        for path in self._refresh():
            self._pass_on(path, self._open[path])

    def close(self) -> None:
        """Pass on the last lines, and close the files."""
        self.poll()
        for file in self._open.values():
            file.close()
        self._open.clear()

    def _refresh(self) -> list[Path]:
        new = [path for path in sorted(self._folder.glob("*.log")) if path not in self._open]
        self._open |= {path: path.open("rb") for path in new}
        return new

    def _pass_on(self, path: Path, file: BufferedReader) -> None:
        data = self._rest.pop(path, b"") + file.read()
        whole = data.rfind(b"\n") + 1 or (len(data) if len(data) > _LONGEST else 0)
        self._rest[path] = data[whole:]
        for line in data[:whole].decode("utf-8", "replace").splitlines():
            self._write(f"{path.stem:<7} | {line}\n")


def _is_current(path: Path, file: BufferedReader) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False
