"""The objects of one cluster's bus in a folder, on a disk or an object store; both by obstore.

<folder>/<cluster>/id                       the bus's own id: another folder is another bus
<folder>/<cluster>/<topic>/<base>           one append, named by the offset of its first record, in 20 digits
<folder>/<cluster>/<topic>/<base>-<end>     many appends that were put together: the offsets [base, end)
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from streaming.exceptions import SetupError
from streaming.objects import IGNORES_CONDITIONS, Objects
from streaming.record_batches import UnreadableTopicError

_ID: Final = "id"

_RETRIES: Final = 3
"""Attempts beside the first, within a second or two: a store that is away for longer costs a round."""

_DIGITS: Final = 20
"""Digits of an offset in a name, so that names sort as offsets do."""


class BusFolderError(UnreadableTopicError):
    """The folder could not be read or written; the text names it and the cause."""


@dataclass(frozen=True, slots=True)
class Name:
    """The name of an object of a log.

    Attributes:
        base: Offset of its first record.
        end: Exclusive end, where many appends were put together; None for one append, whose end only its content tells.
        time: When the store got it, ms; 0 where it was not asked.
        size: Its bytes, likewise.
    """

    base: int
    end: int | None = None
    time: int = 0
    size: int = 0

    @property
    def file(self) -> str:
        """Its name in the log's folder."""
        if self.end is None:
            return f"{self.base:0{_DIGITS}}"
        return f"{self.base:0{_DIGITS}}-{self.end:0{_DIGITS}}"


class FolderObjects(Objects):
    """The objects of one cluster. Methods raise `BusFolderError`."""

    def __init__(self, folder: str, cluster: str) -> None:
        """Prepare; nothing is asked yet.

        Args:
            folder: Folder, or URI on an object store.
            cluster: Name of the cluster, whose objects are in a folder of its own there.
        """
        super().__init__(folder, cluster, _RETRIES)

    def __str__(self) -> str:
        return f"{self.place.rstrip('/')}/{self._prefix}"

    def failure(self, cause: str) -> BusFolderError:
        """The folder could not be read or written."""
        return BusFolderError(f"the folder {self} cannot be read or written: {cause}")

    def bus_id(self) -> str | None:
        """The bus's own id; None where there is no bus yet."""
        found = self._get(_ID)
        if found is None:
            return None
        return found[0].decode("ascii", "replace")

    def create_bus(self) -> bool:
        """Give the bus an id; returns whether it had none.

        Raises:
            SetupError: The store ignores the conditions of writes.
        """
        content = uuid.uuid4().hex.encode()
        is_new = self._create(_ID, content)
        if self._create(_ID, content):
            raise SetupError(IGNORES_CONDITIONS.format(place=self))
        return is_new

    def get(self, topic: str, name: Name) -> tuple[bytes, int] | None:
        """Content of an object, and when the store got it, ms; None where there is none."""
        found = self._get(f"{topic}/{name.file}")
        if found is None:
            return None
        content, meta = found
        return content, _ms(meta)

    def create(self, topic: str, name: Name, content: bytes) -> bool:
        """Write an object unless there is one of this name; returns whether it was written."""
        return self._create(f"{topic}/{name.file}", content)

    def time_of(self, topic: str, name: Name) -> int:
        """When the store got an object, ms."""
        return _ms(self._head(f"{topic}/{name.file}"))

    def names(self, topic: str) -> list[Name]:
        """All objects of a log, in its order; a larger one before one append at the same offset."""
        found = []
        for one in self._listed(topic):
            base, _, end = PurePosixPath(one["path"]).name.partition("-")
            # A writer on a disk that was killed has left a file with another ending.
            if base.isdigit() and (end.isdigit() or not end):
                found.append(Name(int(base), int(end) if end else None, _ms(one), one["size"]))
        return sorted(found, key=lambda name: (name.base, name.end is None))

    def delete(self, topic: str, names: Sequence[Name]) -> None:
        """Delete objects. Where one is not there, others may be left."""
        self._delete([f"{topic}/{name.file}" for name in names])


def _ms(meta: Any) -> int:
    return int(meta["last_modified"].timestamp() * 1000)
