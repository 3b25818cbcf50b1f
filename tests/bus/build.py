"""A folder's objects that count what is asked of them, and can be away or lose an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from streaming.bus import BusFolderError, FolderLog, FolderObjects, FolderReader
from streaming.bus.folder import Name
from streaming.record_batches import Gone, OffsetRange, Record, walk

TOPIC = "evenkeel.rounds"


class Objects(FolderObjects):
    """Real objects.

    Attributes:
        asked: How often each kind of request was sent.
        is_away: Whether every request fails.
        loses_answer: The next object is created, and the answer is lost.
    """

    def __init__(self, folder: str, cluster: str = "prod") -> None:
        super().__init__(folder, cluster)
        self.asked: Counter[str] = Counter()
        self.is_away = self.loses_answer = False

    def names(self, topic: str) -> list[Name]:
        self._ask("list")
        return super().names(topic)

    def get(self, topic: str, name: Name) -> tuple[bytes, int] | None:
        self._ask("get")
        return super().get(topic, name)

    def create(self, topic: str, name: Name, content: bytes) -> bool:
        self._ask("put")
        created = super().create(topic, name, content)
        if self.loses_answer:
            self.loses_answer = False
            return False  # as the second attempt of a request whose first one was done
        return created

    def delete(self, topic: str, names: Sequence[Name]) -> None:
        self._ask("delete")
        super().delete(topic, names)

    def _ask(self, what: str) -> None:
        self.asked[what] += 1
        if self.is_away:
            raise BusFolderError("the folder does not answer")


def texts(*values: str) -> list[tuple[bytes | None, bytes]]:
    return [(b"key", value.encode()) for value in values]


def appended(log: FolderLog, *values: str, floor: int = 0) -> int:
    return log.append(texts(*values), floor).offset


def read(reader: FolderReader, start: int, end: int, topic: str = TOPIC) -> list[Record | Gone]:
    """What a range holds, records and gaps."""
    found: list[Record | Gone] = []
    for where, item in reader.read([OffsetRange(topic, 0, start, end)]):
        found += [item] if isinstance(item, Gone) else list(walk(item, where.start, where.end))
    return found


def values(items: Iterable[Record | Gone]) -> list[str | Gone]:
    return [item if isinstance(item, Gone) else (item[3] or b"").decode() for item in items]
