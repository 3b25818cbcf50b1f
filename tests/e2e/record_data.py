"""`python -m tests.e2e.record_data`: record `data/<release>/`: topics of a small real run, and this
release's results from them.

    topics.txt      the raw records of the offsets log, the events and the rounds
    streams.txt     the source's packed inputs per key and round, and the resulting rows
    lake.txt        the lake and the checkpoint of a job that has read the first half of the topics
    files.txt       settings and alert rules, and what is read from them

Run it from the checkout. The files are what users of a release have: they are recorded once per release, beside the
older ones, and never to make a failing test pass. `python -m tests.e2e.record_data rows` only records the rows of
streams.txt again, after a change of the rows.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from streaming.config import Settings
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.job.run import run
from streaming.job.source.connection import kept_readers
from streaming.job.source.planner import Planner
from streaming.job.source.positions import INITIAL
from streaming.job.source.read import task_rows
from streaming.job.source.settings import SourceSettings
from streaming.places import shipped_folder
from tests.e2e.carried import FILES, LAKE, first_half, packed_files, packed_lake, restore, settings_on
from tests.e2e.compacting import TOPICS, dump_topics
from tests.e2e.lakes import write_packed
from tests.e2e.recording import record, settings_for
from tests.e2e.streams import STREAMS, RecordedStream, by_table, read_streams, rows_of, write_streams

_RELEASE = version("evenkeel")

_STORIES = "1,3,4,9"
"""range with a member that is killed, static members, a leader with a custom `range`, sticky and cooperative-sticky."""

_SECONDS = 50.0
"""Long enough for a restart of a static member, two joins into the cooperative group, and the kill of story 1."""

_KEPT = frozenset({"orders-range", "tills-static", "clicks-pile-up", "orders-cooperative"})
"""Groups whose streams are stored."""

_ORIGIN = "Recorded by tests/e2e/record_data.py from Kafka 4.3.1 and the demo's stories 1, 3, 4 and 9."

_FILES_ORIGIN = "Recorded by tests/e2e/record_data.py from the files of settings and rules that were shipped."


def main() -> int:
    if sys.argv[1:] == ["rows"]:
        sizes = {STREAMS: write_streams(_RELEASE, _ORIGIN, [_with_rows(stream) for stream in read_streams()])}
    else:
        with tempfile.TemporaryDirectory(prefix="record-data-") as name:
            sizes = _record(Path(name))
    sys.stdout.write(f"bytes: {sizes}\n")
    return 0


def _record(folder: Path) -> dict[str, int]:
    with EmbeddedBroker(folder / "broker", overrides=DEMO_OVERRIDES) as broker:
        record(broker.bootstrap, folder / "play", lambda: None, _STORIES, _SECONDS)
        live = settings_for(broker.bootstrap, folder / "lake", max_rounds=1)
        records = list(dump_topics(live))
        half = settings_on(broker.bootstrap, "half", folder / "half")
        restore(half, first_half(records))
        run(half, available_now=True)
        return {
            TOPICS: write_packed(TOPICS, _RELEASE, _ORIGIN, (record.line() for record in records)),
            STREAMS: write_streams(_RELEASE, _ORIGIN, [_with_rows(stream) for stream in _streams(live)]),
            LAKE: write_packed(LAKE, _RELEASE, _ORIGIN, packed_lake(folder / "half")),
            FILES: write_packed(FILES, _RELEASE, _FILES_ORIGIN, packed_files(shipped_folder())),
        }


def _streams(settings: Settings) -> list[RecordedStream]:
    """The source's output by key and round."""
    source = SourceSettings.of(settings)
    planner = Planner(source, kept_readers)
    planner.available_now()
    rounds: list[dict[str, list[bytes]]] = []
    start = INITIAL
    while (end := planner.latest(start, 1)) != start:
        rounds.append(defaultdict(list))
        for task in planner.tasks(start, end):
            for key, payload in task_rows(task, source, kept_readers(source, 60.0)):
                rounds[-1][key].append(payload)
        start = end
    return [
        RecordedStream(f"g:{group}", tuple(tuple(of.get(f"g:{group}", ())) for of in rounds), {})
        for group in sorted(_KEPT)
    ]


def _with_rows(stream: RecordedStream) -> RecordedStream:
    return replace(stream, rows=by_table(rows_of(stream.key, stream.rounds)))


if __name__ == "__main__":
    sys.exit(main())
