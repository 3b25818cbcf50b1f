"""Locks: one job, one alerter and one `evenkeel up` per cluster and lake, and one maintainer per lake.

On one machine a lock is `flock` on a file, so it ends with its process and needs no cleaning up after a `kill -9`. The
file is in the lake, under `_locks/<cluster>` (a maintainer's under `_locks`), where every process of this machine finds
it; if the lake is not a folder, it is in a folder of this user in the temporary directory.

A lake on an object store has a lease as well (`lease.py`), which all machines see: `_locks/<cluster>/<kind>.json` in
the lake. The lock's file remembers the lease's token. So a process that gets the lock of one that died takes over its
lease at once: a lock that is free proves that its holder has ended. Machines that share a lake in a folder do not see
each other's locks. `evenkeel up` has no lease: a second one on another machine stands by, with a job and an alerter
that wait for theirs.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from streaming.exceptions import SetupError
from streaming.lifecycle import room_log
from streaming.places import open_private, private_folder
from streaming.process.keeper import HeldElsewhereError, Loss, WantedLease, leased
from streaming.process.lease_store import holder_in_store
from streaming.stores import on_object_store

JOB, ALERTER, UP, MAINTAINER = "job", "alerter", "evenkeel up", "maintainer"

_LOG = room_log(__name__)

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
"""The errors of a file system without locks, such as some network file systems."""

# Characters of a lock's file that are read: a process id and a token.
_LONGEST = 100

_LOSS = {JOB: Loss.END, ALERTER: Loss.END_IF_TAKEN, MAINTAINER: Loss.REFUSE}
"""What a lost lease means. An alerter goes on while nobody else has its lease: it must be able to say that the store is
away, and its decisions are safe by their own numbers."""


def _nothing() -> None:
    pass


@contextmanager
def only_one(what: str, lake: str, cluster: str | None, *, wait: bool = True) -> Iterator[Callable[[], None]]:
    """Hold the lock of one kind of program on a cluster and lake.

    Args:
        what: The kind: `JOB`, `ALERTER`, `UP` or `MAINTAINER`.
        lake: The lake, a folder or an URI.
        cluster: Name of the cluster; None for a program that works on the whole lake.
        wait: On an object store, wait up to 90 s for the lease of a process that may be dead; else refuse.

    Yields:
        A check to call before each write: it raises `LeaseLostError` once a lease may not be relied on any more.

    Raises:
        SetupError: Another process holds it, the folder of the locks cannot be written, or the lake's store cannot
            have leases.
        LeaseStoreError: The lake's store could not be asked.
    """
    with _flock(what, lake, cluster) as file:
        if what == UP or not on_object_store(lake):
            yield _nothing
            return
        left = _token_in(file)
        wanted = WantedLease(lake, "/".join(filter(None, ("_locks", cluster, f"{what}.json"))), _LOSS[what], wait)
        try:
            with leased(wanted, lambda token: token == left != "", lambda token: _write(file, token)) as check:
                yield check
        except HeldElsewhereError as error:
            raise _refused(what, lake, cluster, str(error)) from None


def holder_of(what: str, lake: str, cluster: str | None) -> str | None:
    """Who holds the lock of one kind of program, or its lease; None when nobody does. Nothing is taken or written.

    Args:
        what: `JOB`, `ALERTER`, `UP` or `MAINTAINER`.
        lake: The lake, a folder or an URI.
        cluster: Name of the cluster; None for a program that works on the whole lake.

    Raises:
        LeaseStoreError: The lake's store could not be asked.
    """
    if on_object_store(lake) and what != UP:
        return holder_in_store(lake, "/".join(filter(None, ("_locks", cluster, f"{what}.json"))))
    path = _folder(lake, cluster) / f"{what.replace(' ', '-')}.lock"
    try:
        with path.open("r", encoding="utf-8") as file:
            pid = file.readline(20).strip()
            # (A shared lock that is let go at once: it fails while the holder has its own.)
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return f"process {pid or 'unknown'}"
    except OSError:
        return None
    return None


@contextmanager
def _flock(what: str, lake: str, cluster: str | None) -> Iterator[TextIO]:
    """Hold the lock of this machine; yields its file, which still has what its last holder wrote."""
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
            pid = file.readline(20).strip()
            raise _refused(what, lake, cluster, f"process {pid or 'unknown'}") from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            _LOG.warning("%s cannot be locked (%s): make sure that no second %s runs", path, error.strerror, what)
        _write(file, _token_in(file))
        yield file


def _refused(what: str, lake: str, cluster: str | None, holder: str) -> SetupError:
    where = f"the lake {lake}" if cluster is None else f"the cluster {cluster!r} with the lake {lake}"
    advice = "stop that one" if cluster is not None else "wait until it has finished"
    return SetupError(f"Another {what} runs for {where} ({holder}): {advice}, or choose another lake.")


def _token_in(file: TextIO) -> str:
    """The lease's token that the lock's last holder had; empty for none."""
    file.seek(0)
    return "".join(file.read(_LONGEST).splitlines()[1:2])


def _write(file: TextIO, token: str) -> None:
    """Write our process id, and the token of the lease that goes with the lock."""
    file.seek(0)
    file.truncate()
    file.write(f"{os.getpid()}\n{token}\n" if token else str(os.getpid()))
    file.flush()


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
