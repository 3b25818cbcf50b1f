"""What a run of maintenance would do to a table, without doing it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from streaming.maintain.table.delta_table import MaintainedTable
from streaming.maintain.table.plan import Compaction, Expiry, Limits, Sorting, all_pieces, wants_checkpoint


@dataclass(frozen=True, slots=True)
class Outlook:
    """A table, and what the next run would do to it.

    Attributes:
        table: Name of the table.
        files: Files.
        size: Bytes.
        rows: Rows.
        keep_days: Days that are kept.
        compactions: Pieces of compaction.
        compacted_files: Files that they would join.
        compacted_size: Bytes of those.
        sorted_files: Files that would be sorted, beside those that are joined first.
        sorted_size: Bytes of those.
        expired_days: Days past their time that would be looked at.
        expired_rows: Rows of those days; some of them may be the present.
        expired_size: Their bytes.
        vacuumed_files: Files that vacuum would delete.
        vacuumed_size: Their bytes.
        checkpoint: A checkpoint of the log would be written.
        refused: Columns that this release does not know, where rows would have to be written again: then the run fails
            for this table, and does nothing of all this.
    """

    table: str
    files: int
    size: int
    rows: int
    keep_days: int
    compactions: int
    compacted_files: int
    compacted_size: int
    sorted_files: int
    sorted_size: int
    expired_days: int
    expired_rows: int
    expired_size: int
    vacuumed_files: int
    vacuumed_size: int
    checkpoint: bool
    refused: tuple[str, ...] = ()


def outlook_of(opened: MaintainedTable, today: date, now: int, keep_days: int, limits: Limits) -> Outlook:
    """Look at one table; nothing is changed. The arguments are those of `next_piece`."""
    files = opened.files()
    pieces = all_pieces(files, today, now, keep_days, limits)
    joined = [f for p in pieces if isinstance(p, Compaction) for f in p.files]
    sorted_ = [f for p in pieces if isinstance(p, Sorting) for f in p.files]
    expired = [f for p in pieces if isinstance(p, Expiry) for f in p.files]
    vacuumed_files, vacuumed_size = opened.vacuum(dry_run=True)
    return Outlook(
        table=opened.table.name,
        files=len(files),
        size=sum(f.size for f in files),
        rows=sum(f.rows for f in files),
        keep_days=keep_days,
        compactions=sum(isinstance(p, Compaction) for p in pieces),
        compacted_files=len(joined),
        compacted_size=sum(f.size for f in joined),
        sorted_files=len(sorted_),
        sorted_size=sum(f.size for f in sorted_),
        expired_days=sum(isinstance(p, Expiry) for p in pieces),
        expired_rows=sum(f.rows for f in expired),
        expired_size=sum(f.size for f in expired),
        vacuumed_files=vacuumed_files,
        vacuumed_size=vacuumed_size,
        checkpoint=wants_checkpoint(opened.log()),
        refused=opened.unknown() if pieces else (),
    )
