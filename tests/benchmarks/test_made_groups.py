"""What the benchmarks make has the form that broker, probe and job give it: codec, core and readers take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables import LakeReader
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.day_of_rows import DaySize, write_day
from tests.benchmarks.made_groups import MadeGroups
from tests.benchmarks.steady_state import STAGES, stage_seconds


@pytest.mark.nightly
@pytest.mark.kafka
def test_made_groups_are_read_as_healthy_groups_with_every_commit_counted(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    settings = BenchCluster(tmp_path, bootstrap).settings(unique, max_rounds=1)
    with MadeGroups(settings, groups=12, partitions=3) as made:
        made.rebalance(made.groups)
        for _ in range(3):
            made.commit(2)
            made.round()
        assert made.records == 12 + 12 * 3 * 6

    seconds = stage_seconds(settings, tmp_path, batches=2)

    assert set(seconds) == set(STAGES)
    reader = LakeReader(tmp_path / "stages")
    (lag,) = reader.rows("SELECT sum(commits) AS commits, min(lag) AS least, max(lag) AS most FROM lag")
    assert (lag["commits"], lag["least"], lag["most"]) == (12 * 3 * 6, 5, 5)
    assert reader.rows("SELECT verdict, count(*) AS n FROM drift GROUP BY 1") == [{"verdict": "identical", "n": 12}]
    assert reader.count("quarantine") == reader.count("gaps") == 0


@pytest.mark.nightly
def test_a_made_day_is_a_lake_with_a_file_a_round_and_reads_as_one(tmp_path: Path) -> None:
    size = DaySize(groups=20, partitions=2, hours=0.2)
    day = write_day(tmp_path, size, lambda _: None)
    assert (day.files["lag"], day.files["rounds"]) == (size.rounds, size.rounds)
    day.next_round()
    reader = LakeReader(tmp_path)
    assert reader.count("rounds") == size.rounds + 1
    assert reader.count("group_health_current") == size.groups
    assert reader.count("drift_current") == size.groups
    assert reader.count("what_if_current") == 4 * size.groups
