"""Locks: one job, one alerter and one `evenkeel up` per cluster and lake on this machine, and one maintainer per lake.

A lock is `flock` on a file, so it ends with its process and needs no cleaning up after a `kill -9`. The file is in the
lake, under `_locks/<cluster>` (a maintainer's under `_locks`), where every process of this machine finds it; if the
lake is not a folder, it is in a folder of this user in the temporary directory. Two machines do not see each other's
locks.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.exceptions import SetupError
from streaming.lifecycle import room_log
from streaming.places import open_private, private_folder

JOB, ALERTER, UP, MAINTAINER = "job", "alerter", "evenkeel up", "maintainer"

_LOG = room_log(__name__)

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
"""The errors of a file system without locks, such as some network file systems."""


@contextmanager
def only_one(what: str, lake: str, cluster: str | None) -> Iterator[None]:
    """Hold the lock of one kind of program on a cluster and lake.

    Args:
        what: The kind: `JOB`, `ALERTER`, `UP` or `MAINTAINER`.
        lake: The lake, a folder or an URI.
        cluster: Name of the cluster; None for a program that works on the whole lake.

    Raises:
        SetupError: Another process holds it, or the folder of the locks cannot be written.
    """
    folder = _folder(lake, cluster)
    path = folder / f"{what.replace(' ', '-')}.lock"
    try:
        private_folder(folder)
        file = os.fdopen(open_private(str(path), os.O_RDWR | os.O_CREAT), "r+", encoding="utf-8")
    except OSError as error:
        message = (
            f"The folder {folder} cannot be written ({error.strerror}): give this user write access, or choose another "
            "lake."
        )
        raise SetupError(message) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = file.read(20).strip()
            where = f"the lake {lake}" if cluster is None else f"the cluster {cluster!r} with the lake {lake}"
            advice = "stop that one" if cluster is not None else "wait until it has finished"
            message = f"Another {what} runs for {where} (process {pid or 'unknown'}): {advice}, or choose another lake."
            raise SetupError(message) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            _LOG.warning("%s cannot be locked (%s): make sure that no second %s runs", path, error.strerror, what)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield


def _folder(lake: str, cluster: str | None) -> Path:
    if "://" not in lake:
        return Path(lake) / "_locks" / (cluster or "")
    mine = Path(tempfile.gettempdir()) / f"evenkeel-{os.getuid()}"
    private_folder(mine)
    found = mine.lstat()
    if found.st_uid != os.getuid() or not mine.is_dir() or mine.is_symlink():
        message = f"{mine} is not this user's folder: remove it, or set TMPDIR to a folder of your own."
        raise SetupError(message)
    return mine / hashlib.sha256(f"{lake}\0{cluster or ''}".encode()).hexdigest()[:16]
