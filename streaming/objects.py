"""Objects in a folder or an object store that are created only if their names are free, by obstore.

This is how Delta's own commits are made: on a disk an object is written beside its place and linked there, on a store
the request carries the condition. So an object is there whole or not at all, and of two writers one has it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, from_url

from streaming.exceptions import EvenkeelError
from streaming.stores import cause_of, on_object_store

IGNORES_CONDITIONS: Final = (
    "The store of {place} ignores the conditions of writes (If-None-Match), so two writers would lose each other's "
    "records: use a store that has conditional writes."
)


class Objects(ABC):
    """Objects below one prefix. Methods raise what `failure` makes of the cause."""

    def __init__(self, place: str, prefix: str, retries: int) -> None:
        """Prepare; nothing is asked yet.

        Args:
            place: Folder, or URI on an object store.
            prefix: What their names begin with, a folder there.
            retries: How often a request to a store is tried again.
        """
        self.place, self._prefix, self._retries = place, prefix, retries

    @abstractmethod
    def failure(self, cause: str) -> EvenkeelError:
        """The error of a request that failed."""

    @cached_property
    def _store(self) -> Any:
        return _opened(self.place, self._retries)

    def _get(self, name: str) -> tuple[bytes, Any] | None:
        """Content of an object, and what the store knows of it; None where there is none."""
        with self._asking():
            try:
                found = obstore.get(self._store, self._path(name))
                return bytes(found.bytes()), found.meta
            except FileNotFoundError:
                return None

    def _create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one of this name; returns whether it was written."""
        with self._asking():
            try:
                obstore.put(self._store, self._path(name), content, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def _head(self, name: str) -> Any:
        """What the store knows of an object."""
        with self._asking():
            return obstore.head(self._store, self._path(name))

    def _listed(self, folder: str = "") -> Sequence[Any]:
        """What the store knows of all objects in a folder below the prefix."""
        with self._asking():
            return obstore.list(self._store, prefix=self._path(folder).rstrip("/"), chunk_size=1_000).collect()

    def _delete(self, names: Sequence[str]) -> None:
        """Delete objects. Where one is not there, others may be left."""
        if names:
            with self._asking(), suppress(FileNotFoundError):
                obstore.delete(self._store, [self._path(name) for name in names])

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            raise self.failure(cause_of(error)) from None


def _opened(uri: str, retries: int) -> Any:
    """The objects below a folder, which is created if it is missing, or below a URI, by obstore.

    Args:
        uri: Folder, or URI on an object store.
        retries: How often a request to a store is tried again.

    Raises:
        OSError, ValueError: It cannot be created, or names no such place.
    """
    if on_object_store(uri):
        # The options of its HTTP client stay the environment's, because obstore 0.12.1 drops AWS_ALLOW_HTTP when it is
        # given any. So a request ends after 30 s.
        return from_url(uri, retry_config={"max_retries": retries})
    if "://" in uri:
        message = "it is neither a folder nor on an object store that Evenkeel knows"
        raise ValueError(message)
    return LocalStore(Path(uri).absolute(), mkdir=True)
