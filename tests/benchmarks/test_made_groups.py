"""The benchmarks' input for the job has the form of a broker's and the probe's: codec and core can read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables import LakeReader
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.made_groups import MadeGroups
from tests.benchmarks.stages import STAGES, stage_seconds

pytestmark = pytest.mark.kafka


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
