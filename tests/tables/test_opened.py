"""Some files of one table against the lake read whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streaming.tables import DataFile, DeltaLake, LakeReader, LakeUnreadableError, OpenedTable, table_named
from tests.empty_lake import empty_lake

DAY = datetime(2026, 11, 24, tzinfo=UTC)
HOURS = 48
SQL = (
    "SELECT group_id, round, lag_total FROM group_health WHERE round_time >= $since AND round_time < $until"
    " AND cluster = $cluster AND group_id = $group ORDER BY ALL"
)
LONG = "payments-" + "x" * 100
GROUPS = ["a", "b", "m", "z", LONG + "1", LONG + "2", "\N{SNOWMAN}" * 40, "\U0010ffff" * 30]


def health(group: str, hour: float, *, cluster: str = "c") -> list[Any]:
    ms = int((DAY + timedelta(hours=hour)).timestamp() * 1000)
    values = {
        "cluster": cluster, "group_id": group, "round": int(hour * 360), "round_time": ms,
        "event_date": ms // 86_400_000, "ended": False, "findings": [], "lag_total": int(hour * 100),
    }  # fmt: skip
    return [values.get(column.name) for column in table_named("group_health").columns]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file an hour, each with some of the groups."""
    lake = empty_lake(tmp_path_factory.mktemp("stretch") / "lake")
    random = Random(7)
    for hour in range(HOURS):
        rows = [health(group, hour + part / 4) for group in random.sample(GROUPS, 3) for part in range(4)]
        if hour % 5 == 0:
            rows.append(health("a", hour, cluster="d"))
        lake.append("group_health", rows, "query", hour)
    return lake.root


@dataclass(frozen=True)
class Stretch:
    """A time of one group of a cluster."""

    since: datetime
    until: datetime
    cluster: str
    group: str


class Narrow:
    """Questions to the files that can have rows of a stretch."""

    def __init__(self, root: str) -> None:
        self.table = OpenedTable(root, table_named("group_health"))

    def files(self, of: Stretch) -> list[DataFile]:
        self.table.refresh()
        return self.table.files((of.since.date(), of.until.date()), of.cluster, of.group, times=(of.since, of.until))

    def rows(self, of: Stretch) -> list[dict[str, Any]]:
        return self.table.ask(SQL, asked(of), self.files(of))


def asked(stretch: Stretch) -> dict[str, Any]:
    return {"since": stretch.since, "until": stretch.until, "cluster": stretch.cluster, "group": stretch.group}


def test_every_stretch_of_every_group_has_the_rows_of_the_whole_lake(root: str) -> None:
    narrow, whole = Narrow(root), LakeReader(root)
    random = Random(11)
    seen = 0
    for group in GROUPS:
        for cluster in ("c", "d"):
            begin = random.uniform(-3, HOURS)
            since, until = (DAY + timedelta(hours=hours) for hours in (begin, begin + random.uniform(0, 30)))
            stretch = Stretch(since, until, cluster, group)
            rows = narrow.rows(stretch)
            assert rows == whole.rows(SQL, asked(stretch))
            seen += len(rows)
    assert seen > 100


def test_only_files_of_its_time_and_group_are_opened(root: str) -> None:
    narrow = Narrow(root)
    hour = Stretch(DAY + timedelta(hours=5), DAY + timedelta(hours=5.9), "c", "b")
    assert len(narrow.files(hour)) <= 1
    nobody = Stretch(DAY, DAY + timedelta(hours=HOURS), "c", "A group before all others")
    assert narrow.files(nobody) == []
    stranger = Stretch(DAY, DAY + timedelta(hours=HOURS), "e", "b")
    assert narrow.files(stranger) == []


def test_rows_that_came_since_the_last_question_are_seen(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path / "lake"))
    narrow = Narrow(lake.root)
    stretch = Stretch(DAY, DAY + timedelta(hours=9), "c", "a")
    assert narrow.rows(stretch) == []
    lake.create()
    assert narrow.rows(stretch) == []
    for number in range(3):
        lake.append("group_health", [health("a", number)], "query", number)
        assert len(narrow.rows(stretch)) == number + 1


def test_a_missing_data_file_is_a_sentence(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path / "lake"))
    lake.create()
    lake.append("group_health", [health("a", 1)], "query", 1)
    next(Path(lake.path("group_health")).glob("**/*.parquet")).unlink()
    stretch = Stretch(DAY, DAY + timedelta(hours=9), "c", "a")
    with pytest.raises(LakeUnreadableError, match=r"group_health cannot be read \("):
        Narrow(lake.root).rows(stretch)
