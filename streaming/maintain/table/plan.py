"""What to do next: a pure function of the files of a table, the day and the limits.

Three kinds of work change files. Compaction joins small files of one day into one that is sorted by key. Sorting takes
some such files of a past day and writes their rows as files of a range of groups each, so that a reader of one group
opens one of them, not all. Retention deletes the rows of a day that is past its time, except for the present. All come
to an end: compaction always leaves fewer files, a sorted file is never joined or sorted again, and a day that retention
has looked at is left alone for a while.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from urllib.parse import unquote

from streaming.times import DAY_MS

# Files that retention writes are named for what they hold, rows that stay past their time, and for the day on which it
# looked, so that the next run knows. (No other field of Delta's log survives every engine.)
_PRESENT = re.compile(r"(?:.*/)?present-(\d{4}-\d{2}-\d{2})-[^/]*")

# For the same reason sorted files are named for what they are. (Their bounds in the log would say it as well, but long
# group ids have none.)
SORTED = "sorted"
"""With what the names of sorted files begin."""
_SORTED = re.compile(rf"(?:.*/)?{SORTED}-[^/]*")

# Files of one tier differ in size by less than this factor. Joining only files of about one size keeps a large one from
# being written again for every few small ones.
_TIER = 4
_SMALLEST_TIER = 4_096


@dataclass(frozen=True, slots=True)
class File:
    """A data file of a table.

    Attributes:
        path: Path inside the table's folder, as the log has it.
        day: Day of its rows; of a table without partitions, and of rows without a day, the one on which they were
            written.
        size: Bytes.
        rows: Rows.
        written: When its newest row was written, ms since the epoch.
        undated: Whether its rows have no day in a table that is partitioned by days: the time in their record was none.
            Joined with rows of a day, they would get that day.
    """

    path: str
    day: date
    size: int
    rows: int
    written: int
    undated: bool = False

    @property
    def partition_day(self) -> date | None:
        """The day that its folder stands for, where the table is partitioned; None for rows without a day."""
        return None if self.undated else self.day

    @property
    def place(self) -> str:
        """Where it lies: the log has its path as part of a URL."""
        return unquote(self.path)

    @property
    def looked_at(self) -> date | None:
        """Day on which retention found that all its rows stay; None for other files."""
        match = _PRESENT.fullmatch(self.path)
        return date.fromisoformat(match[1]) if match else None

    @property
    def is_sorted(self) -> bool:
        """Whether it is one of some files that were sorted together."""
        return _SORTED.fullmatch(self.path) is not None


def sorted_file_name(unique: str) -> str:
    """Name of a file of a range of groups."""
    return f"{SORTED}-{unique}.zstd.parquet"


def present_file_name(looked_at: date, unique: str) -> str:
    """Name of a file of rows that stay."""
    return f"present-{looked_at.isoformat()}-{unique}.zstd.parquet"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one piece, and when small files are worth joining.

    Attributes:
        piece_bytes: Bytes read by a piece of compaction. Parquet, so a multiple of it in memory.
        piece_rows: Rows read by a piece. Two million rows of `lag` take about 1.4 GB of memory and 4 s of one core, and
            make 31 files of a day of 61 million.
        piece_files: Files that a piece reads: opening two thousand takes 2 to 4 s, however few rows they have.
        min_files: Files of one size that a day still being written must have before they are joined: a minute of
            commits would be joined 1,440 times a day, a day of them only when nobody reads them any more.
        quiet_ms: A past day to which nothing was written for this long is closed: all its small files become one, and
            what is then left is sorted.
        sort_files: Files of a closed day that are sorted together; 0 for none. With more, a reader of a group's
            month opens fewer files; with fewer, history that is computed again reads less beside the hour it needs.
        sort_rows: Rows of a file that is sorted, and of one that sorting makes, which bounds the memory: `piece_rows`
            before a gap between two batches makes it smaller.
        look_again_days: What retention has kept is looked at again after so many days: it may have ended. Each look
            is a commit for each old day of which something lives.
    """

    piece_bytes: int = 64 * 1024 * 1024
    piece_rows: int = 2_000_000
    piece_files: int = 2_000
    min_files: int = 60
    quiet_ms: int = 3_600_000
    sort_files: int = 12
    sort_rows: int = 2_000_000
    look_again_days: int = 7

    def is_small(self, file: File) -> bool:
        """Whether a file is worth joining with others; two small files always fit into a piece."""
        return 2 * file.size < self.piece_bytes and 2 * file.rows < self.piece_rows


@dataclass(frozen=True, slots=True)
class _OfOneDay:
    """A piece of work on files of one day, all of them with a day or all without (`File.undated`)."""

    day: date
    files: tuple[File, ...]

    @property
    def partition_day(self) -> date | None:
        """As of its files."""
        return self.files[0].partition_day


@dataclass(frozen=True, slots=True)
class Compaction(_OfOneDay):
    """Join files of one day, at least two."""


@dataclass(frozen=True, slots=True)
class Sorting(_OfOneDay):
    """Write the rows of files of one day, at least two, as files of a range of groups each."""


@dataclass(frozen=True, slots=True)
class Expiry(_OfOneDay):
    """Delete the rows of a whole day, except for the present."""


def today_of(now: int, newest: date | None) -> date:
    """The day from which rows are aged, UTC: the newest in the lake, or the clock's if that is earlier.

    So neither a machine whose clock is ahead nor a broker whose clock is deletes history, and a lake to which nobody
    writes any more stays as it is.

    Args:
        now: The clock, ms since the epoch.
        newest: Newest day of a round in the lake; None when there is none.
    """
    clock = day_of_clock(now)
    return clock if newest is None else min(clock, newest)


def day_of_clock(now: int) -> date:
    """Day of a time in ms since the epoch, UTC."""
    return date(1970, 1, 1) + timedelta(days=now // DAY_MS)


def next_piece(
    files: Iterable[File],
    today: date,
    now: int,
    keep_days: int,
    limits: Limits,
    is_held: Callable[[date], bool] = lambda _: False,
) -> Compaction | Sorting | Expiry | None:
    """The next piece of work on a table; None when there is nothing to do.

    Args:
        files: All its files.
        today: As `today_of` says.
        now: The clock, ms since the epoch; only compared with `File.written` and `File.looked_at`.
        keep_days: Days before today whose rows are kept.
        limits: The limits.
        is_held: Whether a day past its time must wait, and with it all later ones.
    """
    first_kept = today - timedelta(days=keep_days)
    by_day = _by_day(files)
    # The oldest day first: an `ended` row must outlive the rows before it (see `present.py`).
    for (day, _), found in by_day.items():
        if day >= first_kept or is_held(day):
            break
        if any(_is_due(file, now, limits) for file in found):
            return Expiry(day, tuple(found))
    # The newest day first: readers open its files most often.
    kept = [(day, found) for (day, _), found in reversed(by_day.items()) if day >= first_kept]
    for day, found in kept:
        if chosen := _chosen(found, is_past=day < today, now=now, limits=limits):
            return Compaction(day, chosen)
    for day, found in kept:
        if day < today and _is_quiet(found, now, limits) and (chosen := _unsorted(found, limits)):
            return Sorting(day, chosen)
    return None


def all_pieces(
    files: Iterable[File], today: date, now: int, keep_days: int, limits: Limits
) -> list[Compaction | Sorting | Expiry]:
    """The first pieces that a run would do, one after the other, without what their results lead to."""
    left = {file.path: file for file in files}
    found: list[Compaction | Sorting | Expiry] = []
    while (piece := next_piece(left.values(), today, now, keep_days, limits)) is not None:
        found.append(piece)
        for file in piece.files:
            del left[file.path]
    return found


def _by_day(files: Iterable[File]) -> dict[tuple[date, bool], list[File]]:
    """Files by day and by whether their rows have one, in this order; each list by time."""
    ordered = sorted(files, key=lambda f: (f.day, f.undated, f.written, f.path))
    return {of: list(found) for of, found in groupby(ordered, key=lambda f: (f.day, f.undated))}


def _is_due(file: File, now: int, limits: Limits) -> bool:
    return file.looked_at is None or day_of_clock(now) - file.looked_at >= timedelta(days=limits.look_again_days)


def _is_quiet(files: Sequence[File], now: int, limits: Limits) -> bool:
    return now - max(file.written for file in files) >= limits.quiet_ms


def _unsorted(files: Sequence[File], limits: Limits) -> tuple[File, ...]:
    """The first files, by time, that are to be sorted together; none when that is a single one.

    Files that are larger than a piece were made by another engine, which has an order of its own.
    """
    fitting = [f for f in files if f.rows <= limits.sort_rows and f.size <= limits.piece_bytes and not f.is_sorted]
    found = fitting[: limits.sort_files]
    return tuple(found) if len(found) > 1 else ()


def _chosen(files: Sequence[File], *, is_past: bool, now: int, limits: Limits) -> tuple[File, ...]:
    small = [file for file in files if limits.is_small(file) and not file.is_sorted]
    if is_past and small and _is_quiet(files, now, limits):
        return _fitting(small, limits)
    tiers: dict[int, list[File]] = {}
    for file in small:
        tiers.setdefault(_tier(file), []).append(file)
    for tier in sorted(tiers):
        full = _fills_a_piece(tiers[tier], limits)
        if len(tiers[tier]) >= limits.min_files or full:
            return _fitting(tiers[tier], limits)
    return ()


def _tier(file: File) -> int:
    tier, size = 0, file.size
    while size > _SMALLEST_TIER:
        tier, size = tier + 1, size // _TIER
    return tier


def _fills_a_piece(files: Sequence[File], limits: Limits) -> bool:
    return (
        len(files) >= limits.piece_files
        or sum(file.size for file in files) >= limits.piece_bytes
        or sum(file.rows for file in files) >= limits.piece_rows
    )


def _fitting(files: Sequence[File], limits: Limits) -> tuple[File, ...]:
    """The first files, by time, that fit into a piece; none when that is a single one."""
    size = rows = 0
    chosen: list[File] = []
    for file in files[: limits.piece_files]:
        size, rows = size + file.size, rows + file.rows
        if size > limits.piece_bytes or rows > limits.piece_rows:
            break
        chosen.append(file)
    return tuple(chosen) if len(chosen) > 1 else ()


@dataclass(frozen=True, slots=True)
class Log:
    """The Delta log of a table since its last checkpoint.

    Attributes:
        commits: Commits since then.
        commit_bytes: Their bytes.
        checkpoint_bytes: Bytes of the checkpoint; 0 when there is none.
    """

    commits: int
    commit_bytes: int
    checkpoint_bytes: int


# A reader opens this many commits in a few ms: fewer are not worth a checkpoint, however small it is.
_FEW_COMMITS = 20


def wants_checkpoint(log: Log) -> bool:
    """Whether a checkpoint is due: when the commits since the last one weigh as much as it does.

    So all checkpoints together weigh no more than all commits, however much one of them holds, and a reader never reads
    more than twice of what it needs.
    """
    return log.commits >= _FEW_COMMITS and log.commit_bytes >= log.checkpoint_bytes
