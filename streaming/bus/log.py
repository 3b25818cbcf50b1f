"""A log in a folder: appends that are numbered, found again without a listing, put together and deleted by age.

The next append's name is the offset behind the newest record, and only one writer gets a name. That is the whole
protocol: two writers cannot have one offset, and a record is there only after all before it are. Who follows a log asks
for the next name; it lists objects only at its start, and where it wants what lies further back.

An append's time is the moment at which the store got its object, by the store's clock: a disk's is that of the machine
with the disk, and an object store gives whole seconds. It is never below that of the append before, unless the clock
was set back by more than a minute: then it is taken as it is, as that of a broker would be.

Objects are small and many: three for each round. So appends of more than ten minutes ago are put together, some hundred
in an object, which also keeps their times; those beyond the retention are deleted, except the newest, which holds the
offset at which the log goes on.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Final

import msgspec
import zstandard

from streaming.bus.folder import BusFolderError, FolderObjects, Name
from streaming.times import steady_s

_Pair = tuple[bytes | None, bytes]
"""Key and value of a record."""

_SET_BACK_MS: Final = 60_000
"""Clocks of a store's servers differ by less; with more, a clock that was wrong for a moment would hold up all time."""

_TRUSTED_S: Final = 60.0
"""How long the known end of a log stays so without another look. Objects that are put together or deleted are ten
minutes old, so a name that was free within this time has never been in use."""

_LATEST_S: Final = 300.0
"""A request ends within 30 s. A writer that needs so much longer has stood still, and may have
written a name that was in use and gone."""

_SETTLED_MS: Final = 600_000
"""Appends are put together when they are so old: those who follow the log have read them."""

_TOGETHER: Final = 200
_TOGETHER_BYTES: Final = 1024 * 1024
"""Appends in one object, and about the compressed bytes: three days of rounds are 400 objects, and a read of one takes
little memory."""

_CACHED: Final = 8
_CACHED_BYTES: Final = 64 * 1024
"""Objects that are kept, and the compressed bytes of one at the most: a round's records are read two or three times, by
`end`, to plan and to judge it."""


class _Append(msgspec.Struct, frozen=True, array_like=True):
    """Records that were appended at once.

    Attributes:
        floor: Time below which its time cannot be, ms.
        records: Key and value of each.
        time: Its time, ms, where it was put together with others; None where its object's time gives it.
    """

    floor: int
    records: tuple[_Pair, ...]
    time: int | None = None


class _Content(msgspec.Struct, frozen=True, array_like=True):
    """What is in an object, as MessagePack compressed by zstd. Like every schema of ours it only grows.

    Attributes:
        writer: Unique for each append: a writer knows its own object again, whose answer was lost.
        appends: In the log's order.
    """

    writer: str
    appends: tuple[_Append, ...]


_DECODER: Final = msgspec.msgpack.Decoder(_Content)


@dataclass(frozen=True, slots=True)
class AppendedRecord:
    """One record, with the names of kafka-python's: `record_batches.walk` takes either."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class LogObject:
    """An object as it was read.

    Attributes:
        base: Offset of its first record.
        end: Exclusive end.
        time: Time of its last append, ms.
        writer: As in the object.
        appends: Its appends, each with its time.
    """

    base: int
    end: int
    time: int
    writer: str
    appends: tuple[_Append, ...]

    def records(self) -> Iterator[AppendedRecord]:
        """Its records, in order."""
        offset = self.base
        for append in self.appends:
            for key, value in append.records:
                yield AppendedRecord(offset, append.time or 0, key, value)
                offset += 1


@dataclass(frozen=True, slots=True)
class Appended:
    """An append that is there.

    Attributes:
        offset: Of its first record.
        time: Its time, ms.
    """

    offset: int
    time: int


class FolderLog:
    """One log. For one thread. Methods raise `BusFolderError`."""

    def __init__(self, objects: FolderObjects, topic: str) -> None:
        """Prepare; nothing is asked yet.

        Args:
            objects: The cluster's objects.
            topic: Name of the log.
        """
        self._objects, self._topic = objects, topic
        self._end, self._time, self._known_at = 0, 0, -_TRUSTED_S
        self._listed: list[Name] = []
        self._cached: dict[Name, LogObject] = {}
        self._appends = 0

    def end(self) -> int:
        """Offset behind the newest record."""
        now = steady_s()
        if now - self._known_at >= _TRUSTED_S:
            self._end = self._time = 0
            if names := self.names():
                newest = names[-1]
                self._pass(self._load(newest), newest.end or newest.base)
        while (found := self._load(Name(self._end))) is not None:
            self._pass(found, self._end)
        self._known_at = now
        return self._end

    def names(self) -> list[Name]:
        """All its objects, in order: a listing."""
        self._listed = self._objects.names(self._topic)
        return self._listed

    def holding(self, offset: int) -> LogObject | None:
        """The object with the record at an offset; None where there is none."""
        for listed in (self._listed, None):
            for name in _candidates(self.names() if listed is None else listed, offset):
                found = self._load(name)
                if found is not None and found.base <= offset < found.end:
                    return found
        return None

    def append(self, records: Sequence[_Pair], floor: int) -> Appended:
        """Write records behind the newest one; they are there when this returns.

        Args:
            records: Key and value of each; at least one.
            floor: Time before which this cannot be, ms.

        Raises:
            BusFolderError: They may be there, or come to be, all the same.
        """
        writer = uuid.uuid4().hex
        while True:
            base = self.end()
            floor = max(floor, self._time)
            name, began = Name(base), steady_s()
            content = _encoded(writer, [_Append(floor, tuple(records))])
            if not self._objects.create(self._topic, name, content):
                # Another writer's, or ours, whose answer was lost.
                found = self._load(name)
                if found is None or found.writer != writer:
                    continue
            if steady_s() - began > _LATEST_S:
                self._objects.delete(self._topic, [name])
                message = f"this machine stood still while it wrote to {self._objects}"
                raise BusFolderError(message)
            self._end = base + len(records)
            self._time = _time_of(floor, self._objects.time_of(self._topic, name))
            self._appends += 1
            return Appended(base, self._time)

    def tend(self, keep_ms: int) -> None:
        """Put old appends together, and delete those that are too old; once in some hundred appends.

        Args:
            keep_ms: How long records are kept; ten minutes at least, for those who follow the log.
        """
        if self._appends < _TOGETHER:
            return
        self._appends = 0
        names = self.names()
        newest = max(name.time for name in names)
        expired = list(takewhile(lambda name: name.time < newest - max(keep_ms, _SETTLED_MS), names[:-1]))
        # Those that are in a larger object already, and were left behind by a probe that was killed.
        reached, doubled = 0, []
        for name in names:
            if name.end is None and name.base < reached:
                doubled.append(name)
            reached = max(reached, name.end or 0)
        self._objects.delete(self._topic, [*expired, *doubled])
        gone = {*expired, *doubled}
        settled = (name for name in names if name.end is None and name.time < newest - _SETTLED_MS)
        for some in _full_groups(name for name in settled if name not in gone):
            self._put_together(some)

    def _put_together(self, names: Sequence[Name]) -> None:
        parts = [found for name in names if (found := self._load(name)) is not None]
        if any(before.end != part.base for before, part in pairwise(parts)) or len(parts) < len(names):
            return  # an object is damaged, or was deleted meanwhile
        together = Name(parts[0].base, parts[-1].end)
        appends = [append for part in parts for append in part.appends]
        self._objects.create(self._topic, together, _encoded(uuid.uuid4().hex, appends))
        self._objects.delete(self._topic, names)

    def _pass(self, found: LogObject | None, at_least: int) -> None:
        """Know that the log goes on behind an object."""
        self._end = at_least if found is None else max(at_least, found.end)
        self._time = max(self._time, found.time if found is not None else 0)

    def _load(self, name: Name) -> LogObject | None:
        """Read an object; None where there is none. One that cannot be decoded is a record with its bytes."""
        key = Name(name.base, name.end)
        if key in self._cached:
            return self._cached[key]
        got = self._objects.get(self._topic, name)
        if got is None:
            return None
        data, modified = got
        try:
            content = _DECODER.decode(zstandard.decompress(data))
        except (msgspec.DecodeError, zstandard.ZstdError):
            content = _Content("", (_Append(0, ((None, data),)),))
        appends = tuple(
            [
                msgspec.structs.replace(append, time=_time_of(append.floor, modified))
                if append.time is None
                else append
                for append in content.appends
            ]
        )
        end = name.base + sum(len(append.records) for append in appends)
        found = LogObject(name.base, end, max(append.time or 0 for append in appends), content.writer, appends)
        if len(data) <= _CACHED_BYTES:
            while len(self._cached) >= _CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[key] = found
        return found


def _full_groups(names: Iterable[Name]) -> Iterator[list[Name]]:
    """Appends that make an object together, without those at the end that are too few yet."""
    some: list[Name] = []
    size = 0
    for name in names:
        is_large = 2 * name.size > _TOGETHER_BYTES  # it stays as it is
        if is_large or len(some) == _TOGETHER or size + name.size > _TOGETHER_BYTES:
            if len(some) > 1:
                yield some
            some, size = [], 0
        if not is_large:
            some.append(name)
            size += name.size


def _encoded(writer: str, appends: Sequence[_Append]) -> bytes:
    return zstandard.compress(msgspec.msgpack.encode(_Content(writer, tuple(appends))))


def _time_of(floor: int, modified: int) -> int:
    """Time of an append whose object the store got at `modified`, ms."""
    if floor - modified > _SET_BACK_MS:
        return modified
    return max(floor, modified)


def _candidates(names: Iterable[Name], offset: int) -> Iterator[Name]:
    """Objects that may have an offset, the likeliest first."""
    before: Name | None = None
    for name in names:
        if name.base > offset:
            break
        if name.end is None:
            before = name
        elif offset < name.end:
            yield name
    yield Name(offset)
    if before is not None and before.base < offset:
        yield before
