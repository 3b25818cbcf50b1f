"""Whether a checkpoint goes with its lake: rows without the offsets that they were written up to are a lost checkpoint.

A query that begins anew beside them would read everything once more, and write days of rows a second time.
"""

from __future__ import annotations

import logging

import pyarrow.fs as pa_fs

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.tables import TABLES, file_system, has_rows_of

__all__ = ["refuse_lost_checkpoint"]

_LOG = logging.getLogger("streaming.job")


def refuse_lost_checkpoint(settings: Settings, checkpoint: str) -> None:
    """Refuse to begin a new checkpoint beside rows of the cluster.

    Args:
        settings: All settings.
        checkpoint: Folder or URI of the checkpoint.

    Raises:
        SetupError: The checkpoint has no batch, and a table of the job holds rows of the cluster.
    """
    # Spark writes the offsets of a batch before it begins, so a crash in the very first one is no loss.
    if _has_offsets(checkpoint):
        return
    table = next((t.name for t in TABLES if has_rows_of(settings.lake, t, settings.cluster)), None)
    if table is None:
        return
    message = (
        f"The checkpoint {checkpoint} is lost: it is empty, but the table {table} in {settings.lake} holds rows of the "
        f"cluster {settings.cluster}, which a new checkpoint would write a second time. Put the checkpoint back, or "
        "give the job a lake of its own (EVENKEEL_LAKE); docs/operations.md says how to keep the old history."
    )
    raise SetupError(message)


def _has_offsets(checkpoint: str) -> bool:
    offsets = pa_fs.FileSelector("offsets", allow_not_found=True)
    try:
        found = file_system(checkpoint).get_file_info(offsets)
    except (OSError, ValueError) as error:
        # Spark reaches stores that we do not (HDFS): it is not for us to refuse what we cannot see.
        why = next(iter(str(error).splitlines()), type(error).__name__)
        _LOG.warning("cannot look whether the checkpoint %s is there: %s", checkpoint, why)
        return True
    return any(info.base_name.isdecimal() for info in found)
