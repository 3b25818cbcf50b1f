"""The benchmarks of the whole path at a tiny size: that they measure something, not how fast."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it ships no types
import pytest

from tests.benchmarks import __main__ as bench
from tests.benchmarks.bench_cluster import _PREFIX, BenchCluster, _remove_left_behind
from tests.benchmarks.catch_up import CatchUpSize, catch_up
from tests.benchmarks.figure import Figure
from tests.benchmarks.measured_job import BatchReport, JobReport, Spent, _lines
from tests.benchmarks.steady_state import SteadySize, _figures

pytestmark = pytest.mark.turn(6)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.soak  # a job of its own, for a benchmark's sake
def test_the_measured_job_reads_the_whole_backlog_and_leaves_no_process(bootstrap: str, tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    said: list[str] = []

    figures = catch_up(
        BenchCluster(tmp_path, bootstrap), said.append, CatchUpSize(groups=5, partitions=2, cold=3, warm=3)
    )

    assert figures[0].note.startswith("30 commits of 5 groups x 2 partitions")
    assert said[-1] == "the job has done 2 batches"
    assert set(psutil.Process().children(recursive=True)) <= before


def test_a_report_is_followed_while_it_grows(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    line = (
        b'{"type":"batch","number":0,"at":1.0,"rows":{"lag":3},"append_s":0.5,"spent":{"driver":1,"jvm":2,"workers":3}}'
    )
    polls = 0

    def ended() -> int | None:
        nonlocal polls
        polls += 1
        # No file, half a line, the whole line, and then the process ends with one more.
        text = [b"", line[:9], line + b"\n", (line + b"\n") * 2][polls - 1]
        report.write_bytes(text)
        return 0 if polls == 4 else None

    batch = BatchReport(0, 1.0, {"lag": 3}, 0.5, Spent(1, 2, 3))
    assert list(_lines(report, ended)) == [batch, batch]


def test_what_spark_costs_is_what_the_stages_leave() -> None:
    batches = [BatchReport(n, float(n), {"lag": 7}, 0.1, Spent(0.1 * n, 2.0 * n, 1.0 * n)) for n in range(4)]
    progress = [
        {"durationMs": {"triggerExecution": 1000 * n, "addBatch": 900, "walCommit": 50, "commitOffsets": 50}}
        for n in range(4)
    ]
    job = JobReport(0.0, 1.0, progress, Spent(0, 0, 0), {"jvm": 2**20}, batches)
    stages = {"plan": 0.1, "source": 0.2, "core": 0.3, "unpack": 0.1, "append": 0.1}

    figures = {figure.name.strip(): figure for figure in _figures(SteadySize(1, 7, warm_up=2, rounds=2), job, stages)}

    assert figures["steady state: a batch of one round"].value == "2.50 s"  # the mean of 2 s and 3 s
    assert figures["its processor time"].value == "3.10 s"
    assert figures["Spark"].value == "2.30 s"


def test_a_measurement_that_fails_is_a_line_of_the_table_beside_figure_aim_and_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(_: object, say: object) -> list[Figure]:
        message = "its records did not decode"
        raise RuntimeError(message)

    monkeypatch.setattr(bench, "bench_cluster", lambda: nullcontext(BenchCluster(tmp_path, "")))
    good = Figure("speed", "654,321 records/s", "500,000/s", "one core")
    monkeypatch.setattr(bench, "_MEASURES", {"core": broken, "assign": lambda *_: [good]})
    assert bench.main(["core", "assign"]) == 1
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("its records did not decode", "654,321 records/s", "500,000/s", "cores"))


def test_a_name_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        bench.main(["decoding"])
    assert ended.value.code == 2
    assert "there is no measurement 'decoding'" in capsys.readouterr().err


def test_the_folder_of_a_killed_benchmark_goes_with_the_next(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("psutil.pid_exists", lambda pid: pid == 41)
    for name in (f"{_PREFIX}40-a", f"{_PREFIX}41-b", f"{_PREFIX}x", "other"):
        (tmp_path / name).mkdir()
    _remove_left_behind()
    assert sorted(folder.name for folder in tmp_path.iterdir()) == [f"{_PREFIX}41-b", f"{_PREFIX}x", "other"]
