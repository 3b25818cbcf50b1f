"""A lease: one object in a store that says who may work, for machines that share nothing but that store.

The holder rewrites its object every third of `TTL_S`. A candidate takes over when it has itself watched the object
unchanged for a whole `TTL_S`, so no two clocks are ever compared. A holder that could not renew for two thirds of
`TTL_S` must stop: a third is left before anybody can take over. Every write is conditional (create if absent, replace
if it is the version that was read), so of two candidates one wins. A clean end writes the object once more, as
`released`: to delete it only if it is still ours is more than stores offer.

What a lease cannot do: a holder whose machine stands still between its last `check` and a commit may commit after it
was succeeded. Then Delta's conflict checks and transaction ids keep the tables right, as for two processes without one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from streaming.exceptions import EvenkeelError
from streaming.terminal import visible

TTL_S: Final = 90.0
"""Seconds that a candidate watches. A holder survives an outage of the store of 30 to 60 s, by when it renewed last;
where a machine dies, another one waits for 90 s. (On the same machine nobody waits: `lock.py`.)"""

# Characters of a foreign object's fields that are shown; anybody with access to the bucket can write it.
_SHOWN = 80


class LeaseLostError(EvenkeelError):
    """Another process has the lease, or may have it soon: nothing more may be written."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The object as it was read: its content, and its version in the store, which only the store understands."""

    content: bytes
    version: Hashable


class LeaseStore(Protocol):
    """Where one lease is. Methods raise `LeaseStoreError` when the store does not do what it is asked."""

    def read(self) -> Stored | None:
        """The object; None when there is none."""

    def create(self, content: bytes) -> Hashable | None:
        """Write the object if there is none, and return its version; None if there is one."""

    def replace(self, content: bytes, version: Hashable) -> Hashable | None:
        """Write the object if it still has this version, and return the new one; None if it has not."""


class LeaseStoreError(EvenkeelError):
    """The store could not be asked, or refuses; the text names store and cause."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease.

    Attributes:
        host: Name of its machine.
        pid: Its process there.
        since: When it began, in its own words: shown, never compared.
        token: Unique for each holding.
    """

    host: str
    pid: int
    since: str
    token: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


UNKNOWN: Final = Holder("an unknown host", 0, "an unknown time", "")
"""Stands for the holder of an object that is no lease."""


def new_token() -> str:
    """A token that nobody else has."""
    return uuid.uuid4().hex


class Lease:
    """One process's side of one lease: `attempt` until it is held, then `renew` and `check`, at last `release`.

    Not thread-safe, but for `check`.
    """

    def __init__(
        self,
        store: LeaseStore,
        holder: Holder,
        clock: Callable[[], float],
        is_gone: Callable[[str], bool] = lambda _: False,
        ttl_s: float = TTL_S,
        watched: tuple[Hashable, float] | None = None,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            store: Where the lease is.
            holder: Who we are.
            clock: Seconds that only grow, also while the machine sleeps.
            is_gone: Whether the holder with a token is known to have ended.
            ttl_s: Seconds that a candidate watches.
            watched: What an earlier try of this process watched (`watched`).
        """
        self._store, self._holder, self._clock, self._is_gone = store, holder, clock, is_gone
        self.ttl_s = ttl_s
        self._beat = 0
        self._version: Hashable | None = None
        self._renewed = 0.0
        self.watched = watched
        """The version that was seen, and since when; None before the first."""

    def attempt(self) -> Holder | None:
        """Try to take the lease.

        Returns:
            None when it is ours now, else who has it.

        Raises:
            LeaseStoreError: The store could not be asked.
        """
        found = self._store.read()
        began = self._clock()
        if found is None:
            self._took(self._store.create(self._content()), began)
        else:
            other, is_released = _parsed(found.content)
            if self.watched is None or self.watched[0] != found.version:
                self.watched = (found.version, began)
            is_stale = began - self.watched[1] >= self.ttl_s
            # (Our own token: a write whose answer was lost. Written again, because somebody may watch it already.)
            is_ours = other.token == self._holder.token
            if not (is_ours or is_released or is_stale or self._is_gone(other.token)):
                return other
            self._took(self._store.replace(self._content(), found.version), began)
        if self._version is not None:
            return None
        faster = self._store.read()
        return UNKNOWN if faster is None else _parsed(faster.content)[0]

    def _took(self, version: Hashable | None, began: float) -> None:
        self._version, self._renewed = version, began

    def renew(self) -> None:
        """Write the lease again.

        Raises:
            LeaseLostError: Another process has it.
            LeaseStoreError: The store could not be asked: try again while `left_s` is above 0.
        """
        assert self._version is not None  # noqa: S101 - `attempt` said that it is held
        began = self._clock()
        version = self._store.replace(self._content(), self._version)
        if version is None:
            found = self._store.read()
            other = UNKNOWN if found is None else _parsed(found.content)[0]
            if found is None or other.token != self._holder.token:
                self._renewed = began - self.ttl_s
                message = f"The lease was taken over ({other}): only one may work, so this process stops."
                raise LeaseLostError(message)
            # Our own write, whose answer was lost. When it was made is not known, so it does not count.
            self._version = found.version
            message = "The store answered a write of the lease late."
            raise LeaseStoreError(message)
        self._version, self._renewed = version, began

    @property
    def left_s(self) -> float:
        """Seconds for which the lease may be relied on, without another renewal."""
        return self._renewed + self.ttl_s * 2 / 3 - self._clock()

    def check(self) -> None:
        """Refuse to go on when the lease may not be relied on any more.

        Raises:
            LeaseLostError: It could not be renewed for two thirds of its time, or another process has it.
        """
        if self.left_s <= 0:
            message = (
                f"The lease could not be renewed for {self.ttl_s * 2 / 3:.0f} s, so another machine may take over "
                "soon: this process stops, and can begin again once the store answers."
            )
            raise LeaseLostError(message)

    def refuses_others(self, honours_conditions: Callable[[bytes], bool]) -> bool:
        """Whether the store keeps others from writing a lease that is held; ask it once, when it was taken."""
        return honours_conditions(self._content())

    def release(self) -> None:
        """Say that the holder has ended, so that the next one need not wait.

        Raises:
            LeaseStoreError: The store could not be asked: the next one waits.
        """
        if self._version is not None:
            self._store.replace(self._content(released=True), self._version)
            self._version = None

    def _content(self, *, released: bool = False) -> bytes:
        # (The version of an object is often a digest of its content, so each content must be another.)
        self._beat += 1
        said: dict[str, Any] = {
            "token": self._holder.token,
            "host": self._holder.host,
            "pid": self._holder.pid,
            "since": self._holder.since,
            "beat": self._beat,
            "released": released,
        }
        return json.dumps(said).encode()


def holder_of_content(content: bytes) -> str | None:
    """Who holds the lease with this content; None when it was released."""
    holder, is_released = _parsed(content)
    return None if is_released else str(holder)


def _parsed(content: bytes) -> tuple[Holder, bool]:
    """Holder of a lease, and whether it was released; an object that is no lease has an unknown one."""
    try:
        said = json.loads(content)
        host, since = visible(str(said["host"]), _SHOWN), visible(str(said["since"]), _SHOWN)
        return Holder(host, int(said["pid"]), since, str(said["token"])), said["released"] is True
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return UNKNOWN, False
