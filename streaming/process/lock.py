"""The lock of one machine: `flock` on a file, which ends with its process and needs no cleaning up after `kill -9`.

The file is in the lake, under `_locks/<cluster>` (a maintainer's under `_locks`), where every process of this machine
finds it; if the lake is not a folder, it is in a folder of this user in the temporary directory.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import tempfile
from pathlib import Path
from typing import TextIO

from streaming.exceptions import SetupError
from streaming.lifecycle import room_log
from streaming.places import open_private, private_folder

_LOG = room_log(__name__)

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
"""The errors of a file system without locks, such as some network file systems."""


class MachineLock:
    """The lock of one kind of program. Its file has the pid of its holder, and the proof of its holder's lease."""

    def __init__(self, what: str, lake: str, cluster: str | None) -> None:
        """Prepare; nothing is written yet."""
        self.what, self._lake, self._cluster = what, lake, cluster
        self.place = f"the lake {lake}" if cluster is None else f"the cluster {cluster!r} with the lake {lake}"
        self._file: TextIO | None = None
        self.left = ""
        """The proof that the last holder wrote; it has ended."""

    def acquire(self) -> bool:
        """Take the lock; whether it is ours.

        Raises:
            SetupError: The folder of the locks cannot be written.
        """
        if self._file is not None:
            return True
        path = self._path()
        try:
            private_folder(path.parent)
            file = os.fdopen(open_private(str(path), os.O_RDWR | os.O_CREAT), "r+", encoding="utf-8")
        except OSError as error:
            message = (
                f"The folder {path.parent} cannot be written ({error.strerror}): give this user write access, or "
                "choose another lake."
            )
            raise SetupError(message) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            _LOG.warning("%s cannot be locked (%s): make sure that no second %s runs", path, error.strerror, self.what)
        self._file, self.left = file, file.read().partition("\n")[2]
        self.write("")
        return True

    def write(self, proof: str) -> None:
        """Write our pid and a proof, which the next holder finds in `left`."""
        assert self._file is not None  # noqa: S101 - `acquire` said that it is held
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"{os.getpid()}\n{proof or self.left}")
        self._file.flush()

    def holder(self) -> str | None:
        """Who has the lock, in words; None when nobody does."""
        try:
            with self._path().open("r", encoding="utf-8") as file:
                pid = file.readline(20).strip()
                # (A shared lock that is let go at once: it fails while the holder has its own.)
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"process {pid or 'unknown'}"
        except OSError:
            return None
        return None

    def release(self) -> None:
        """Let it go; no error where it was never held."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _path(self) -> Path:
        name = f"{self.what.replace(' ', '-')}.lock"
        if "://" not in self._lake:
            return Path(self._lake) / "_locks" / (self._cluster or "") / name
        mine = Path(tempfile.gettempdir()) / f"evenkeel-{os.getuid()}"
        private_folder(mine)
        if mine.lstat().st_uid != os.getuid() or not mine.is_dir() or mine.is_symlink():
            message = f"{mine} is not this user's folder: remove it, or set TMPDIR to a folder of your own."
            raise SetupError(message)
        return mine / hashlib.sha256(f"{self._lake}\0{self._cluster or ''}".encode()).hexdigest()[:16] / name
