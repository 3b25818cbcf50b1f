"""The boards of alerts, cost, advice, clients, clusters and of Evenkeel itself, as the server answers them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboards.boards import rebalances
from dashboards.boards.alerts import read_rules
from dashboards.format import DASH
from streaming.alerts.decisions import Decisions
from streaming.maintain import Maintainer
from tests.dashboards.made_events import OTHER, TARGET, add_events
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake
from tests.examples import by_day, examples
from tests.serve.client import TEXTS, Seen, Served, shown, text_of

pytestmark = pytest.mark.turn(6)

_SECRET = "hunter2-token"

# A thousand times what such an answer takes: only what hangs is slow.
_LONG_S = 20

PAGES = (
    "/",
    "/?q=audit",
    "/rebalances",
    "/rebalances?compare=before",
    "/groups/payments-audit",
    "/groups/orders-mirror",
    "/alerts",
    "/alerts?range=30d",
    "/alerts/drift",
    "/alerts/of_yesterday",
    "/cost",
    "/cost?range=7d&compare=before",
    "/cost?range=1y",
    "/advice",
    "/clients",
    "/clusters",
    "/evenkeel",
    "/groups/clicks-pile-up/lag",
    "/groups/clicks-pile-up/lag?range=6h&by=seconds",
    "/groups/clicks-pile-up/lag?range=7d",
    "/groups/clicks-pile-up/lag?range=1y&by=seconds",
    "/load",
    "/load?range=7d&compare=before&hot=member",
    "/groups/billing-stuck/load",
    "/groups/billing-stuck/load?range=24h&compare=before",
    "/groups/billing-stuck/load?range=1y",
    "/topics",
    "/topics?read=nobody&sort=size",
    "/topics/payments",
    "/topics/nobodys?range=30d",
    "/drift",
    "/drift?range=1y&compare=before&verdict=unverified",
)


@pytest.fixture(scope="module")
def status_of(boards: Served) -> Callable[[str], int]:
    """Status of an address, which many boards link to: each is asked for once."""
    return cache(lambda target: boards.get(target).status)


@pytest.mark.parametrize("target", by_day(PAGES, ["/"]))
def test_a_board_has_nothing_inline_and_all_its_links_lead_somewhere_below_any_path(
    boards: Served, status_of: Callable[[str], int], target: str
) -> None:
    seen = Seen(shown(boards, target))
    for tag, attrs in seen.tags:
        assert tag != "style"
        assert tag != "script" or attrs.get("src")
        assert not [name for name in attrs if name == "style" or name.startswith("on")]
    ids = [attrs["id"] for _, attrs in seen.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    for href in dict.fromkeys(seen.links()):
        if href.startswith("#"):
            continue
        followed = urlsplit(urljoin(f"http://h/keel{target}", href))
        assert followed.path.startswith("/keel/"), href
        assert status_of(f"{followed.path.removeprefix('/keel')}?{followed.query}") == 200, href


def test_what_fires_is_first_and_what_fired_says_for_how_long(boards: Served) -> None:
    text = shown(boards, "/alerts")
    firing, _, rest = text.partition("<h2>History")
    assert re.findall(r'id="firing-([a-z])"', firing) == ["a", "f", "e", "d"]
    assert re.findall(r'id="pending-([a-z])"', firing) == ["c"]
    ended = rest[rest.index('id="past-b"') :]
    assert "11 min" in ended[: ended.index("</tr>")]


def test_deliveries_say_what_a_target_took_refused_and_is_still_owed(boards: Served) -> None:
    text = text_of(shown(boards, "/alerts"))
    owed = text[text.index("Still to be delivered") : text.index(" Deliveries ")]
    # The transitions of d, e, f have no attempt at all; a was refused by the second target only.
    assert owed.count(f" {TARGET} ") == 3
    assert owed.count(" team ") == 5
    assert "the server answered 503" in owed
    assert "given up" in text[text.index(" Deliveries ") :]


@pytest.mark.nightly
def test_no_address_of_a_target_is_shown(
    tmp_path: Path, serve_over: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_ALERTS__TARGETS__ONCALL", f"json://user:{_SECRET}@127.0.0.1:1")
    lake = MadeLake(tmp_path / "lake", [MadeGroup("g")])
    add_events(lake)
    served = serve_over(tmp_path / "lake", lake)
    for target in ("/alerts", "/alerts/drift", "/evenkeel"):
        answer = served.get(target)
        assert answer.status == 200
        assert _SECRET not in answer.text


def test_a_rule_is_shown_with_its_condition_and_the_numbers_of_its_thresholds(boards: Served) -> None:
    text = text_of(shown(boards, "/alerts/imbalance"))
    assert "imbalance - imbalance_optimal &gt; :imbalance" in text
    assert ":imbalance 0.5" in text
    assert "for 6 rounds" in text
    assert "Nothing fires." in text
    assert "No rule of this name" in shown(boards, "/alerts/of_yesterday")
    assert "No alert rule is called nobody" in boards.get("/alerts/nobody").text


def test_mutes_that_hold_stand_on_the_board_beside_what_they_mute(boards: Served) -> None:
    text = text_of(shown(boards, "/alerts"))
    assert "group billing-stuck" in text
    assert "rule drift" not in text, "it was lifted"
    assert "Held back" in text
    assert "group x is muted" in text, "what is held back is still to be delivered, with the reason"
    assert HOSTILE[0] not in shown(boards, "/alerts")


def test_marks_stand_below_each_board_with_an_axis_of_time_and_only_those_of_the_group(boards: Served) -> None:
    for path in ("/alerts", "/rebalances", "/groups/billing-stuck", "/groups/billing-stuck/load"):
        page = shown(boards, path)
        assert page.count('id="mark-k2"') == 1, "a mark that was sent twice is one"
        assert "deploy of billing" in page
        assert HOSTILE[0] not in page
    assert "deploy of billing" not in shown(boards, "/groups/checkout")
    # A board lists the marks of the time that its charts show.
    assert "new release" in shown(boards, "/rebalances")
    assert "new release" not in shown(boards, "/groups/checkout")
    assert "new release" in shown(boards, "/groups/checkout?range=6h")
    assert "rack 2 moved" in shown(boards, "/groups/checkout")


def test_rules_of_a_file_that_cannot_be_read_are_a_sentence_and_the_alerts_stay(boards: Served, tmp_path: Path) -> None:
    file = tmp_path / "alerts.yaml"
    assert "cannot be read" in (read_rules(file).problem or "")
    file.write_text("rules:\n- {name: late, severity: info, view: rounds_current, when: true, message: m}\n")
    assert [(rule["name"], rule["when"]) for rule in read_rules(file).rules] == [("late", "true")]
    file.write_text("rules: [\n")
    assert "is not YAML" in (read_rules(file).problem or "")
    assert boards.get("/alerts").status == 200


def test_cost_adds_up_what_the_decisions_cost(boards: Served) -> None:
    text = text_of(shown(boards, "/cost"))
    everything = {"cluster": None, "group_id": None, "since": datetime(2020, 1, 1, tzinfo=UTC), "most": 10_000}
    decisions = boards.model.lake.ask("rebalances", everything)
    moved = sum(row["partitions_moved"] for row in decisions)
    assert f"rebalances {len(decisions)} " in text
    assert f"partitions moved {moved:,} " in text
    avoidable = sum(row["partitions_moved"] - row["partitions_moved_optimal"] for row in decisions)
    assert f"more than needed {avoidable:,} " in text
    assert f"member joined who was not there before {len(decisions)} " in text
    assert f"eager everything stops {len(decisions)} " in text


def test_a_time_before_that_has_no_rows_is_a_dash_and_not_a_zero(boards: Served) -> None:
    assert f"before: {DASH}" in shown(boards, "/cost?compare=before")
    assert "before: 0" not in shown(boards, "/cost?compare=before")


def test_roll_ups_that_are_not_written_yet_are_not_taken_for_nothing(boards: Served) -> None:
    text = text_of(shown(boards, "/cost?range=7d"))
    assert "which have no decision of this time" in text
    assert f"rebalances {DASH} " in text
    assert "rebalances 0" not in text


def test_advice_is_filtered_by_group_and_kind(boards: Served) -> None:
    everything = shown(boards, "/advice")
    assert everything.count("<article") == 3
    assert "It would have saved 1.5 partition-seconds in 7 days." in everything
    assert "How much it would have saved in 7 days is unknown." in everything
    assert shown(boards, "/advice?kind=strategy").count("<article") == 1
    assert shown(boards, "/advice?group=AUDIT").count("<article") == 1
    assert "No advice matches" in shown(boards, "/advice?group=nobody")


def test_only_a_leader_whose_assignment_is_recomputed_has_a_library(boards: Served) -> None:
    rows = {
        row["client_id"]: row for row in boards.model.lake.ask("clients", {"cluster": None, "text": "", "most": 500})
    }
    assert rows["checkout-1"]["library"] == "java:3.5"
    assert rows["checkout-2"]["library"] is None
    assert rows["audit-1"]["library"] is None  # it leads, but its group has drifted
    text = text_of(shown(boards, "/clients?name=checkout"))
    assert "java:3.5 or later" in text
    assert "unknown" in text[text.index("checkout-2") :]


def test_a_client_is_found_by_a_part_of_its_name_and_leads_to_its_groups(boards: Served) -> None:
    text = shown(boards, "/clients?name=INDEXER-3&library=unknown")
    assert "Client ids and hosts 1 " in text_of(text)
    assert "groups/search-indexer?cluster=" in text
    assert "No client matches" in shown(boards, "/clients?static=yes")


def test_a_cluster_without_new_rounds_is_silent_and_the_other_is_not(boards: Served) -> None:
    boards.quiet_s[OTHER], boards.quiet_s[CLUSTER] = 3_600.0, 1.0
    try:
        text = shown(boards, "/clusters")
    finally:
        boards.quiet_s.clear()
    rows = dict(re.findall(r'id="cluster-([a-z]+)">(.*?)</tr>', text, re.DOTALL))
    assert "silent for 60 min" in text_of(rows[OTHER])
    assert "silent" not in rows[CLUSTER]
    assert "two\\nlines" in text  # the transactional id that blocks the log
    assert "rights of the probe" in text


def test_evenkeel_itself_shows_rounds_tables_and_what_was_missed(boards: Served) -> None:
    text = text_of(shown(boards, "/evenkeel"))
    assert "10 s set: 10 s" in text
    assert "No alerter has decided anything about this cluster yet." in text
    assert "It has written no history yet" in text
    # 130 rounds, and the one of the other cluster, in a file each; midnight cuts a file in two.
    files = DeltaTable(Path(boards.lake.lake.root) / "rounds").file_uris()
    assert f" rounds 131 {len(files)} " in text
    assert "undecodable type 2, version 3 too short 3" in text
    assert "compacted before it was read" in text


def test_a_consumer_that_joins_now_is_there_with_the_next_round(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    group = MadeGroup("g", members=("first",))
    served = serve_over(tmp_path / "lake", MadeLake(tmp_path / "lake", [group]))
    assert "newcomer" not in served.get("/groups/g").text
    group.members, group.decisions = ("first", "newcomer"), (0,)
    served.lake.next_round()
    served.poll()
    assert "newcomer" in served.get("/groups/g").text
    assert "newcomer" in served.get("/clients").text
    assert 'id="g-demo/g"' in served.get("/?q=newcomer").text


def test_a_group_with_a_finding_that_needs_somebody_is_not_ok(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    needed = (
        "stuck_rebalance", "rebalance_storm", "idle_members", "never_committed", "stuck_deliveries", "records_given_up"
    )  # fmt: skip
    groups = [MadeGroup(finding, findings=((finding, f"with {finding}"),)) for finding in needed]
    served = serve_over(tmp_path / "lake", MadeLake(tmp_path / "lake", groups))
    overview = served.get("/").text
    for finding in needed:
        assert f"with {finding} · since" in served.get(f"/groups/{finding}").text
        assert re.search(rf'<tr class="h[123]" id="g-demo/{finding}">', overview)
        assert f"with {finding} · since" in overview


@pytest.mark.nightly
def test_sums_over_weeks_and_months_are_those_of_the_decisions(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    now = datetime.now(UTC)
    lake = MadeLake(tmp_path / "lake", [MadeGroup("a"), MadeGroup("b", members=("x", "y", "z"))], rounds=130)
    later = int((now + timedelta(days=2)).timestamp() * 1000)
    list(Maintainer(str(tmp_path / "lake"), now=lambda: later).work())
    served = serve_over(tmp_path / "lake", lake)
    by_range = [shown(served, f"/cost?range={name}") for name in ("24h", "7d", "1y")]
    [raw, hours, days] = [text_of(html[html.index("<dl") :]) for html in by_range]
    assert "rebalances 4 " in raw
    assert "member joined who was not there before 4 " in raw
    assert raw == hours == days
    assert ["From the roll-ups" in html for html in by_range] == [False, True, True]
    assert "It last wrote history" in shown(served, "/evenkeel")


@pytest.mark.nightly
def test_an_alerter_that_has_written_its_place_lives(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    lake = MadeLake(tmp_path / "lake", [MadeGroup("g")], rounds=3)
    decisions = Decisions(str(tmp_path / "lake"), CLUSTER)
    decisions.remember()
    decisions.commit([], lake.last, int(lake.end.timestamp() * 1000), {})
    served = serve_over(tmp_path / "lake", lake)
    assert "is 0 s older than the newest round" in shown(served, "/evenkeel")


def test_a_group_that_loses_data_soon_is_critical(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    lake = MadeLake(tmp_path / "lake", [MadeGroup("sure"), MadeGroup("perhaps"), MadeGroup("in-time")], rounds=2)
    ms = int(lake.end.timestamp() * 1000)
    row = {
        "cluster": CLUSTER, "round": lake.last + 1, "round_time": ms, "event_date": ms // 86_400_000, "ended": False,
        "verdict": "identical", "members": 2, "lag_status": "ok", "findings": [], "loses_data_in_seconds_min": 30.0,
        "loses_data_in_seconds_max": 300.0, "loses_data_topic": "orders", "loses_data_partition": 1,
        "loses_data_retention_seconds": 86_400.0, "loses_data_by": "append_time", "topics": 1, "partitions": 6,
        "drifted_count": 0, "lag_total": 5,
    }  # fmt: skip
    lake.add(
        "group_health",
        row | {"group_id": "sure"},
        row | {"group_id": "perhaps", "loses_data_by": "create_time"},
        row | {"group_id": "in-time", "loses_data_in_seconds_max": 8_640.0},
    )
    served = serve_over(tmp_path / "lake", lake)
    assert re.findall(r'<tr class="h(-?\d)" id="g-demo/([a-z-]+)">', served.get("/").text) == [
        ("3", "sure"), ("2", "perhaps"), ("0", "in-time"),
    ]  # fmt: skip
    assert "orders 1 ends in 30 s to 5 min" in served.get("/groups/sure").text


def test_the_head_of_a_connect_group_counts_what_its_workers_run_and_of_others_partitions(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    lake = MadeLake(tmp_path / "lake", [MadeGroup("consumers", topics={"orders": 6})])
    ms = int(lake.end.timestamp() * 1000)
    lake.add(
        "group_health",
        {"cluster": CLUSTER, "round": lake.last, "round_time": ms, "event_date": ms // 86_400_000, "ended": False,
         "group_id": "connect-cluster", "protocol_type": "connect", "verdict": "identical", "findings": [],
         "topics": 0, "partitions": 0, "assigned_partitions": 5, "members": 2},
    )  # fmt: skip
    served = serve_over(tmp_path / "lake", lake)
    heads = [text_of(served.get(f"/groups/{group}").text) for group in ("connect-cluster", "consumers")]
    assert ["units 5 " in heads[0], "partitions 0 " in heads[0]] == [True, False]
    assert "partitions 6 " in heads[1]


def test_decisions_that_are_left_out_are_said(
    tmp_path: Path, serve_over: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = MadeGroup("g", decisions=(90, 60, 30))
    served = serve_over(tmp_path / "lake", MadeLake(tmp_path / "lake", [group], rounds=100))
    assert "decisions are in the list" not in served.get("/rebalances").text
    monkeypatch.setattr(rebalances, "_MOST", 2)
    served.model.lake.forget()
    for target in ("/rebalances", "/groups/g"):
        assert "Only the newest 2 decisions" in served.get(target).text


def test_lag_by_partition_names_the_worst_and_says_what_is_not_known(boards: Served) -> None:
    text = text_of(shown(boards, "/groups/clicks-pile-up/lag?range=6h"))
    assert re.search(r"12 partitions; the worst is clicks \d+ with \d+ unread; 9\d % of it is not known", text)
    assert "Seconds behind are not in the history" in shown(boards, "/groups/clicks-pile-up/lag?range=30d&by=seconds")


_PATHS = st.one_of(
    st.sampled_from([page.partition("?")[0] for page in PAGES]),
    TEXTS.map(lambda text: f"/alerts/{text}"),
    TEXTS.map(lambda text: f"/groups/{text}"),
    TEXTS.map(lambda text: f"/groups/{text}/lag"),
    st.tuples(TEXTS, TEXTS).map(lambda two: f"/groups/{two[0]}/decisions/{two[1]}"),
    TEXTS.map(lambda text: f"/groups/payments-audit/decisions/{text}"),
    TEXTS.map(lambda text: f"/groups/{text}/load"),
    TEXTS.map(lambda text: f"/topics/{text}"),
)
_NAMES = (
    "cluster", "range", "from", "to", "severity", "sort", "most", "compare", "kind", "owner", "group", "name",
    "library", "type", "static", "part", "by", "hot", "read", "verdict", "q", "show", "pattern",
)  # fmt: skip


@given(path=_PATHS, parameters=st.lists(st.tuples(st.sampled_from(_NAMES), TEXTS), max_size=4))
@settings(max_examples=examples(500), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_address_fails_a_board(boards: Served, path: str, parameters: list[tuple[str, str]]) -> None:
    began = time.monotonic()
    query = "&".join(f"{name}={quote(value, safe='%')}" for name, value in parameters)
    answer = boards.get(f"{path}?{query}")
    assert answer.status in {200, 400, 404}
    assert time.monotonic() - began < _LONG_S


@pytest.mark.nightly
def test_a_group_says_since_when_its_states_hold_and_for_how_long_each_did(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    # Rounds come every ten seconds: lag has been stopped for six minutes, and was ok for ten before that.
    group = MadeGroup("g", status=lambda ago: "stopped" if ago < 36 else "ok")
    lake = MadeLake(tmp_path / "lake", [group], end=datetime.now(UTC).replace(microsecond=0), rounds=96)
    served = serve_over(tmp_path / "lake", lake)
    text = text_of(shown(served, "/groups/g"))
    text = text[text.index("States over time") : text.index("Rebalances", text.index("States over time"))]
    began = lake.end - timedelta(seconds=350)
    assert f"lag status stopped {began:%H:%M:%S} ok 10 min, stopped 5 min" in text
    assert re.search(r"coordinator state Stable before \d\d:\d\d Stable 15 min", text)
    assert "Coordinator states as a table" in text
