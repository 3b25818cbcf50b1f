"""The beginning of a rebuild: what the tables had when the state was lost, and which rows must not be written again.

The new query reads the log and the rounds from the beginning, so it produces rows that the tables already have. Two
rules find them:

- **Tables of rounds** (`Table.of_rounds`): by the round. A batch appends to a table once and takes whole rounds, so a
  table that has a row of a round has all rows up to it. Nothing is looked up, in a table of billions of rows.
- **All others**, and tables that have lost a data file since (`evenkeel maintain --repair`): row by row
  (`Table.identity`). A row that is there stays as it is, whatever the new query says: people were alerted by it.

A table without rows of the cluster, as after it was deleted, gets all that can be read.

The plan is made once and lies in the new checkpoint, so a rebuild that was interrupted continues by itself. It is done
when the query has read a round that was opened after it began: the old query can have read nothing beyond that.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from kafka.errors import KafkaError

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.job.checkpoint import is_empty, is_local, refuse_unanswered
from streaming.job.source.connection import Readers, kept_readers
from streaming.job.source.positions import Positions
from streaming.job.source.settings import SourceSettings
from streaming.lifecycle import room_log
from streaming.record_batches import UnreadableTopicError
from streaming.tables import TABLES, DeltaLake, KnownRows, Table, file_system, has_lost, named_to_arrow, table_named

_FILE = "rebuild.json"


class Rebuild(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plan of a rebuild.

    Attributes:
        newest_round: The newest round in `rounds`; -1 where there is none.
        newest_time: Its time, ms; -1 likewise.
        until: Every round with this number or a higher one was opened after the rebuild began.
        written: By table of rounds, the newest round of which it has all rows; tables that have none are missing.
        lost: Tables of rounds that have lost data files.
        start: Where the query begins, as the source's offsets.
        done: All that the tables had is behind the query.
    """

    newest_round: int
    newest_time: int
    until: int
    written: dict[str, int]
    lost: tuple[str, ...]
    start: dict[str, Any]
    done: bool = False


def new_rows(table: Table, rows: pa.Table, plan: Rebuild, known: KnownRows) -> pa.Table:
    """The rows that a rebuild writes: those that the table does not have.

    Args:
        table: The table.
        rows: Rows of a batch.
        plan: The plan.
        known: What the table has.
    """
    if table.of_rounds and table.name not in plan.lost:
        return rows.filter(pc.greater(rows["round"], plan.written.get(table.name, -1)))
    return known.without_known(rows)


def plan_rebuild(lake: str, cluster: str, begin: int, end: int) -> Rebuild:
    """Look at the tables, and plan the rebuild.

    Args:
        lake: Folder or URI.
        cluster: Name of the cluster.
        begin: First offset of the rounds topic that still exists.
        end: Its end.

    Raises:
        SetupError: The rounds topic ends before the newest round in the tables.
    """
    tables = {table.name: KnownRows(lake, table, cluster) for table in TABLES}
    newest = _round_below(tables["rounds"], None)
    if newest is not None and end <= newest["opened_offset"]:
        message = (
            f"The rounds topic ends at offset {end}, before round {newest['round']} that the tables in "
            f"{lake} hold: it was created again or cut back while the checkpoint was lost, so it is unknown which of "
            "its rounds were read already. Give the job a lake of its own (EVENKEEL_LAKE); the old one stays readable."
        )
        raise SetupError(message)
    start, before, base = Positions(), None, 0
    if newest is not None:
        # Numbers of rounds and elapsed time continue as if the query had read the rounds that are gone.
        base = newest["round"] - newest["opened_offset"]
        start = msgspec.structs.replace(start, base=base, rounds_of=newest["cluster_id"])
        before = _round_below(tables["rounds"], base + begin)
    if before is not None:
        # Without its number: the closing record of a round that the topic is losing may still be there.
        start = msgspec.structs.replace(start, time=before["time"], elapsed=before["elapsed_ms"])
    newest_round, newest_time = (newest["round"], newest["time"]) if newest is not None else (-1, -1)
    return Rebuild(
        newest_round=newest_round,
        newest_time=newest_time,
        until=base + end,
        written={
            table.name: max(number, newest_round)
            for table in TABLES
            if table.of_rounds and (number := tables[table.name].newest_round()) is not None
        },
        lost=tuple(table.name for table in TABLES if table.of_rounds and has_lost(lake, table.name)),
        start=start.write(),
    )


def _round_below(rounds: KnownRows, below: int | None) -> dict[str, Any] | None:
    """The row of the newest round, or of the newest below a number, with its `time` in ms; None where there is none."""
    number = rounds.newest_round(below)
    if number is None:
        return None
    columns = ("round", "round_time", "elapsed_ms", "opened_offset", "cluster_id")
    found: dict[str, Any] = rounds.rows(columns, pc.field("round") == number).to_pylist()[0]
    # A broker's time that no calendar has is NULL.
    found["time"] = -1 if found["round_time"] is None else round(found["round_time"].timestamp() * 1000)
    return found


def read_plan(checkpoint: str) -> Rebuild | None:
    """The plan in a checkpoint; None where there is none.

    Raises:
        SetupError: It cannot be read. Without its plan a rebuild that is under way would write rows a second time.
        CheckpointUnreachableError: It is on S3, which does not answer.
    """
    try:
        with file_system(checkpoint).open_input_stream(_FILE) as stream:
            text = stream.read()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        refuse_unanswered(checkpoint, error)
        if not is_local(checkpoint):
            return None  # a store that Spark reaches and we do not, so no plan can have been written there
        message = f"{checkpoint}/{_FILE} cannot be read ({error}): give this user the right to read the checkpoint."
        raise SetupError(message) from None
    try:
        return msgspec.json.decode(text, type=Rebuild)
    except msgspec.DecodeError as error:
        message = (
            f"{checkpoint}/{_FILE} cannot be read ({error}): the rebuild of the job's state cannot continue. Run "
            "evenkeel run --rebuild-state, which begins it again."
        )
        raise SetupError(message) from None


def write_plan(checkpoint: str, plan: Rebuild) -> None:
    """Write the plan into a checkpoint, whole or not at all.

    Raises:
        OSError: It could not be written.
    """
    text = msgspec.json.encode(plan)
    if not is_local(checkpoint):
        # Without a larger buffer Arrow hands on an object of its own, which delta-rs 1.6.6 does not take.
        with file_system(checkpoint).open_output_stream(_FILE, buffer_size=len(text) + 1) as stream:
            stream.write(text)
        return
    folder = Path(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f".{_FILE}").write_bytes(text)
    (folder / f".{_FILE}").replace(folder / _FILE)


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
        held = rounds_held(kept_readers(source, source.patience_s), source)
    except (KafkaError, UnreadableTopicError, OSError) as error:
        message = f"The topics of {settings.cluster!r} cannot be read ({type(error).__name__}: {error}): try again."
        raise SetupError(message) from error
    return plan_rebuild(settings.lake, settings.cluster, *held)


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


def rounds_held(readers: Readers, settings: SourceSettings) -> tuple[int, int]:
    """The first offset of the rounds topic that still exists, and its end.

    Raises:
        KafkaError, UnreadableTopicError: They could not be read.
    """
    topic = settings.rounds_topic
    return readers.bus.starts(topic).get(0, 0), readers.bus.ends(topic).get(0, 0)
