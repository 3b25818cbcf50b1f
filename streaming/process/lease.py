"""Who works on a lake: one job and one alerter per cluster, one maintainer, whatever machines they run on.

A lease is a series of numbered objects in the lake, `_locks/<cluster>/<kind>/<number>.json`. Each is created only if it
is absent, which folders and object stores offer alike: it is how Delta's own commits are made. The newest one tells who
works. Its process writes the next one every third of `TTL_S`. A candidate stands by, and writes the next one when it
has itself watched the newest for a whole `TTL_S`, so no two clocks are ever compared; of two candidates one wins. A
holder that could not write for two thirds of `TTL_S` must stop: a third is left before anybody can take over. A clean
end writes one object more, as `released`.

On one machine nobody waits for the dead: each object names its machine since its start, its process, and when that
began, so that another process of the machine sees whether it lives.

What a lease cannot do: a holder whose machine stands still between its last `check` and a commit may commit after it
was succeeded. Then Delta's conflict checks and transaction ids keep the tables right, as for two processes without one.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]  # it has no type hints

from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import room_log
from streaming.objects import IGNORES_CONDITIONS, Objects
from streaming.stores import on_object_store
from streaming.times import steady_s

_LOG = room_log(__name__)

JOB, ALERTER, MAINTAINER = "job", "alerter", "maintainer"

TTL_S: Final = 90.0
"""Seconds that a candidate watches. A holder survives an outage of the store of 30 to 60 s, by when it wrote last."""

_POLLS = 18
"""How often a candidate polls, and a holder tries again after a failure, within `TTL_S`: every 5 s."""


class LeaseLostError(EvenkeelError):
    """Another process has the lease, or may have it soon: nothing more may be written."""


class LeaseStoreError(EvenkeelError):
    """The lake could not be asked, or refuses; the text names it and the cause."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease.

    Attributes:
        host: Name of its machine, for people.
        machine: Its machine since that was started, and the space of its process ids.
        pid: Its process there.
        started: When that process began, as `_start_of` says it: only compared for equality.
        token: Unique for each process and lease.
        released: It has ended.
    """

    host: str
    machine: str
    pid: int
    started: str
    token: str
    released: bool = False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def has_died(self, machine: str) -> bool:
        """Whether its process is known to have ended, as only the same machine can tell."""
        if self.machine != machine:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False  # another user's: nobody here knows when it began
        return _start_of(self.pid) != self.started


def _start_of(pid: int) -> str:
    """When a process of this machine began, "" for a dead one: on Linux in ticks that no change of the clock moves."""
    if sys.platform != "linux":
        with suppress(psutil.NoSuchProcess):  # also raised for a zombie
            return str(psutil.Process(pid).create_time())
        return ""
    try:
        state, *fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
        )
    except OSError:
        return ""
    if state in {"Z", "X"}:
        return ""
    return fields[18]


_UNKNOWN: Final = Holder("an unknown host", "", 0, "", "")
"""Stands for the holder of an object that cannot be read, or was deleted meanwhile."""


class LeaseObjects(Objects):
    """The numbered objects of one lease. Methods raise `LeaseStoreError`."""

    def __init__(self, lake: str, path: str) -> None:
        """Prepare; nothing is asked yet.

        Args:
            lake: Folder or URI on an object store.
            path: Their folder, below the lake.
        """
        # No retries of its own: the lease knows better what a lost answer means, and a request that begins before a
        # lease is lost ends before it is anybody's.
        super().__init__(lake, path, retries=0)

    def failure(self, cause: str) -> LeaseStoreError:
        """The lease could not be read or written."""
        return LeaseStoreError(f"The lease {self.place}/{self._prefix} cannot be read or written: {cause}.")

    def newest(self) -> tuple[int, Holder | None]:
        """Number and content of the newest object; 0 and None when there is none."""
        number = max(self.numbers(), default=0)
        if number == 0:
            return 0, None
        content, _ = self._get(_name(number)) or (b"", None)
        try:
            return number, Holder(**json.loads(content))
        except (ValueError, TypeError):
            return number, _UNKNOWN

    def numbers(self) -> list[int]:
        """Numbers of all objects."""
        stems = [Path(one["path"]).stem for one in self._listed()]
        return [int(stem) for stem in stems if stem.isdigit()]

    def create(self, number: int, holder: Holder) -> bool:
        """Write an object unless it is there; whether it was written."""
        return self._create(_name(number), json.dumps(asdict(holder)).encode())

    def delete(self, number: int) -> None:
        """Delete an object; no error if there is none."""
        self._delete([_name(number)])


def _name(number: int) -> str:
    return f"{number:020}.json"


class Lease:
    """One process's side of one lease. Call `poll` every few seconds, at last `release`. For one thread, but `check`.

    Attributes:
        holder: Who works, if that is another process; None before the first answer, and where nobody does.
    """

    def __init__(
        self,
        what: str,
        objects: LeaseObjects | None,
        clock: Callable[[], float],
        ttl_s: float = TTL_S,
        machine: str | None = None,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            what: What works, for people.
            objects: Where the lease is; None for a file system without leases, where everybody works.
            clock: Seconds that only grow, also while the machine sleeps.
            ttl_s: Seconds that a candidate watches.
            machine: This machine since its start; None finds out.
        """
        self.what, self._objects, self._clock, self.ttl_s = what, objects, clock, ttl_s
        pid = os.getpid()
        self._self = Holder(socket.gethostname(), machine or _machine(), pid, _start_of(pid), uuid.uuid4().hex)
        self._number: int | None = None
        self._renewed = 0.0
        self._watched, self._watched_since = -1, 0.0
        self._stands_by = False
        self.holder: Holder | None = None

    @property
    def is_local(self) -> bool:
        """Whether that one runs on this machine."""
        return self.holder is not None and self.holder.machine == self._self.machine

    def poll(self) -> bool:
        """Do as `attempt`, and log when this process begins to stand by, and when it takes over."""
        works = self.attempt()
        if self._stands_by == works:
            if works:
                _LOG.info("Took over: this is the %s now.", self.what)
            else:
                _LOG.info(
                    "Standing by: the %s is %s. This one takes over when that one ends, or has not renewed its lease "
                    "for %.0f s.",
                    self.what,
                    self.holder,
                    self.ttl_s,
                )
            self._stands_by = not works
        return works

    def attempt(self) -> bool:
        """Whether it is this process that works: takes the lease once it is free, and renews it when that is due.

        Raises:
            LeaseLostError: It was this process, and another has taken over.
            LeaseStoreError: The lake could not be asked.
            SetupError: The lake's store cannot have leases.
        """
        if self._objects is None:
            return True
        if self._number is None:
            self._acquire(self._objects)
        elif self._clock() - self._renewed >= self.ttl_s / 3:
            self._renew(self._objects, self._number)
        return self._number is not None

    def check(self) -> None:
        """Refuse to go on when the lease may not be relied on any more.

        Raises:
            LeaseLostError: It could not be renewed for two thirds of its time, or another process has it.
        """
        if self._objects is not None and self._clock() - self._renewed >= self.ttl_s * 2 / 3:
            message = (
                f"The lease could not be renewed for {self.ttl_s * 2 / 3:.0f} s, so another machine may take over "
                "soon: this process stops, and can begin again once the lake answers."
            )
            raise LeaseLostError(message)

    def release(self) -> None:
        """Say that this process has ended, so that the next one need not wait."""
        if self._objects is not None and self._number is not None:
            try:
                self._objects.create(self._number + 1, replace(self._self, released=True))
                self._objects.delete(self._number)
            except LeaseStoreError as error:
                _LOG.warning("%s The next process waits for %.0f s.", error, self.ttl_s)
            self._number = None

    def _acquire(self, objects: LeaseObjects) -> None:
        began = self._clock()
        newest, other = objects.newest()
        if self._watched != newest:
            self._watched, self._watched_since = newest, began
        is_free = (
            other is None
            or other.released
            # Our own, whose answer was lost.
            or other.token == self._self.token
            or other.has_died(self._self.machine)
            or began - self._watched_since >= self.ttl_s
        )
        if is_free and objects.create(newest + 1, self._self):
            # One that stood still since it looked may have written a number that was in use and gone.
            mine, older = newest + 1, objects.numbers()
            if max(older, default=0) > mine:
                objects.delete(mine)
            elif objects.create(mine, self._self):
                raise SetupError(IGNORES_CONDITIONS.format(place=objects.place))
            else:
                for number in older:
                    if number != mine:
                        objects.delete(number)
                self._number, self._renewed = mine, began
        self.holder = None if self._number is not None else other

    def _renew(self, objects: LeaseObjects, number: int) -> None:
        began = self._clock()
        if objects.create(number + 1, self._self):
            self._number, self._renewed = number + 1, began
            objects.delete(number)
            return
        newest, other = objects.newest()
        if other is None or other.token != self._self.token:
            self._number, self._renewed = None, began - self.ttl_s
            message = f"The lease was taken over ({other or _UNKNOWN}): only one may work, so this one stops."
            raise LeaseLostError(message)
        # Our own write, whose answer was lost. When it was made is not known, so it does not count.
        self._number = newest


def lease_of(what: str, lake: str, cluster: str | None, ttl_s: float = TTL_S) -> Lease:
    """The lease of one kind of program, from this process's side.

    Args:
        what: `JOB`, `ALERTER` or `MAINTAINER`.
        lake: Folder or URI.
        cluster: Name of the cluster; None for a program that works on the whole lake.
        ttl_s: Seconds that a candidate watches.
    """
    where = f"the lake {lake}" if cluster is None else f"the cluster {cluster!r} with the lake {lake}"
    return Lease(f"{what} for {where}", _objects(what, lake, cluster), steady_s, ttl_s)


_refused: dict[tuple[str, str, str | None], Lease] = {}
"""Leases that were refused without waiting, by kind and lake: what they have watched counts at the next try."""


@contextmanager
def only_one(
    what: str,
    lake: str,
    cluster: str | None,
    *,
    wait: bool = True,
    ttl_s: float = TTL_S,
    stop: threading.Event | None = None,
) -> Iterator[Callable[[], None]]:
    """Work alone: refuse beside another process of this machine, stand by for one of another machine.

    Args:
        what: The kind, as in `lease_of`. A job that loses its lease ends at once with exit code 1, as by `kill -9`.
        lake: Folder or URI.
        cluster: Name of the cluster; None for a program that works on the whole lake.
        wait: Stand by; else refuse in any case.
        ttl_s: Seconds that a candidate watches.
        stop: Ends the standing by: then nothing is held, and each check refuses.

    Yields:
        A check to call before each write: it raises `LeaseLostError` once the lease may not be relied on any more.

    Raises:
        SetupError: Another process works, or the lake's store cannot have leases.
        LeaseStoreError: The lake could not be asked.
    """
    over, asked, key = threading.Event(), stop or threading.Event(), (what, lake, cluster)
    lease = lease_of(what, lake, cluster, ttl_s) if wait or key not in _refused else _refused[key]
    try:
        if not lease.attempt() and (lease.is_local or not wait):
            _refused[key] = lease
            message = f"Another {lease.what} runs ({lease.holder}): stop that one, or wait for its end."
            raise SetupError(message)
        while not lease.poll() and not asked.wait(ttl_s / _POLLS):
            pass
        keeper = threading.Thread(target=_keep, args=(lease, what, over), name="lease", daemon=True)
        if not asked.is_set():
            keeper.start()
        try:
            yield lease.check
        finally:
            over.set()
            if keeper.ident is not None:
                keeper.join()
    finally:
        lease.release()


def holder_of(what: str, lake: str, cluster: str | None) -> str | None:
    """Who works, in words; None when nobody does, as far as can be told without waiting. Nothing is taken or written.

    Raises:
        LeaseStoreError: The lake could not be asked.
    """
    objects = _objects(what, lake, cluster)
    if objects is None or not (on_object_store(lake) or Path(lake).is_dir()):
        return None
    holder = objects.newest()[1]
    if holder is None or holder.released or holder.has_died(_machine()):
        return None
    return str(holder)


def _objects(what: str, lake: str, cluster: str | None) -> LeaseObjects | None:
    if "://" in lake and not on_object_store(lake):
        return None
    return LeaseObjects(lake, "/".join(filter(None, ("_locks", cluster, what))))


def _machine() -> str:
    """This machine since its start, and the space of its process ids: containers on one kernel have spaces apart."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def _keep(lease: Lease, what: str, stop: threading.Event) -> None:
    """Renew a lease. A job that may not rely on it ends; for a maintainer `check` refuses."""
    failed = False
    while not stop.wait(lease.ttl_s / _POLLS):
        try:
            try:
                lease.poll()
                failed = False
            except LeaseStoreError as error:
                if not failed:
                    _LOG.warning("%s Trying again.", error)
                failed = True
            if what == JOB:
                lease.check()
        except LeaseLostError as error:
            if what == JOB:
                # Whatever the other threads do, in Python or elsewhere, must not write any more.
                sys.stderr.write(f"{error}\n")
                sys.stderr.flush()
                os._exit(1)
            return
