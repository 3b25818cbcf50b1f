from __future__ import annotations

from pathlib import Path

from dashboards.query import queries
from streaming.tables import LakeReader
from tests.benchmarks.day_of_rows import DaySize, write_day
from tests.benchmarks.page import page


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


def test_every_panel_of_the_page_has_a_figure() -> None:
    figures = page(_say, SMALL)
    names = {figure.name.strip() for figure in figures}
    assert {f"{name}.sql" for name in queries()} <= names
    assert all(figure.value for figure in figures)
