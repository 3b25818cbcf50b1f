"""A lease as an object beside the tables of a lake; through obstore, which finds credentials as deltalake does."""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import from_url

from streaming.process.lease import LeaseStore, LeaseStoreError, Stored, holder_of_content
from streaming.stores import cause_of

# A lease has some 200 bytes; what is larger is none, and is not read.
_LARGEST = 4096

IGNORES_CONDITIONS: Final = (
    "The store of {lake} ignores the conditions of writes (If-None-Match, If-Match), so two writers would lose each "
    "other's commits: use a store that has conditional writes."
)

_NO_VERSION = (("e_tag", '"0"'),)
"""A version that no object ever has."""


class ObjectLeaseStore(LeaseStore):
    """One object of the lake's store."""

    def __init__(self, lake: str, path: str) -> None:
        """Prepare; nothing is asked yet.

        Args:
            lake: URI of the lake.
            path: The object, below the lake.

        Raises:
            LeaseStoreError: The URI is none, or the environment cannot be understood.
        """
        self._place, self._path = f"{lake.rstrip('/')}/{path}", path
        with self._told():
            # (No retries of its own: the lease knows better what a lost answer means. The options of its HTTP client
            # stay the environment's, because obstore 0.12.1 drops AWS_ALLOW_HTTP when it is given any. So a request
            # ends after 30 s: one that begins before a lease is lost ends before it is anybody's.)
            self._store: Any = from_url(lake, retry_config={"max_retries": 0})

    def read(self) -> Stored | None:
        """See `LeaseStore`."""
        with self._told():
            try:
                found = obstore.get(self._store, self._path)
            except FileNotFoundError:
                return None
            content = bytes(found.bytes()) if found.meta["size"] <= _LARGEST else b""
            return Stored(content, _version_of(found.meta))

    def create(self, content: bytes) -> Hashable | None:
        """See `LeaseStore`."""
        return self._put(content, "create")

    def replace(self, content: bytes, version: Hashable) -> Hashable | None:
        """See `LeaseStore`."""
        return self._put(content, dict(cast("tuple[tuple[str, str], ...]", version)))

    def honours_conditions(self, content: bytes) -> bool:
        """Whether the store refuses writes whose condition does not hold; the object must be there and ours.

        A store that ignores conditions would let two writers commit the same version of a table.
        """
        return self.create(content) is None and self.replace(content, _NO_VERSION) is None

    def delete(self) -> None:
        """Delete the object; no error if there is none.

        Raises:
            LeaseStoreError: The store could not be asked, or refuses.
        """
        with self._told():
            obstore.delete(self._store, self._path)

    def _put(self, content: bytes, mode: Any) -> Hashable | None:
        with self._told():
            try:
                return _version_of(obstore.put(self._store, self._path, content, mode=mode))
            except (AlreadyExistsError, PreconditionError):
                return None

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            message = f"The object {self._place} cannot be read or written: {cause_of(error)}."
            raise LeaseStoreError(message) from None


def holder_in_store(lake: str, path: str) -> str | None:
    """Who has a lease, in words; None where it is free. Whether its holder still lives is not known.

    Raises:
        LeaseStoreError: The store could not be asked.
    """
    found = ObjectLeaseStore(lake, path).read()
    return None if found is None else holder_of_content(found.content)


def try_store(lake: str) -> tuple[bool, str | None]:
    """Read, write and delete a small object of a lake's store.

    Args:
        lake: URI of a lake on an object store.

    Returns:
        Whether it can be read, and what is wrong with it; None where nothing is.
    """
    store = ObjectLeaseStore(lake, f"_locks/trial-{uuid.uuid4().hex}")
    answers = False
    try:
        store.read()
        answers = True
        store.create(b"a trial of `evenkeel doctor`")
        try:
            kept = store.honours_conditions(b"another trial of `evenkeel doctor`")
        finally:
            store.delete()
    except LeaseStoreError as error:
        return answers, str(error)
    return answers, None if kept else IGNORES_CONDITIONS.format(lake=lake)


def _version_of(meta: Mapping[str, Any]) -> Hashable:
    # (S3 and Azure go by the ETag, Google by the version.)
    return tuple((name, meta[name]) for name in ("e_tag", "version") if meta[name] is not None)
