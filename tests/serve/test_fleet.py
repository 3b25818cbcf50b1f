"""One server for several clusters: well, ill, silent, never started and closed ones, each shown as what it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from dashboards.boards import BOARDS
from streaming.catalog import WatchedCluster, record_fleet
from tests.dashboards.made_lake import MadeGroup, MadeLake
from tests.serve.conftest import Served
from tests.serve.seen import answered, text_of

SHOP, BILLING, LEGACY, NEW, CLOSED = "shop", "billing", "legacy", "new", "closed"
LIVING = (SHOP, BILLING, LEGACY)


def record(root: Path, *clusters: str) -> None:
    record_fleet(str(root), [WatchedCluster(name, f"id-{name}") for name in clusters], clusters)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, serve_over: Callable[..., Served]) -> Served:
    """Five clusters in a lake; tests only read."""
    root = tmp_path_factory.mktemp("fleet") / "lake"
    made = {
        SHOP: [MadeGroup("orders"), MadeGroup("carts")],
        BILLING: [MadeGroup("orders", verdict="drifted", moved=(("orders", 4, 0),), drifted_since=3)],
        LEGACY: [MadeGroup("orders", verdict="drifted", moved=(("orders", 4, 0),), drifted_since=3)],
        CLOSED: [MadeGroup("left-over", verdict="drifted", moved=(("orders", 4, 0),), drifted_since=3)],
    }
    lakes = [MadeLake(root, groups, rounds=5, cluster=name) for name, groups in made.items()]
    alert = {"state": "firing", "ended": False, "severity": "critical", "event_date": 0, "entity": "{}", "decision": 1}
    for lake in lakes:
        lake.add("alerts", alert | {"cluster": lake.cluster, "rule": "drift", "alert_id": f"alert-{lake.cluster}"})
    record(root, *made, NEW)
    record(root, *LIVING, NEW)
    found = serve_over(root, lakes[0], partition_series=True, burrow_minutes=30)
    found.quiet_s[LEGACY] = 3_600.0
    return found


def rows(fleet: Served, target: str = "/") -> dict[str, str]:
    """Text of each cluster's row, in order."""
    found = re.findall(r'id="cluster-([a-z]+)">(.*?)</tr>', fleet.get(target).text, re.DOTALL)
    return {name: " ".join(text_of(row).split()) for name, row in found}


def test_the_overview_shows_each_watched_cluster_at_one_glance_the_sickest_first(fleet: Served) -> None:
    found = rows(fleet)
    assert list(found) == [LEGACY, NEW, BILLING, SHOP]
    assert "silent for 60 min" in found[LEGACY]
    assert re.search(r"ago 1 ✕ 1 1 1 \d+$", found[BILLING]), found[BILLING]
    assert re.search(r"ago 2 ✓ 2 1 0 \d+$", found[SHOP]), found[SHOP]


def test_an_alert_that_fires_names_its_cluster(fleet: Served) -> None:
    found = re.findall(r'id="a-alert-([a-z]+)">(.*?)</tr>', fleet.get("/").text, re.DOTALL)
    assert sorted(name for name, _ in found) == sorted(LIVING)
    for name, row in found:
        assert f"the cluster {name}" in " ".join(text_of(row).split())


def test_a_cluster_that_is_silent_or_was_never_seen_is_not_shown_as_healthy(fleet: Served) -> None:
    page = fleet.get("/").text
    for name, told in ((LEGACY, "silent for 60 min"), (NEW, "no round yet nothing is known of it")):
        (row,) = re.findall(rf'<tr class="(h\d)" id="cluster-{name}">', page)
        assert row == "h3"
        assert told in rows(fleet)[name]
        assert "✓" not in rows(fleet)[name]
    assert "No round from new yet." in page
    assert "No update from legacy for 60 min." in page


def test_every_board_of_all_groups_has_the_picker_and_keeps_the_choice_in_its_links(fleet: Served) -> None:
    boards = [board for board in BOARDS if board.word and not any(part.startswith("{") for part in board.path)]
    assert len(boards) > 8
    for board in boards:
        address = "/" + "/".join(board.path)
        everything = fleet.get(address).text
        assert 'aria-label="Cluster"' in everything, address
        chosen = fleet.get(f"{address}?cluster={SHOP}").text
        for other in boards:
            link = re.search(rf'<nav id="boards".*?href="([^"]*)"[^>]*>{re.escape(other.word)}</a>', chosen, re.DOTALL)
            assert link[1].endswith(f"?cluster={SHOP}"), (address, other.word, link[1])


def test_a_board_of_one_cluster_shows_nothing_of_another(fleet: Served) -> None:
    page = fleet.get(f"/?cluster={SHOP}").text
    assert "groups/carts" in page
    assert set(re.findall(r'id="g-([a-z]+)/', page)) == {SHOP}
    assert rows(fleet, f"/?cluster={SHOP}") == {}


def test_nothing_of_a_closed_cluster_is_the_present_and_its_past_can_be_asked(fleet: Served) -> None:
    page = fleet.get("/").text
    assert f"alert-{SHOP}" in page
    assert f'id="g-{SHOP}/' in page
    assert f"alert-{CLOSED}" not in page
    assert f'id="g-{CLOSED}/' not in page
    assert f'id="d-{CLOSED}/' in page, "its decisions are history"
    assert CLOSED not in fleet.get("/clusters").text
    assert f'cluster="{CLOSED}"' not in fleet.get("/metrics").text
    assert [row["cluster"] for row in fleet.get("/api/v1/groups").json()["items"]] == [BILLING, LEGACY, SHOP, SHOP]
    assert fleet.get("/v3/kafka").json()["clusters"] == [BILLING, LEGACY, SHOP]
    ask = "SELECT count(*) AS n FROM group_health WHERE cluster = $cluster"
    assert fleet.model.lake._cache.rows(ask, {"cluster": CLOSED}) == [{"n": 5}]


def test_metrics_have_the_cluster_on_every_series_of_one_and_say_which_is_silent(fleet: Served) -> None:
    text = fleet.get("/metrics").text
    silent = {name: fleet.metric(f'evenkeel_cluster_silent{{cluster="{name}"}}') for name in (*LIVING, NEW)}
    assert silent == {SHOP: 0, BILLING: 0, LEGACY: 1, NEW: 1}
    of_all = ("evenkeel_lake_readable", "evenkeel_build_info", "evenkeel_series_left_out")
    series = [line for line in text.splitlines() if line.startswith("evenkeel") and not line.startswith(of_all)]
    assert len(series) > 30
    assert [line for line in series if '{cluster="' not in line] == []
    assert not any('group="orders"' in line and f'cluster="{LEGACY}"' in line for line in series)


def test_health_counts_clusters_that_never_came_as_silent(fleet: Served) -> None:
    body = fleet.get("/health").json()
    assert (body["clusters"], body["silent_clusters"]) == (4, 2)


def test_the_api_lists_every_watched_cluster(fleet: Served) -> None:
    rounds = {row["cluster"]: row for row in fleet.get("/api/v1/groups").json()["rounds"]}
    assert {name: row["silent"] for name, row in rounds.items()} == {
        SHOP: False,
        BILLING: False,
        LEGACY: True,
        NEW: True,
    }
    assert rounds[NEW]["round"] is None


def test_two_servers_of_one_lake_make_the_same_pages_as_in_a_rolling_update(
    fleet: Served, serve_over: Callable[..., Served]
) -> None:
    other = serve_over(Path(fleet.lake.lake.root), fleet.lake, partition_series=True, burrow_minutes=30)
    other.quiet_s[LEGACY] = 3_600.0
    hour = timedelta(hours=1)
    span = f"from={fleet.lake.end - hour:%Y-%m-%dT%H:%MZ}&to={fleet.lake.end + hour:%Y-%m-%dT%H:%MZ}"
    boards = ("/", f"/?cluster={SHOP}", "/clusters", f"/rebalances?{span}", f"/groups/orders?cluster={SHOP}&{span}")
    for target in (*boards, "/api/v1/groups", "/api/v1/decisions"):
        one, two = (re.sub(r"\d+ s\b", "", answered(server, target).text) for server in (fleet, other))
        assert one == two, target
