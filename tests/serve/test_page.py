"""The page as the server answers it: addresses, headers, hostile names, refreshes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dashboards.boards.overview import pattern_of
from streaming.groups.verdict_inputs import pack_line
from streaming.times import DAY_MS
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.examples import by_day
from tests.serve.conftest import Served
from tests.serve.seen import answered, shown

pytestmark = pytest.mark.turn(6)


def test_a_group_is_found_by_a_client_a_topic_and_a_host(served: Served) -> None:
    for text, group in (("INDEXER-3", "search-indexer"), ("invoices", "billing-stuck"), ("audit", "payments-audit")):
        assert f'id="g-demo/{group}"' in served.get(f"/?q={text}").text
    assert 'id="g-demo/mailer"' not in served.get("/?q=audit").text


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


def test_made_up_parts_of_group_ids_are_folded() -> None:
    assert pattern_of("console-consumer-48151") == "console-consumer-<number>"
    assert pattern_of("job-8c1d4a1e-97b1-4f0e-9d35-51a9a4b0a0de") == "job-<uuid>"
    assert pattern_of("run-2026-11-20T14:03:10Z-x") == "run-<time>-x"
    assert pattern_of("orders-v2") == "orders-v2"


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
