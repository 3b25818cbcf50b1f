"""Holds a lease while its process works: waits for it, renews it in a thread, and acts when it is lost."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import NoReturn

from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import room_log
from streaming.process.lease import TTL_S, Holder, Lease, LeaseLostError, LeaseStoreError, new_token
from streaming.process.lease_store import IGNORES_CONDITIONS, ObjectLeaseStore

_LOG = room_log(__name__)

# How often a candidate looks, and a holder tries again after a failure, as a part of the lease's time: every 5 s.
_LOOKS = 18


class Loss(Enum):
    """What a lost lease means for a process.

    Attributes:
        END: It ends at once with exit code 1; what it was writing is as after a `kill -9`.
        END_IF_TAKEN: The same, but only when another process has the lease: until then its work can go on.
        REFUSE: Only `check` raises.
    """

    END = 1
    END_IF_TAKEN = 2
    REFUSE = 3


class HeldElsewhereError(SetupError):
    """Another process has the lease; the text says who."""


@dataclass(frozen=True, slots=True)
class WantedLease:
    """A lease that a process wants.

    Attributes:
        lake: URI of the lake.
        path: Its object, below the lake.
        loss: What its loss means.
        wait: Watch a lease that may be a dead process's until it can be taken over; else refuse at once, and take over
            in a later call.
    """

    lake: str
    path: str
    loss: Loss
    wait: bool


_watched: dict[tuple[str, str], tuple[Hashable, float]] = {}
"""By lake and path, what an earlier call of this process has watched."""


@contextmanager
def leased(
    wanted: WantedLease, is_gone: Callable[[str], bool], took: Callable[[str], None], ttl_s: float = TTL_S
) -> Iterator[Callable[[], None]]:
    """Hold a lease.

    Args:
        wanted: Which, and how.
        is_gone: Whether the holder with a token is known to have ended.
        took: Called with our token once the lease is ours.
        ttl_s: Seconds that a candidate watches.

    Yields:
        A check that raises `LeaseLostError` when the lease may not be relied on any more.

    Raises:
        HeldElsewhereError: Another process has it.
        LeaseStoreError: The store could not be asked.
        SetupError: The store ignores conditions of writes.
    """
    store = ObjectLeaseStore(wanted.lake, wanted.path)
    began = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
    holder = Holder(socket.gethostname(), os.getpid(), began, new_token())
    key = (wanted.lake, wanted.path)
    lease = Lease(store, holder, _seconds, is_gone, ttl_s, _watched.get(key))
    try:
        _take(lease, wanted)
    finally:
        if lease.watched is not None:
            _watched[key] = lease.watched
    if not lease.refuses_others(store.honours_conditions):
        message = IGNORES_CONDITIONS.format(lake=wanted.lake)
        raise SetupError(message)
    took(holder.token)
    stop = threading.Event()
    keeper = threading.Thread(target=_keep, args=(lease, wanted.loss, stop), name="lease", daemon=True)
    keeper.start()
    try:
        yield lease.check
    finally:
        stop.set()
        keeper.join()
        try:
            lease.release()
        except EvenkeelError as error:
            _LOG.warning("the next one waits for %.0f s: %s", ttl_s, error)


def _seconds() -> float:
    # (Counts while the machine is suspended, which Python's own monotonic clock does not on Linux.)
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _take(lease: Lease, wanted: WantedLease) -> None:
    other = lease.attempt()
    if other is None:
        return
    seen = lease.watched
    if wanted.wait:
        _LOG.info(
            "%s has the lease %s/%s; if it does not renew it within %.0f s, it is taken over",
            other, wanted.lake, wanted.path, lease.ttl_s,
        )  # fmt: skip
        pause = threading.Event()
        while other is not None and lease.watched == seen:
            pause.wait(lease.ttl_s / _LOOKS)
            other = lease.attempt()
    if other is not None:
        raise HeldElsewhereError(str(other))


def _keep(lease: Lease, loss: Loss, stop: threading.Event) -> None:
    pause, failed = lease.ttl_s / 3, False
    while not stop.wait(pause):
        try:
            lease.renew()
        except LeaseStoreError as error:
            if not failed:
                _LOG.warning("%s Trying again.", error)
            failed, pause = True, lease.ttl_s / _LOOKS
        except LeaseLostError as error:
            if loss is not Loss.REFUSE:
                _end(error)
            return
        else:
            if failed:
                _LOG.info("the lease could be renewed again")
            failed, pause = False, lease.ttl_s / 3
        if loss is Loss.END:
            try:
                lease.check()
            except LeaseLostError as error:
                _end(error)


def _end(error: LeaseLostError) -> NoReturn:
    """End this process: whatever its other threads do, in Python or elsewhere, must not write any more."""
    sys.stderr.write(f"{error}\n")
    sys.stderr.flush()
    os._exit(1)
