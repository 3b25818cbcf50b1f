"""The check that a checkpoint belongs to its lake: a lake with rows and no checkpoint has lost its checkpoint.

A query that starts over beside these rows would read everything again, and write days of rows a second time.
"""

from __future__ import annotations

import pyarrow.fs as pa_fs

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.lifecycle import room_log
from streaming.tables import TABLES, file_system, has_rows_of

__all__ = ["refuse_lost_checkpoint"]

_LOG = room_log(__name__)


def refuse_lost_checkpoint(settings: Settings, checkpoint: str) -> None:
    """Refuse to start a new checkpoint beside rows of the cluster.

    Args:
        settings: All settings.
        checkpoint: Folder or URI of the checkpoint.

    Raises:
        SetupError: The checkpoint has no batch, and a table of the job holds rows of the cluster.
    """
    # Spark writes a batch's offsets before the batch begins, so a crash in the very first one loses nothing.
    if _has_offsets(checkpoint):
        return
    table = next((t.name for t in TABLES if has_rows_of(settings.lake, t, settings.cluster)), None)
    if table is None:
        return
    message = (
        f"The checkpoint {checkpoint} is lost: it is empty, but the table {table} in {settings.lake} holds rows of the "
        f"cluster {settings.cluster}, which a new checkpoint would write a second time. Restore the checkpoint, or "
        "give the job a lake of its own (EVENKEEL_LAKE); docs/operations.md says how to keep the old history."
    )
    raise SetupError(message)


def _has_offsets(checkpoint: str) -> bool:
    offsets = pa_fs.FileSelector("offsets", allow_not_found=True)
    try:
        found = file_system(checkpoint).get_file_info(offsets)
    except (OSError, ValueError) as error:
        # Spark reaches stores that we do not (HDFS): we must not refuse what we cannot check.
        why = next(iter(str(error).splitlines()), type(error).__name__)
        _LOG.warning("cannot check whether the checkpoint %s exists: %s", checkpoint, why)
        return True
    return any(info.base_name.isdecimal() for info in found)
