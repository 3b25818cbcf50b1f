from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables import LakeReader
from tests.benchmarks.day_of_rows import DaySize, write_day
from tests.benchmarks.serve import ServeSize, serve


def _say(_text: str) -> None:
    pass


SMALL = DaySize(groups=20, partitions=2, hours=0.2)


def test_a_made_day_is_a_lake_with_a_file_a_round_and_reads_as_one(tmp_path: Path) -> None:
    day = write_day(tmp_path, SMALL, _say)
    assert (day.files["lag"], day.files["rounds"]) == (SMALL.rounds, SMALL.rounds)
    day.next_round()
    reader = LakeReader(tmp_path)
    assert reader.count("rounds") == SMALL.rounds + 1
    assert reader.count("group_health_current") == SMALL.groups
    assert reader.count("drift_current") == SMALL.groups
    assert reader.count("what_if_current") == 4 * SMALL.groups


@pytest.mark.nightly
def test_every_board_has_a_figure_for_one_viewer_and_for_many() -> None:
    names = {figure.name.strip() for figure in serve(_say, ServeSize((SMALL,), viewers=4, seconds=2, settle_s=0))}
    assert {name.split(",")[0] for name in names if name.startswith("/")} >= {"/", "/rebalances"}
    assert {"page: server over 20 groups, 0.2 h", "4 viewers: processor", "memory at most"} <= names
