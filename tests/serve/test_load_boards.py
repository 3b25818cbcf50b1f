"""The boards of load, topics and drift, as the server answers them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboards import Site
from dashboards.format import DASH
from streaming.config import Owner
from streaming.maintain import Maintainer
from tests.dashboards.made_events import BUSY, NOBODYS
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.serve.client import Served, shown, text_of


def test_a_hot_member_comes_first_and_a_hot_partition_is_named(boards: Served) -> None:
    text = shown(boards, "/load")
    rows = re.findall(r'id="l-demo/([a-z-]+)">(.*?)</tr>', text, re.DOTALL)
    # Its first member has all of 12 partitions where three members could have four each.
    assert rows[0][0] == "clicks-pile-up"
    assert "hot member: imbalance 2.00, another assignment would reach 0" in text_of(rows[0][1])
    of_one = text_of(shown(boards, "/groups/billing-stuck/load"))
    # One partition has 31 of the 38.2 records of a second.
    assert "Hot partition: invoices 0 (81 % of what is produced); no assignment can even it out" in of_one
    assert "billing-1 /10.0.3.17 2 33 33 87 % 1.75 " in of_one
    assert shown(boards, "/load?hot=partition").count('id="l-demo/billing-stuck"') == 1
    assert "No group matches" in shown(boards, "/load?name=nobody")


@pytest.mark.nightly
def test_records_of_a_time_are_those_of_the_roll_ups(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    lake = MadeLake(tmp_path / "lake", [MadeGroup("g", topics={"t": 2})], rounds=130)
    later = int((datetime.now(UTC) + timedelta(days=2)).timestamp() * 1000)
    list(Maintainer(str(tmp_path / "lake"), now=lambda: later).work())
    served = serve_over(tmp_path / "lake", lake)
    rows = served.model.lake.ask("load_partitions", {"cluster": CLUSTER, "group_id": "g"})
    assert len(rows) == 2
    grown = {row["topic"]: row["records"] for row in _topics_of(shown(served, "/groups/g/load?range=24h"))}
    # 31 rounds with rows of lag, in each of which both high watermarks grow by one and change with the lag.
    assert grown["t"] > 0
    told = text_of(shown(served, "/load?range=24h&compare=before"))
    assert f"{grown['t']:,} before: {DASH}" in told


def _topics_of(html: str) -> list[dict[str, Any]]:
    found = []
    for name, row in re.findall(r'<tr id="t-([^"]+)">(.*?)</tr>', html, re.DOTALL):
        cells = [text_of(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
        found.append({"topic": name, "records": int(cells[-1].replace(",", ""))})
    return found


def test_topics_are_listed_whether_or_not_somebody_reads_them(boards: Served) -> None:
    text = shown(boards, "/topics")
    rows = dict(re.findall(r'id="t-demo/([a-z-]+)">(.*?)</tr>', text, re.DOTALL))
    assert "nobody since" in text_of(rows[NOBODYS])
    assert "not known: the probe may not describe all groups" in text_of(rows[BUSY])
    assert "2 without a leader of 24" in text_of(rows[BUSY])
    assert "payments-audit" in text_of(rows["refunds"])
    assert re.findall(r'id="t-demo/([a-z-]+)"', shown(boards, "/topics?read=nobody")) == [NOBODYS]
    assert "1 topic of this name" in text_of(shown(boards, "/?q=refunds"))


def test_a_topic_shows_its_readers_and_how_far_behind_each_is(boards: Served) -> None:
    text = text_of(shown(boards, "/topics/payments"))
    partitions = boards.model.lake.ask("partitions", {"cluster": CLUSTER, "group_id": "payments-audit"})
    lags = [row["lag"] for row in partitions if row["topic"] == "payments"]
    assert f"payments-audit {sum(lags):,} {max(lags):,} " in text
    assert "No group has read it since" in text_of(shown(boards, f"/topics/{NOBODYS}"))
    assert "No topic is called nothing" in boards.get("/topics/nothing").text


@pytest.mark.nightly
def test_of_ten_thousand_topics_a_hundred_are_shown_or_a_thousand(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    lake = MadeLake(tmp_path / "lake", [MadeGroup("g", topics={"t": 1})])
    ms = int(lake.end.timestamp() * 1000)
    seen = {"cluster": CLUSTER, "round": lake.last, "round_time": ms, "event_date": ms // 86_400_000, "ended": False,
            "partitions": 3, "groups": 0, "readers": [], "read_by_nobody": True}  # fmt: skip
    lake.add("topics", *(seen | {"topic": f"events-{n:05}", "log_bytes": n} for n in range(10_000)))
    served = serve_over(tmp_path / "lake", lake)
    first = shown(served, "/topics")
    assert "9,901 more are not shown" in first
    assert first.count('id="t-demo/') == 100
    assert 'href="?most=1000"' in first
    assert shown(served, "/topics?most=1000").count('id="t-demo/') == 1000
    assert re.findall(r'id="t-demo/(events-\d+)"', shown(served, "/topics?sort=size"))[0] == "events-09999"
    assert "10 of 10,001 topics" in text_of(shown(served, "/topics?name=EVENTS-0123"))


def test_drift_lists_the_groups_that_drifted_and_the_decisions_as_of_then(boards: Served) -> None:
    text = shown(boards, "/drift")
    drifted = text[text.index("Groups that drifted") : text.index("Why not recomputed")]
    assert re.findall(r'id="g-demo/([a-z-]+)"', drifted) == ["clicks-pile-up", "payments-audit"]
    decision = re.search(r'href="\./(groups/payments-audit/decisions/\d+)', drifted)
    assert shown(boards, f"/{decision[1]}?cluster={CLUSTER}").count('<tr class="drift"') == 2
    decided = boards.model.lake.ask("rebalances", {"cluster": None, "group_id": None, "most": 10_000,
                                                   "since": datetime(2020, 1, 1, tzinfo=UTC)})  # fmt: skip
    counted = {word: sum(row["verdict"] == word for row in decided) for word in ("identical", "unverified", "drifted")}
    said = text_of(text)
    assert f"as expected {counted['identical']} " in said
    assert f"not recomputed {counted['unverified']} " in said
    assert f" drifted {counted['drifted']} groups that drifted 2 " in said
    assert "java:3.5 or later" in said
    assert "strategy &#39;pinned&#39; is not known" in said
    assert shown(boards, "/drift?verdict=unverified").count('id="v-') == counted["unverified"]


def test_boards_are_filtered_by_owner(boards: Served) -> None:
    owners = (Owner(team="money", groups=("/payments-.*/", "billing-stuck")), Owner(team="rest", groups=("/.*/",)))
    site = Site(boards.model.lake, boards.lake.lake.root, owners)
    try:
        for path, own, other in (
            (("load",), "billing-stuck", "clicks-pile-up"),
            (("drift",), "payments-audit", "clicks-pile-up"),
            (("rebalances",), "payments-audit", "clicks-pile-up"),
            (("cost",), "payments-audit", "clicks-pile-up"),
            ((), "payments-audit", "clicks-pile-up"),
        ):
            answer = site.answer(path, [("owner", "money"), ("range", "24h"), ("part", "main")])
            text = answer.body.decode()
            assert answer.status == 200
            assert f"groups/{own}" in text
            assert f"groups/{other}" not in text
    finally:
        site.stop()
