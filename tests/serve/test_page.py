"""The page as the server answers it: addresses, headers, refreshes; and several clusters in one server."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from dashboards.boards import BOARDS
from dashboards.boards.overview import pattern_of
from streaming.catalog import WatchedCluster, record_fleet
from streaming.groups.verdict_inputs import pack_line
from streaming.times import DAY_MS
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.examples import by_day
from tests.serve.client import Served, answered, shown, text_of


@pytest.mark.turn(6)
def test_a_group_is_found_by_a_client_a_topic_and_a_host(served: Served) -> None:
    for text, group in (("INDEXER-3", "search-indexer"), ("invoices", "billing-stuck"), ("audit", "payments-audit")):
        assert f'id="g-demo/{group}"' in served.get(f"/?q={text}").text
    assert 'id="g-demo/mailer"' not in served.get("/?q=audit").text


@pytest.mark.turn(6)
@pytest.mark.nightly
def test_a_decision_of_rocketmq_is_explained_topic_by_topic(tmp_path: Path, serve_over) -> None:  # type: ignore[no-untyped-def]
    lake = MadeLake(tmp_path / "lake", [MadeGroup("g")])
    time_ms = int(lake.end.timestamp() * 1000)
    head = {
        "cluster": CLUSTER,
        "group_id": "tills",
        "decision": 7,
        "record_time": time_ms,
        "event_date": time_ms // DAY_MS,
    }
    lake.add("rebalance_churn", head | {"kind": "rebalance", "causes": [], "joined": [], "left": [], "replaced": []})
    topics = [f"topic-{number}" for number in range(10)]
    for topic in topics:
        queues = [{"topic": topic, "broker": "broker-a", "queue": number} for number in (0, 1)]
        line = {"strategy": "rocketmq:AVG", "queues": queues, "clients": ["c1", "c2"]}
        verdict = {
            "topic": topic,
            "verdict": "identical",
            "drifted_partitions": [],
            "inputs": pack_line(line),
            "round": 1,
        }
        lake.add("drift", head | verdict)
    served = serve_over(tmp_path / "lake", lake)

    text = shown(served, "/groups/tills/decisions/7")

    why = text[text.index("Who should own what") : text.index("What it cost")]
    assert re.findall("<h3>(.*?)</h3>", why) == topics[:8]
    assert why.count("broker-a") >= 8
    assert "and 2 more topics" in why


@pytest.mark.turn(6)
def test_a_refresh_is_answered_with_nothing_until_something_changes(tmp_path: Path, serve_over) -> None:  # type: ignore[no-untyped-def]
    served = serve_over(tmp_path / "lake", MadeLake(tmp_path / "lake", [MadeGroup("g", lag=lambda at, _: at)]))
    first = served.get("/?part=main")
    assert "<html" not in first.text
    again = served.get("/?part=main", headers={"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    served.lake.next_round()
    served.poll()
    changed = served.get("/?part=main", headers={"if-none-match": first.headers["etag"]})
    assert changed.status == 200
    assert f"{6 * served.lake.last:,}" in changed.text


@pytest.mark.turn(6)
def test_what_is_wrong_in_an_address_is_a_sentence(served: Served) -> None:
    for target, status, said in (
        ("/?show=bad", 400, "show cannot be bad"),
        ("/rebalances?from=yesterday", 400, "from must be a time"),
        ("/rebalances?from=2026-11-20T00:00Z&amp;to=2026-11-20", 400, ""),
        ("/groups/nobody", 404, "No active group is called nobody"),
        ("/groups/payments-audit/decisions/x", 400, "is an offset of the log"),
        ("/groups/payments-audit/decisions/1", 404, "No decision 1 of payments-audit"),
        (f"/?cluster={CLUSTER}&cluster=b", 400, "has cluster twice"),
        ("/nothing", 404, "There is nothing here"),
    ):
        answer = answered(served, target)
        if said:
            assert (answer.status, said in answer.text) == (status, True), target


@pytest.mark.turn(6)
def test_made_up_parts_of_group_ids_are_folded() -> None:
    assert pattern_of("console-consumer-48151") == "console-consumer-<number>"
    assert pattern_of("job-8c1d4a1e-97b1-4f0e-9d35-51a9a4b0a0de") == "job-<uuid>"
    assert pattern_of("run-2026-11-20T14:03:10Z-x") == "run-<time>-x"
    assert pattern_of("orders-v2") == "orders-v2"


@pytest.mark.turn(6)
@pytest.mark.parametrize("first", by_day(["/", "/api/v1/groups/None"], ["/"]))
def test_a_question_about_a_group_that_is_called_none_changes_no_other_answer(
    tmp_path: Path, serve_over: Callable[..., Served], first: str
) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("orders"), MadeGroup("payments")], rounds=3)
    served = serve_over(tmp_path, lake)
    served.get(first)
    answer = served.get("/api/v1/groups/None")
    assert (answer.status, answer.json()["detail"]) == (404, "There is no living group 'None'.")
    for group in ("orders", "payments"):
        assert f"groups/{group}" in served.get("/").text
        assert served.get(f"/groups/{group}").status == 200


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


def test_what_the_page_loads_is_kept_by_browsers_that_ask_whether_it_has_changed(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    served = serve_over(tmp_path / "lake", MadeLake(tmp_path / "lake", [MadeGroup("g")]), path="kafka/evenkeel")
    page = served.get("/kafka/evenkeel/groups/g").text
    files = re.findall(r'(?:src|href)="\.\./(static/[^"]+)"', page)
    assert {"static/page.css", "static/page.js", "static/icon.svg"} <= set(files)
    for file in files:
        for path in (f"/kafka/evenkeel/{file}", f"/{file}"):
            found = served.get(path)
            assert (found.status, found.headers["cache-control"]) == (200, "no-cache")
            assert served.get(path, headers={"if-none-match": found.headers["etag"]}).status == 304
    gone = served.get("/static/of_another_release.js")
    assert (gone.status, gone.json()["status"]) == (404, 404)
    assert served.get("/static/../page/markup.py").status == 404
