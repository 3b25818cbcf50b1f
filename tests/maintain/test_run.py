"""`evenkeel maintain`, and forgetting a cluster: what it says, and what it refuses."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streaming.catalog import WatchedCluster, record_fleet, recorded_clusters, rename_problem
from streaming.config import Settings, load_settings
from streaming.exceptions import SetupError
from streaming.maintain import MaintenanceError, forget, repair
from streaming.maintain import maintain as maintain_command
from streaming.process import JOB, MAINTAINER, only_one
from streaming.tables import (
    ALL_TABLES,
    DeltaLake,
    DeltaLogTail,
    LakeReader,
    LakeUnreadableError,
    has_lost,
    table_named,
)
from tests.dashboards.made_lake import MadeGroup, MadeLake
from tests.maintain.build import Writer, files_of, row


def _settings(lake: str, **maintenance: Any) -> Any:
    return load_settings(lake=lake, maintenance=maintenance)


def test_a_run_says_in_a_line_what_each_piece_has_done(
    lake: DeltaLake, writer: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    maintain_command(_settings(lake.root), Console(width=160))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("lag                3 files of ")
    assert lines[0].split("(")[0].endswith("joined ")
    assert lines[-1] == "Nothing else is due."


@pytest.mark.nightly
def test_a_second_maintainer_is_refused_with_one_sentence_and_exit_code_2(lake: DeltaLake) -> None:
    command = [str(Path(sys.executable).parent / "evenkeel"), "maintain", "--lake", lake.root]
    with only_one(MAINTAINER, lake.root, None):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith(f"Another maintainer for the lake {lake.root} runs (")
    assert f"process {os.getpid()}" in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("keep_days", "told"), [({"lags": 40}, "names lags, which is not a table"), ({"lag": 1}, "keeps lag for 1 days")]
)
def test_a_wrong_retention_is_told_in_one_sentence(lake: DeltaLake, keep_days: dict[str, int], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        maintain_command(_settings(lake.root, keep_days=keep_days), Console())


def test_no_lake_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="There are no tables in"):
        maintain_command(_settings(str(tmp_path / "nothing")), Console())
    assert not (tmp_path / "nothing").exists()


# Data files that are gone: readers and maintenance name them, and `evenkeel maintain --repair` takes them out.


CONSOLE = Console(width=160)

ADVICE = "a data file is gone: restore it, or stop the job and run evenkeel maintain --repair"


def lose_one_file(lake: DeltaLake, writer: Writer) -> Path:
    """Three files of `lag`, the middle one is deleted."""
    paths = []
    for number in (10, 11, 12):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
        paths.append(next(path for path in Path(lake.path("lag")).rglob("*.parquet") if path not in paths))
    paths[1].unlink()
    return paths[1]


def test_readers_and_maintenance_name_the_file_and_the_command(lake: DeltaLake, writer: Writer) -> None:
    gone = lose_one_file(lake, writer)
    with pytest.raises(LakeUnreadableError) as unreadable:
        LakeReader(lake.root).count("lag_current")
    told = io.StringIO()
    with pytest.raises(MaintenanceError):
        maintain_command(_settings(lake.root), Console(file=told, width=2_000))
    assert gone.name in str(unreadable.value)
    assert ADVICE in str(unreadable.value)
    assert ADVICE in told.getvalue()


def test_a_repair_takes_the_file_out_and_notes_what_it_was(
    lake: DeltaLake, writer: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = lose_one_file(lake, writer)
    settings = load_settings(lake=lake.root)
    assert not has_lost(lake.root, "lag")
    repair(settings, CONSOLE)
    told, then = capsys.readouterr().out.splitlines()
    assert told.startswith("lag: ")
    assert gone.name in told
    assert told.endswith("is gone, 1 row of rounds 11 to 11")
    assert then.startswith("Run evenkeel run --rebuild-state to write the rows again")
    assert has_lost(lake.root, "lag")
    assert [r["round"] for r in LakeReader(lake.root).rows("SELECT round FROM lag ORDER BY 1")] == [10, 12]
    repair(settings, CONSOLE)
    assert capsys.readouterr().out == "No data file is gone.\n"


def test_a_table_of_which_everything_is_gone_is_not_forgotten(lake: DeltaLake, writer: Writer) -> None:
    writer.append("lag", row("lag", 0, 10, topic="t", partition=0))
    for day in Path(lake.path("lag")).glob("event_date=*"):
        shutil.rmtree(day)
    with pytest.raises(
        SetupError, match=r"Every data file of .* is gone: if a disk or bucket is not mounted, mount it"
    ):
        repair(load_settings(lake=lake.root), CONSOLE)
    assert files_of(lake)["lag"] == 1


OLD = "o'ld"


@pytest.fixture
def two_clusters(tmp_path: Path) -> Path:
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


def forgot(lake: Path, cluster: str, *names: str) -> str:
    out = io.StringIO()
    forget(Settings(cluster="kept", lake=str(lake)), names or ("kept",), cluster, Console(file=out, width=200))
    return out.getvalue()


def counts(lake: Path, cluster: str) -> dict[str, int]:
    reader = LakeReader(lake)
    ask = "SELECT count(*) AS n FROM {} WHERE cluster = $cluster"
    return {table.name: reader.rows(ask.format(table.name), {"cluster": cluster})[0]["n"] for table in ALL_TABLES}


def test_every_row_of_the_cluster_goes_with_its_checkpoint_and_nothing_of_another(two_clusters: Path) -> None:
    before, its = counts(two_clusters, "kept"), counts(two_clusters, OLD)
    told = forgot(two_clusters, OLD)
    assert {name: n for name, n in counts(two_clusters, OLD).items() if n} == {"clusters": its["clusters"] + 1}
    assert counts(two_clusters, "kept") == before
    for name in ("rounds", "group_health", "lag", "gaps", "mutes"):
        assert f"{name}: {its[name]} row" in told
    assert not (two_clusters / "_checkpoints" / OLD).exists()
    assert (two_clusters / "_checkpoints" / "kept").exists()
    assert [path.name for path in (two_clusters / "_bus").iterdir()] == ["kept"]


def test_followers_of_the_tables_take_the_commits_for_no_news(two_clusters: Path) -> None:
    tails = {name: DeltaLogTail(str(two_clusters), table_named(name)) for name in ("gaps", "group_health", "rounds")}
    for tail in tails.values():
        tail.read_new_files()
    forgot(two_clusters, OLD)
    for name, tail in tails.items():
        new = tail.read_new_files()
        assert (new.files, new.is_snapshot) == ((), False), name


def test_the_cluster_may_have_a_new_name_then(two_clusters: Path) -> None:
    new = WatchedCluster("new", "k-2")
    assert rename_problem(new, ["kept", "new"], recorded_clusters(str(two_clusters))) is not None
    forgot(two_clusters, OLD)
    assert rename_problem(new, ["kept", "new"], recorded_clusters(str(two_clusters))) is None


def test_one_that_is_watched_is_refused(two_clusters: Path) -> None:
    with pytest.raises(SetupError, match="the settings file has it"):
        forgot(two_clusters, OLD, "kept", OLD)
    with pytest.raises(SetupError, match="the settings file has it"):
        forgot(two_clusters, "kept")
    with only_one(JOB, str(two_clusters), OLD), pytest.raises(SetupError, match="its job is process"):
        forgot(two_clusters, OLD)
    with pytest.raises(SetupError, match="no cluster named odl: it has kept, o'ld"):
        forgot(two_clusters, "odl")
    assert counts(two_clusters, OLD)["rounds"] == 5


@pytest.mark.nightly
@pytest.mark.parametrize(("minutes", "goes"), [(5, False), (40, True)])
def test_one_that_nobody_has_closed_is_watched_while_its_rounds_are_young(
    tmp_path: Path, minutes: int, goes: bool
) -> None:
    end = datetime.now(UTC) - timedelta(minutes=minutes)
    MadeLake(tmp_path, [MadeGroup("orders")], rounds=2, cluster=OLD, end=end)
    if goes:
        forgot(tmp_path, OLD)
    else:
        with pytest.raises(SetupError, match="its newest round is of"):
            forgot(tmp_path, OLD)
    assert counts(tmp_path, OLD)["rounds"] == (0 if goes else 2)
