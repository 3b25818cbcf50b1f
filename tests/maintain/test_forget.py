from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from streaming.catalog import WatchedCluster, record_fleet, recorded_clusters, rename_problem
from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.maintain import forget
from streaming.process import JOB, only_one
from streaming.tables import ALL_TABLES, DeltaLogTail, LakeReader, table_named
from tests.dashboards.made_lake import MadeGroup, MadeLake

OLD = "o'ld"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake with the clusters "kept" and "o'ld", which has been closed."""
    for name in ("kept", OLD):
        made = MadeLake(tmp_path / "lake", [MadeGroup("orders")], rounds=5, cluster=name)
        made.add("gaps", {"cluster": name, "kind": "log", "reason": "gone"})
        made.add("mutes", {"cluster": name, "mute_id": name, "event_date": 20_000})
    record_fleet(str(tmp_path / "lake"), [WatchedCluster("kept", "k-1"), WatchedCluster(OLD, "k-2")], ["kept", OLD])
    record_fleet(str(tmp_path / "lake"), [WatchedCluster("kept", "k-1")], ["kept"])
    (tmp_path / "lake" / "_checkpoints" / OLD).mkdir(parents=True)
    (tmp_path / "lake" / "_checkpoints" / "kept").mkdir()
    (tmp_path / "lake" / "_bus" / OLD / "evenkeel.rounds").mkdir(parents=True)
    (tmp_path / "lake" / "_bus" / "kept").mkdir()
    return tmp_path / "lake"


def said(lake: Path, cluster: str, *names: str) -> str:
    out = io.StringIO()
    forget(Settings(cluster="kept", lake=str(lake)), names or ("kept",), cluster, Console(file=out, width=200))
    return out.getvalue()


def counts(lake: Path, cluster: str) -> dict[str, int]:
    reader = LakeReader(lake)
    ask = "SELECT count(*) AS n FROM {} WHERE cluster = $cluster"
    return {table.name: reader.rows(ask.format(table.name), {"cluster": cluster})[0]["n"] for table in ALL_TABLES}


def test_every_row_of_the_cluster_goes_with_its_checkpoint_and_nothing_of_another(lake: Path) -> None:
    before, its = counts(lake, "kept"), counts(lake, OLD)
    told = said(lake, OLD)
    assert {name: n for name, n in counts(lake, OLD).items() if n} == {"clusters": its["clusters"] + 1}
    assert counts(lake, "kept") == before
    for name in ("rounds", "group_health", "lag", "gaps", "mutes"):
        assert f"{name}: {its[name]} row" in told
    assert not (lake / "_checkpoints" / OLD).exists()
    assert (lake / "_checkpoints" / "kept").exists()
    assert [path.name for path in (lake / "_bus").iterdir()] == ["kept"]


def test_followers_of_the_tables_take_the_commits_for_no_news(lake: Path) -> None:
    tails = {name: DeltaLogTail(str(lake), table_named(name)) for name in ("gaps", "group_health", "rounds")}
    for tail in tails.values():
        tail.read_new_files()
    said(lake, OLD)
    for name, tail in tails.items():
        new = tail.read_new_files()
        assert (new.files, new.is_snapshot) == ((), False), name


def test_the_cluster_may_have_a_new_name_then(lake: Path) -> None:
    new = WatchedCluster("new", "k-2")
    assert rename_problem(new, ["kept", "new"], recorded_clusters(str(lake))) is not None
    said(lake, OLD)
    assert rename_problem(new, ["kept", "new"], recorded_clusters(str(lake))) is None


def test_one_that_is_watched_is_refused(lake: Path) -> None:
    with pytest.raises(SetupError, match="the settings file has it"):
        said(lake, OLD, "kept", OLD)
    with pytest.raises(SetupError, match="the settings file has it"):
        said(lake, "kept")
    with only_one(JOB, str(lake), OLD), pytest.raises(SetupError, match="its job is process"):
        said(lake, OLD)
    with pytest.raises(SetupError, match="no cluster named odl: it has kept, o'ld"):
        said(lake, "odl")
    assert counts(lake, OLD)["rounds"] == 5


@pytest.mark.nightly
@pytest.mark.parametrize(("minutes", "goes"), [(5, False), (40, True)])
def test_one_that_nobody_has_closed_is_watched_while_its_rounds_are_young(
    tmp_path: Path, minutes: int, goes: bool
) -> None:
    end = datetime.now(UTC) - timedelta(minutes=minutes)
    MadeLake(tmp_path, [MadeGroup("orders")], rounds=2, cluster=OLD, end=end)
    if goes:
        said(tmp_path, OLD)
    else:
        with pytest.raises(SetupError, match="its newest round is of"):
            said(tmp_path, OLD)
    assert counts(tmp_path, OLD)["rounds"] == (0 if goes else 2)
