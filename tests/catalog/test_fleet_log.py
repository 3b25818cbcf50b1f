from __future__ import annotations

from pathlib import Path

import pytest

from streaming.catalog import FleetLog, WatchedCluster, record_fleet, recorded_clusters, rename_problem
from streaming.tables import DeltaLake, LakeReader, OpenedTable, named_to_arrow, table_named


def record(lake: Path, *watched: str, names: tuple[str, ...] = (), old: str | None = None, now: int = 1_000) -> None:
    clusters = [WatchedCluster(name, f"id-{name}", old) for name in watched]
    record_fleet(str(lake), clusters, names or watched, lambda: now)


def closed(lake: Path) -> set[str]:
    return set(FleetLog(str(lake)).closed())


def round_row(cluster: str, number: int, cluster_id: str | None = None) -> dict[str, object]:
    return {
        "cluster": cluster,
        "cluster_id": cluster_id,
        "round": number,
        "round_time": 1_000 * number,
        "event_date": 0,
    }


def write_rounds(lake: Path, *rows: dict[str, object]) -> None:
    to = DeltaLake(str(lake))
    to.create()
    to.append("rounds", named_to_arrow(table_named("rounds"), rows), "job", len(rows))


def present(lake: Path) -> list[str]:
    return [row["cluster"] for row in LakeReader(lake).rows("SELECT cluster FROM rounds_current ORDER BY cluster")]


def test_a_cluster_that_left_the_file_is_closed_and_one_that_comes_back_is_watched(tmp_path: Path) -> None:
    record(tmp_path, "a", "b")
    assert closed(tmp_path) == set()
    record(tmp_path, "a")
    assert closed(tmp_path) == {"b"}
    record(tmp_path, "a", "b")
    assert closed(tmp_path) == set()


def test_what_is_recorded_already_is_not_written_again(tmp_path: Path) -> None:
    record(tmp_path, "a", "b")
    record(tmp_path, "a", "b", now=9_000)
    record_fleet(str(tmp_path), [WatchedCluster("a")], ["a", "b"])
    table = OpenedTable(str(tmp_path), table_named("clusters"))
    table.refresh()
    assert sum(file.rows or 0 for file in table.files()) == 2


def test_a_process_for_one_cluster_of_the_file_does_not_close_the_others(tmp_path: Path) -> None:
    record(tmp_path, "a", names=("a", "b"))
    record(tmp_path, "b", names=("a", "b"))
    assert closed(tmp_path) == set()


def test_deployments_with_a_file_each_over_one_lake_close_nothing_of_each_other(tmp_path: Path) -> None:
    record(tmp_path, "a")
    record(tmp_path, "b")
    record(tmp_path, "a", "c")
    assert closed(tmp_path) == set()


def test_a_clock_that_is_behind_does_not_bring_an_older_state_back(tmp_path: Path) -> None:
    record(tmp_path, "a", "b", now=50_000)
    record(tmp_path, "a", now=10)
    assert closed(tmp_path) == {"b"}


def test_the_present_leaves_out_a_closed_cluster_and_history_keeps_it(tmp_path: Path) -> None:
    write_rounds(tmp_path, round_row("a", 1), round_row("b", 1))
    assert present(tmp_path) == ["a", "b"], "in a lake of release 0.6 every cluster with rounds is watched"
    record(tmp_path, "a", "b")
    record(tmp_path, "a")
    assert present(tmp_path) == ["a"]
    assert LakeReader(tmp_path).count("rounds") == 2
    record(tmp_path, "a", "b")
    assert present(tmp_path) == ["a", "b"]


def test_a_new_name_of_a_cluster_that_the_lake_knows_is_refused_with_both_names(tmp_path: Path) -> None:
    write_rounds(tmp_path, round_row("orders", 1), round_row("orders", 2, "k-1"), round_row("payments", 1, "k-2"))
    known = recorded_clusters(str(tmp_path))
    told = rename_problem(WatchedCluster("sales", "k-1"), ["sales", "payments"], known)
    assert told is not None
    assert "The cluster sales (k-1) is called orders in the lake" in told
    assert 'renamed_from = "orders"' in told


@pytest.mark.parametrize(
    ("cluster", "names"),
    [
        (WatchedCluster("sales", "k-1", "orders"), ("sales",)),
        (WatchedCluster("sales", "k-1"), ("sales", "orders")),
        (WatchedCluster("sales", "k-9"), ("sales",)),
        (WatchedCluster("sales"), ("sales",)),
        (WatchedCluster("orders", "k-1"), ("orders",)),
    ],
    ids=["told so", "the old name is in the file, too", "another cluster", "an unknown id", "a known name"],
)
def test_a_name_is_not_refused(tmp_path: Path, cluster: WatchedCluster, names: tuple[str, ...]) -> None:
    write_rounds(tmp_path, round_row("orders", 1, "k-1"))
    assert rename_problem(cluster, names, recorded_clusters(str(tmp_path))) is None


def test_a_renamed_cluster_closes_its_old_name_also_that_of_a_lake_of_release_0_6(tmp_path: Path) -> None:
    write_rounds(tmp_path, round_row("orders", 1, "k-1"), round_row("sales", 1, "k-1"))
    record(tmp_path, "sales", old="orders")
    assert closed(tmp_path) == {"orders"}
    assert present(tmp_path) == ["sales"]
