"""Where the job keeps its offsets and state."""

from __future__ import annotations

from streaming.config.settings import Settings
from streaming.exceptions import SetupError
from streaming.stores import on_object_store


def checkpoint_of(settings: Settings) -> str:
    """The folder of the query's offsets and state: the setting, else beside the tables, one per cluster.

    Raises:
        SetupError: The lake is on an object store, which Spark does not reach by itself, and no folder is set.
    """
    if settings.job.checkpoint is not None:
        return settings.job.checkpoint
    if on_object_store(settings.lake):
        message = (
            f"The lake {settings.lake} is on an object store, where Spark cannot keep the job's state: name a folder "
            "on a disk that outlives the job in job.checkpoint (EVENKEEL_JOB__CHECKPOINT), or with --checkpoint."
        )
        raise SetupError(message)
    return f"{settings.lake.rstrip('/')}/_checkpoints/{settings.cluster}"
