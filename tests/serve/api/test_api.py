"""The API over a made lake: the rows of the page's queries, pages, times, errors; and marks, which it writes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assignors.jsonl import assign_line
from streaming.groups.verdict_inputs import pack_line
from streaming.notes import GROUP, Mute, write_note
from streaming.serve.api.listings import LISTINGS, Listing
from streaming.serve.api.routes import MARKS, PREFIX
from streaming.tables import LakeReader
from streaming.times import epoch_ms
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake
from tests.examples import ends, examples
from tests.serve.client import TEXTS, Answer, Served

RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def all_pages(served: Served, target: str, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        sign = "&" if "?" in target else "?"
        page = served.get(f"{target}{sign}limit={limit}{cursor}").json()
        assert len(page["items"]) <= limit
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def _in_order(value: object) -> object:
    # A time without fractions of a second is shorter as a text, and "Z" comes after ".".
    is_time = isinstance(value, str) and RFC_3339.fullmatch(value)
    return datetime.fromisoformat(str(value)) if is_time else value


@pytest.mark.parametrize("listing", ends(LISTINGS), ids=lambda listing: listing.name)
def test_pages_give_every_row_once_and_in_order(served: Served, listing: Listing) -> None:
    small, large = (all_pages(served, f"{PREFIX}/{listing.name}", limit) for limit in (7, 1000))
    assert small == large
    keys = [tuple(_in_order(row[column]) for column in listing.key) for row in small]
    assert len(set(keys)) == len(keys)
    assert keys == sorted(keys, reverse=listing.newest_first)
    if listing.name not in {"alerts", "advice"}:
        assert len(keys) > 7


def test_times_are_rfc_3339_in_utc(served: Served) -> None:
    row = served.get(f"{PREFIX}/groups?group=checkout").json()["items"][0]
    assert RFC_3339.fullmatch(row["round_time"])
    assert RFC_3339.fullmatch(served.get(f"{PREFIX}/groups").json()["rounds"][0]["round_time"])


@pytest.mark.parametrize("group", ["payments-audit", *HOSTILE])
def test_one_group_by_any_name(served: Served, group: str) -> None:
    answer = served.get(f"{PREFIX}/groups/{quote(group, safe='')}")
    assert answer.status == 200
    assert answer.json()["group"]["group_id"] == group
    assert {row["strategy"] for row in answer.json()["what_if"]} >= {"range", "sticky"}


def test_decisions_since_a_time(served: Served) -> None:
    since = served.lake.end - timedelta(minutes=10)
    found = all_pages(served, f"{PREFIX}/decisions?since={quote(since.isoformat())}", 5)
    all_of_them = all_pages(served, f"{PREFIX}/decisions", 1000)
    assert found == [row for row in all_of_them if datetime.fromisoformat(row["record_time"]) >= since]
    assert 0 < len(found) < len(all_of_them)


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("groups?limit=0", "limit"),
        ("groups?limit=x", "limit"),
        ("groups?nonsense=1", "nonsense"),
        ("groups?topic=orders", "topic"),
        ("groups?cluster=a&cluster=b", "twice"),
        ("groups?cursor=abc", "cursor"),
        ("lag?cursor=WzEsMiwzLDRd", "cursor"),
        ("decisions?since=yesterday", "since"),
        ("decisions?since=2026-01-01T00:00:00", "since"),
    ],
)
def test_a_wrong_parameter_is_a_problem_that_names_it(served: Served, target: str, word: str) -> None:
    answer = served.get(f"{PREFIX}/{target}")
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json()["status"] == 400
    assert word in answer.json()["detail"]


def test_what_is_not_there_is_a_problem(served: Served) -> None:
    for target in (f"{PREFIX}/groups/nobody", f"{PREFIX}/nothing", "/metrics/nothing"):
        answer = served.get(target)
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.fixture
def topics(tmp_path: Path, serve_over: Callable[..., Served]) -> Served:
    """Two topics, of which the group of the lake reads one; and two pieces of advice of which one holds."""
    lake = MadeLake(tmp_path, [MadeGroup("billing", topics={"orders": 3}, lag=lambda *_: 7)])
    ms = int(lake.end.timestamp() * 1000)
    seen = {"cluster": CLUSTER, "round": lake.last, "round_time": ms, "event_date": ms // 86_400_000, "ended": False}
    lake.add(
        "topics",
        seen | {"topic": "orders", "partitions": 4, "groups": 1, "readers": ["billing"], "read_by_nobody": False,
                "produced_per_second": 2.5, "log_bytes": 900},
        seen | {"topic": "audit", "partitions": 1, "groups": 0, "readers": [], "read_by_nobody": True,
                "read_by_nobody_since": ms},
        seen | {"topic": "gone", "round": lake.last - 1, "partitions": 1},
        seen | {"topic": "gone", "ended": True, "ended_reason": "deleted"},
    )  # fmt: skip
    day = ms // 86_400_000
    of_group = {"cluster": CLUSTER, "group_id": "billing", "since": day - 2, "advice": "Do it."}
    lake.add(
        "advice",
        of_group | {"kind": "cooperative", "event_date": day - 1, "ended": False},
        of_group | {"kind": "strategy", "event_date": day - 2, "ended": False},
        of_group | {"kind": "strategy", "event_date": day - 1, "ended": True},
    )
    return serve_over(tmp_path, lake)


def test_one_topic_has_the_lag_of_each_group(topics: Served) -> None:
    answer = topics.get(f"{PREFIX}/topics/orders").json()
    assert answer["topic"]["partitions"] == 4
    assert answer["groups"] == [
        {"cluster": CLUSTER, "group_id": "billing", "partitions": 3, "lag_total": 21, "lag_max": 7, "lag_unknown": 0}
    ]
    assert topics.get(f"{PREFIX}/topics/gone").status == 404


def test_a_filter_may_be_the_word_null(served: Served) -> None:
    assert served.get(f"{PREFIX}/groups?group=null").json()["items"] == []


def test_a_proxy_may_leave_its_path_or_take_it_off(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    served = serve_over(tmp_path, MadeLake(tmp_path, []), path="/keel")
    for target in ("/keel/", "/", "/keel/metrics", "/metrics", f"/keel{PREFIX}/groups", "/keel/metrics/kminion"):
        assert served.get(target).status == 200
    assert served.get("/keelhaul").status == 404


def explained(served: Served, target: str) -> Answer:
    """The answer once the verdict has been read."""
    answer = served.get(target)
    for _ in range(100):
        if answer.status != 503:
            break
        answer = served.get(target)
    return answer


def test_an_explanation_is_a_line_of_assign_with_the_words_beside_it(served: Served) -> None:
    target = f"{PREFIX}/explain?group=payments-audit"
    answer = explained(served, target)
    assert answer.status == 200
    line = answer.json()
    assert len(assign_line(line)["assignment"]) == 6
    assert any("In all 30 partitions" in sentence for sentence in line["explanation"]["sentences"])
    assert line["explanation"]["drift"][0].startswith("payments 4 was given to ")
    assert served.get(f"{PREFIX}/explain").status == 400
    assert served.get(f"{target}&partition=payments").status == 400


def test_an_explanation_of_a_partition_that_the_verdict_does_not_have_is_not_there(served: Served) -> None:
    target = f"{PREFIX}/explain?group=payments-audit"
    sentences = explained(served, f"{target}&partition=payments/4").json()["explanation"]["sentences"]
    assert sentences[-1].endswith("should own payments 4.")
    for partition in ("paiments/4", "payments/4000"):
        answer = served.get(f"{target}&partition={partition}")
        assert answer.status == 404
        assert answer.json()["detail"].startswith(f"This verdict has no partition {partition.replace('/', ' ')}: ")


def test_an_explanation_has_every_topic_that_a_group_of_rocketmq_decides_on(
    tmp_path: Path, serve_over: Callable[..., Served]
) -> None:
    lake = MadeLake(tmp_path, [])
    time = int(lake.end.timestamp() * 1000)
    of = {"cluster": CLUSTER, "group_id": "g", "decision": 7, "round": 1, "round_time": time, "record_time": time,
          "event_date": time // 86_400_000, "drifted_partitions": [], "drifted_count": 0}  # fmt: skip
    for topic, verdict in (("billing", "identical"), ("orders", "unverified"), ("%RETRY%g", "identical")):
        queues = [{"topic": topic, "broker": broker, "queue": 0} for broker in ("b1", "b2")]
        inputs = pack_line({"strategy": "rocketmq:AVG", "queues": queues, "clients": ["c1", "c2"]})
        lake.add("drift", of | {"topic": topic, "verdict": verdict, "inputs": inputs})
    served = serve_over(tmp_path, lake)
    target = f"{PREFIX}/explain?group=g"
    worst = explained(served, target).json()
    assert [one["explanation"]["topic"] for one in (worst, *worst["other_topics"])] == ["orders", "billing", "%RETRY%g"]
    for line in (worst, *worst["other_topics"]):
        assert [len(queues) for queues in assign_line(line)["assignment"].values()] == [1, 1]
    one = served.get(f"{target}&partition=billing/0").json()
    assert (one["explanation"]["topic"], "other_topics" in one) == ("billing", False)
    assert one["explanation"]["sentences"][2:] == ["c1 should own billing@b1 0.", "c2 should own billing@b2 0."]
    assert served.get(f"{target}&partition=billing/1").status == 404
    assert served.get(f"{target}&partition=bills/0").status == 404


# Any path and any parameters: no failure of the server, and no answer that takes long.


# A thousand times what such an answer takes: only what hangs is slow.
_LONG_S = 20

NAMES = ("cluster", "group", "topic", "status", "verdict", "since", "limit", "cursor", "mode", "nonsense")

PATHS = st.one_of(
    st.sampled_from([f"{PREFIX}/{listing.name}" for listing in LISTINGS]),
    st.sampled_from(["/", "/metrics", "/metrics/kminion"]),
    TEXTS.map(lambda text: f"{PREFIX}/groups/{text}"),
    TEXTS.map(lambda text: f"/metrics/{text}"),
    st.tuples(
        st.sampled_from(["consumer", "topic"]), TEXTS, st.sampled_from(["", "/status", "/lag", "/consumers"])
    ).map(lambda parts: f"/v3/kafka/{CLUSTER}/{parts[0]}/{parts[1]}{parts[2]}"),
    TEXTS.map(lambda text: f"/v3/kafka/{text}/consumer"),
    TEXTS.map(lambda text: f"/{text}"),
)


@given(path=PATHS, parameters=st.lists(st.tuples(st.one_of(st.sampled_from(NAMES), TEXTS), TEXTS), max_size=4))
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_request_fails_the_server(served: Served, path: str, parameters: list[tuple[str, str]]) -> None:
    began = time.monotonic()
    answer = served.get(f"{path}?{'&'.join(f'{name}={value}' for name, value in parameters)}")
    assert answer.status < 500
    assert time.monotonic() - began < _LONG_S


WRITES = {"authorization": "Bearer w-secret", "content-type": "application/json"}


@pytest.fixture
def noted(tmp_path: Path, serve_over: Callable[..., Served]) -> Served:
    lake = MadeLake(tmp_path, [MadeGroup("billing")], rounds=130)
    return serve_over(tmp_path, lake, marks_token="w-secret", token="r-secret")


@pytest.fixture(scope="module")
def unwritten(tmp_path_factory: pytest.TempPathFactory, serve_over: Callable[..., Served]) -> Served:
    """For the tests that write nothing, and see that it is so."""
    root = tmp_path_factory.mktemp("unwritten")
    return serve_over(
        root, MadeLake(root, [MadeGroup("billing")], rounds=130), marks_token="w-secret", token="r-secret"
    )


def _post(noted: Served, body: Any, **headers: str) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return noted.get(MARKS, method="POST", headers=WRITES | headers, body=data)


@pytest.mark.turn(6)
def test_a_mark_is_in_the_table_in_the_list_and_on_the_boards(noted: Served, tmp_path: Path) -> None:
    answer = _post(noted, {"text": f"deploy {HOSTILE[0]}", "group": "billing", "id": "build-17"})
    assert answer.status == 201
    assert answer.json()["cluster"] == CLUSTER
    assert _post(noted, {"text": f"deploy {HOSTILE[0]}", "group": "billing", "id": "build-17"}).status == 201
    (row,) = LakeReader(tmp_path).rows("SELECT * FROM marks_current")
    assert (row["mark_id"], row["text"], row["made_by"]) == ("build-17", f"deploy {HOSTILE[0]}", "api")
    noted.poll()
    reads = {"authorization": "Bearer r-secret"}
    (listed,) = noted.get(f"{PREFIX}/marks", headers=reads).json()["items"]
    assert (listed["mark_id"], listed["group_id"]) == ("build-17", "billing")
    for path in ("/groups/billing", "/rebalances", "/alerts"):
        page = noted.get(path, headers=reads).text
        assert f'data-at="{int(row["mark_time"].timestamp())}"' in page
        assert HOSTILE[0] not in page


@pytest.mark.turn(6)
def test_mutes_are_listed_until_they_are_over_for_the_last_time(noted: Served, tmp_path: Path) -> None:
    now, hour, day = epoch_ms(datetime.now(UTC)), 3_600_000, 86_400_000
    begins = {"over": (-2 * hour, None), "old": (-367 * day, day), "daily": (-365 * day, day), "later": (hour, None)}
    for name, (begin, repeat) in begins.items():
        since = now + begin
        made = Mute(name, CLUSTER, GROUP, "billing", "a test", "ann", since, since + hour, repeat)
        write_note(str(tmp_path), made, now)
    noted.poll()
    listed = noted.get(f"{PREFIX}/mutes", headers={"authorization": "Bearer r-secret"}).json()["items"]
    assert [row["mute_id"] for row in listed] == ["daily", "later"]


@pytest.mark.turn(6)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer r-secret"}, 401),
        ({"host": "elsewhere.example.org"}, 421),
    ],
)
def test_who_has_no_token_for_marks_writes_nothing(unwritten: Served, headers: dict[str, str], status: int) -> None:
    assert _post(unwritten, {"text": "deploy"}, **headers).status == status
    assert LakeReader(unwritten.lake.lake.root).count("marks") == 0


@pytest.mark.turn(6)
def test_the_token_for_marks_reads_nothing(unwritten: Served) -> None:
    assert unwritten.get("/", headers=WRITES).status == 401
    assert unwritten.get(f"{PREFIX}/marks", headers=WRITES).status == 401


@pytest.mark.turn(6)
def test_a_server_without_that_token_takes_no_marks(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    noted = serve_over(tmp_path, MadeLake(tmp_path, [MadeGroup("billing")], rounds=2), polled=False)
    answer = _post(noted, {"text": "deploy"})
    assert (answer.status, "EVENKEEL_SERVE__MARKS_TOKEN" in answer.json()["detail"]) == (403, True)
    assert noted.get("/health", method="POST").status == 405


@pytest.mark.turn(6)
@pytest.mark.parametrize(
    "body",
    ends([
        b"", b"{", b"[]", b"{}", b'{"text": ""}', b'{"text": "a", "more": 1}', b"[" * 8_000,
        {"text": "x" * 201}, {"text": " "}, {"text": "a", "cluster": "other"}, {"text": "a", "id": "../x"},
        {"text": "a", "time": "yesterday"}, {"text": "a", "time": "2026-11-25T00:00:00"},
        {"text": "a", "time": (datetime.now(UTC) - timedelta(days=400)).isoformat()},
        {"text": "a", "time": (datetime.now(UTC) + timedelta(hours=1)).isoformat()},
    ]),
)  # fmt: skip
def test_what_is_no_mark_is_a_problem_and_writes_nothing(unwritten: Served, body: Any) -> None:
    answer = _post(unwritten, body)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert LakeReader(unwritten.lake.lake.root).count("marks") == 0
