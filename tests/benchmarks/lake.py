"""Maintenance of a lake: what it costs, what it leaves, and what a job's rows wait for it.

Twelve hours of a thousand busy groups, unmaintained, are maintained from outside; and again by a live job, beside which
a probe's rounds come every ten seconds. The same job without maintenance, right before, is the comparison: both begin
with a cold JVM, and the rounds that count are those until the last piece, the first, second, ... against each other.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

import psutil  # type: ignore[import-untyped]  # it ships no types
import pyarrow.parquet as pq
from deltalake import DeltaTable

from streaming.config import Settings, environment_of
from streaming.maintain import Done, Maintainer
from streaming.process import Programs
from streaming.tables import LakeReader
from streaming.up import JOB
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.day_of_rows import DaySize, write_day
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.made_groups import MadeGroups

__all__ = ["LakeSize", "lake"]

_NAME = "lake"
_GROUP = "group-0001"

_LOOK_S = 0.2
_FIRST_S = 300.0
"""Limit for a job's first round; it takes about 20 s on an idle machine."""


@dataclass(frozen=True, slots=True)
class LakeSize:
    """Size of the benchmark.

    Attributes:
        hours: Age of the lake.
        groups: Groups, of ten partitions each.
        interval_s: Interval of rounds.
        rounds: Rounds of each job.
    """

    hours: float = 3
    groups: int = 1_000
    interval_s: int = 10
    rounds: int = 18

    @classmethod
    def full(cls) -> LakeSize:
        """The size of docs/performance.md."""
        return cls(hours=12)


def lake(cluster: BenchCluster, say: Say, size: LakeSize | None = None) -> list[Figure]:
    """Run the benchmark.

    Args:
        cluster: Broker and folder.
        say: Shows the progress.
        size: Size; None for a quarter of that of docs/performance.md.

    Raises:
        RuntimeError: A job could not start, or its rows did not come.
    """
    size = size or LakeSize()
    settings = cluster.settings(_NAME)
    made, used = cluster.folder / "old-lake", Path(settings.lake)
    write_day(made, DaySize(groups=size.groups, hours=size.hours, interval_s=size.interval_s), say)
    say("a copy of it")
    shutil.copytree(made, used)
    figures = _from_outside(made, say, size)
    shutil.rmtree(made)
    with MadeGroups(settings, size.groups, 10) as groups:
        groups.rebalance(groups.groups)
        groups.rest()
        without = _delays(settings, groups, cluster.folder, say, size, in_job=False)
        within = _delays(settings, groups, cluster.folder, say, size, in_job=True)
    return [*figures, *_beside(without, within)]


def _from_outside(root: Path, say: Say, size: LakeSize) -> list[Figure]:
    before = _files(root)
    opened_before, read_before = _reading(root)
    process = psutil.Process()
    spent, began = process.cpu_times(), time.monotonic()
    done: list[Done] = []
    for piece in Maintainer(str(root)).work():
        done.append(piece)
        say(f"{len(done)} pieces of maintenance")
    seconds, after = time.monotonic() - began, process.cpu_times()
    cpu = after.user + after.system - spent.user - spent.system
    opened, read = _reading(root)
    rows = LakeReader(str(root)).count("lag")
    left = _files(root)
    joined = [piece for piece in done if piece.what == "compaction"]
    of = f"{size.hours:g} hours of {size.groups:,} groups x 10, {rows:,} rows of lag"
    return [
        Figure(
            "maintenance of a lake that never had any",
            f"{seconds:.1f} s",
            "",
            f"{of}; {before.total():,} files to {left.total():,}",
        ),
        Figure("  its processor time", f"{cpu:.1f} s", "", f"{len(joined)} pieces"),
        Figure("  longest piece", f"{max(p.seconds for p in done):.1f} s"),
        Figure("  opening the lake", f"{opened:.2f} s", "under 1 s", f"{opened_before:.2f} s before"),
        Figure("  one group's rows of lag", f"{read:.2f} s", "under 1 s", f"{read_before:.2f} s before"),
    ]


def _files(root: Path) -> Counter[str]:
    tables = [table for table in root.iterdir() if (table / "_delta_log").is_dir()]
    return Counter({table.name: len(DeltaTable(str(table)).file_uris()) for table in tables})


def _reading(root: Path) -> tuple[float, float]:
    """Seconds to open a lake, and to read all rows of one group's lag."""
    began = time.monotonic()
    reader = LakeReader(str(root))
    reader.count("lag")
    opened = time.monotonic() - began
    began = time.monotonic()
    reader.rows("SELECT round, max(lag) FROM lag WHERE group_id = ? GROUP BY 1", [_GROUP])
    return opened, time.monotonic() - began


@dataclass(frozen=True, slots=True)
class _Beside:
    """A live job.

    Attributes:
        delays: From the end of each round to its row, s.
        maintained: How many of the rounds ended before the last piece of maintenance did.
        pieces: Pieces of maintenance.
        memory: Largest memory of the job's own process, bytes.
    """

    delays: list[float]
    maintained: int
    pieces: int
    memory: int


def _delays(settings: Settings, groups: MadeGroups, folder: Path, say: Say, size: LakeSize, *, in_job: bool) -> _Beside:
    maintenance = settings.maintenance.model_copy(update={"in_job": in_job})
    environment = environment_of(settings.model_copy(update={"maintenance": maintenance}))
    closed: dict[int, float] = {}
    kind = "with" if in_job else "without"
    largest = 0

    def round_now() -> None:
        groups.commit(2)
        closed[groups.round().round] = time.time()

    with Programs(folder / f"job-{kind}", environment, say) as programs:
        programs.start(JOB)
        say(f"a job {kind} maintenance starts")
        round_now()
        log = Path(settings.lake) / "rounds" / "_delta_log"
        _until(lambda: _rows_at(log, closed), _FIRST_S)
        for number in range(size.rounds):
            say(f"round {number + 1} of {size.rounds} of the job {kind} maintenance")
            began = time.monotonic()
            round_now()
            while (left := began + size.interval_s - time.monotonic()) > 0:
                time.sleep(min(_LOOK_S, left))
                largest = max(largest, _memory(programs))
        last = max(closed)
        _until(lambda: last in _rows_at(log, closed), _FIRST_S)
        written = _rows_at(log, closed)
    text = (folder / f"job-{kind}" / f"{JOB.name}.log").read_text("utf-8", "replace")
    pieces = [line for line in text.splitlines() if " maintenance: " in line]
    # (The log has the machine's own time: 2026-11-23 08:21:13,954.)
    ended = datetime.strptime(pieces[-1][:19], "%Y-%m-%d %H:%M:%S").timestamp() if pieces else 0.0  # noqa: DTZ007
    counted = sorted(closed)[-size.rounds :]
    delays = [written[number] - closed[number] for number in counted]
    return _Beside(delays, sum(closed[number] < ended for number in counted), len(pieces), largest)


def _until(condition: Callable[[], object], patience_s: float) -> None:
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            message = f"rounds were not written within {patience_s:.0f} s"
            raise RuntimeError(message)
        time.sleep(_LOOK_S)


def _rows_at(log: Path, wanted: dict[int, float]) -> dict[int, float]:
    """When the rows of rounds were committed, s since the epoch, from Delta's log."""
    found: dict[int, float] = {}
    for commit in sorted(log.glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
        added = [a["add"]["path"] for a in actions if "add" in a and a["add"]["dataChange"]]
        at = next((a["commitInfo"]["timestamp"] / 1000 for a in actions if "commitInfo" in a), None)
        for path in added if at is not None and len(added) == 1 else ():
            file = log.parent / path
            if file.exists():  # (else it is compacted)
                rounds = pq.read_table(file, columns=["cluster", "round"], partitioning=None).to_pylist()
                found |= {r["round"]: at for r in rounds if r["cluster"] == _NAME and r["round"] in wanted}
    return found


def _memory(programs: Programs) -> int:
    pid = programs.pid_of(JOB)
    if pid is None:
        return 0
    largest = 0
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        with suppress(psutil.Error):  # it has ended
            if "streaming.job" in process.cmdline():
                largest = max(largest, process.memory_info().rss)
    return largest


def _beside(without: _Beside, within: _Beside) -> list[Figure]:
    rounds = within.maintained
    if not rounds:
        message = "no round ended beside maintenance"
        raise RuntimeError(message)
    with_it, plain = within.delays[:rounds], without.delays[:rounds]
    ratio = median(a / b for a, b in zip(with_it, plain, strict=True))
    return [
        Figure(
            "from a round to its row, in a job that maintains",
            f"{ratio:.2f} times",
            "under 1.5 times",
            f"median of {rounds} rounds beside {within.pieces} pieces, {median(with_it):.1f} s, at most "
            f"{max(with_it):.1f} s; without maintenance {median(plain):.1f} s, at most {max(plain):.1f} s",
        ),
        Figure(
            "  memory of the job's own process",
            f"{within.memory / 2**20:,.0f} MB",
            "",
            f"at most; without maintenance {without.memory / 2**20:,.0f} MB",
        ),
    ]
