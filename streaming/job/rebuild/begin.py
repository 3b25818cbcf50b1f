"""The beginning of a rebuild: move the old checkpoint aside, look at tables and topics, make the plan."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
from kafka.errors import KafkaError

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.job.checkpoint import is_empty, is_local
from streaming.job.rebuild.plan import Rebuild, Topics, plan_rebuild, write_plan
from streaming.job.source import SourceSettings
from streaming.job.source.connection import Readers, kept_readers
from streaming.lifecycle import room_log
from streaming.record_batches import UnreadableTopicError
from streaming.tables import TABLES, DeltaLake, KnownRows, named_to_arrow, table_named

_LOG = room_log(__name__)

_GAP = (
    "the job's state was lost and rebuilt from what log and rounds still hold: some columns of the rows after this "
    "time may differ from those of a job that was never interrupted (docs/operations.md)"
)


def begin(settings: Settings, checkpoint: str) -> Rebuild | None:
    """Plan a rebuild, and move the checkpoint aside for a new one.

    Args:
        settings: All settings; secrets must be in files or in the environment (`KafkaSettings.export_secrets`).
        checkpoint: Folder or URI of the checkpoint.

    Returns:
        The plan; None where the tables have no rows of the cluster, so that a plain start does the same.

    Raises:
        SetupError: The checkpoint cannot be moved, or the topics cannot be read.
    """
    plan = _plan(settings)
    aside = _moved_aside(checkpoint)
    if aside is not None:
        _LOG.info("the checkpoint %s was moved to %s; delete that when all is well", checkpoint, aside)
    if plan is None:
        _LOG.info(
            "the tables in %s have no rows of %s: reading from the beginning",
            settings.lake,
            settings.cluster,
        )
        return None
    DeltaLake(settings.lake).create()  # first: a table that is missing beside a plan was deleted after it
    write_plan(checkpoint, plan)
    _LOG.info(
        "rebuilding the state: the tables have everything up to round %d; log and rounds are read again",
        plan.newest_round,
    )
    return plan


def _plan(settings: Settings) -> Rebuild | None:
    if not any(KnownRows(settings.lake, table, settings.cluster).any() for table in TABLES):
        return None
    source = SourceSettings.of(settings)
    try:
        topics = look_at_topics(kept_readers(source, source.patience_s), source)
    except (KafkaError, UnreadableTopicError, OSError) as error:
        message = f"The topics of {settings.cluster!r} cannot be read ({type(error).__name__}: {error}): try again."
        raise SetupError(message) from error
    return plan_rebuild(settings.lake, settings.cluster, topics)


def write_gap(lake: DeltaLake, cluster: str, plan: Rebuild) -> None:
    """Write the row of `gaps` that says that later rows may differ, once."""
    table = table_named("gaps")
    row = {"cluster": cluster, "kind": "state", "from_time": plan.newest_time, "reason": _GAP}
    rows: pa.Table = named_to_arrow(table, [row])
    if KnownRows(lake.root, table, cluster).without_known(rows).num_rows:
        lake.append(table.name, rows, f"rebuild-{cluster}-{plan.until}", 0)


def _moved_aside(checkpoint: str) -> Path | None:
    if not is_local(checkpoint):
        if is_empty(checkpoint):
            return None
        message = (
            f"The checkpoint {checkpoint} is no folder of this machine, and cannot be moved aside: give --checkpoint "
            "another place, and add --rebuild-state."
        )
        raise SetupError(message)
    folder = Path(checkpoint)
    if not folder.is_dir() or not any(folder.iterdir()):
        return None
    aside = folder.with_name(f"{folder.name}.lost-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}")
    try:
        folder.rename(aside)
    except OSError as error:
        message = f"The checkpoint {checkpoint} cannot be moved to {aside} ({error.strerror}): move it there yourself."
        raise SetupError(message) from error
    return aside


def look_at_topics(readers: Readers, settings: SourceSettings) -> Topics:
    """What the topic of the rounds holds now.

    Raises:
        KafkaError, UnreadableTopicError: They could not be read.
    """
    topic = settings.rounds_topic
    return Topics(readers.bus.starts(topic).get(0, 0), readers.bus.ends(topic).get(0, 0))
