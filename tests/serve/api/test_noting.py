"""Marks by the API: the only request that writes, and only with a token of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streaming.notes import GROUP, Mute, write_note
from streaming.serve.api import MARKS, PREFIX
from streaming.tables import LakeReader
from streaming.times import epoch_ms
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake
from tests.serve.client import Answer
from tests.serve.conftest import Served

pytestmark = pytest.mark.turn(6)

WRITES = {"authorization": "Bearer w-secret", "content-type": "application/json"}


@pytest.fixture
def served(tmp_path: Path, serve_over: Callable[..., Served]) -> Served:
    lake = MadeLake(tmp_path, [MadeGroup("billing")], rounds=130)
    served = serve_over(tmp_path, lake, marks_token="w-secret", token="r-secret")
    served.poll()
    return served


@pytest.fixture(scope="module")
def unwritten(tmp_path_factory: pytest.TempPathFactory, serve_over: Callable[..., Served]) -> Served:
    """For the tests that write nothing, and see that it is so."""
    root = tmp_path_factory.mktemp("unwritten")
    served = serve_over(
        root, MadeLake(root, [MadeGroup("billing")], rounds=130), marks_token="w-secret", token="r-secret"
    )
    served.poll()
    return served


def _post(served: Served, body: Any, **headers: str) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return served.get(MARKS, method="POST", headers=WRITES | headers, body=data)


def test_a_mark_is_in_the_table_in_the_list_and_on_the_boards(served: Served, tmp_path: Path) -> None:
    answer = _post(served, {"text": f"deploy {HOSTILE[0]}", "group": "billing", "id": "build-17"})
    assert answer.status == 201
    assert answer.json()["cluster"] == CLUSTER
    assert _post(served, {"text": f"deploy {HOSTILE[0]}", "group": "billing", "id": "build-17"}).status == 201
    (row,) = LakeReader(tmp_path).rows("SELECT * FROM marks_current")
    assert (row["mark_id"], row["text"], row["made_by"]) == ("build-17", f"deploy {HOSTILE[0]}", "api")
    served.poll()
    reads = {"authorization": "Bearer r-secret"}
    (listed,) = served.get(f"{PREFIX}/marks", headers=reads).json()["items"]
    assert (listed["mark_id"], listed["group_id"]) == ("build-17", "billing")
    for path in ("/groups/billing", "/rebalances", "/alerts"):
        page = served.get(path, headers=reads).text
        assert f'data-at="{int(row["mark_time"].timestamp())}"' in page
        assert HOSTILE[0] not in page


def test_mutes_are_listed_until_they_are_over_for_the_last_time(served: Served, tmp_path: Path) -> None:
    now, hour, day = epoch_ms(datetime.now(UTC)), 3_600_000, 86_400_000
    begins = {"over": (-2 * hour, None), "old": (-367 * day, day), "daily": (-365 * day, day), "later": (hour, None)}
    for name, (begin, repeat) in begins.items():
        since = now + begin
        made = Mute(name, CLUSTER, GROUP, "billing", "a test", "ann", since, since + hour, repeat)
        write_note(str(tmp_path), made, now)
    served.poll()
    listed = served.get(f"{PREFIX}/mutes", headers={"authorization": "Bearer r-secret"}).json()["items"]
    assert [row["mute_id"] for row in listed] == ["daily", "later"]


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


def test_the_token_for_marks_reads_nothing(unwritten: Served) -> None:
    assert unwritten.get("/", headers=WRITES).status == 401
    assert unwritten.get(f"{PREFIX}/marks", headers=WRITES).status == 401


def test_a_server_without_that_token_takes_no_marks(tmp_path: Path, serve_over: Callable[..., Served]) -> None:
    served = serve_over(tmp_path, MadeLake(tmp_path, [MadeGroup("billing")], rounds=2))
    answer = _post(served, {"text": "deploy"})
    assert (answer.status, "EVENKEEL_SERVE__MARKS_TOKEN" in answer.json()["detail"]) == (403, True)
    assert served.get("/health", method="POST").status == 405


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"{}", b'{"text": ""}', b'{"text": "a", "more": 1}', b"[" * 8_000,
        {"text": "x" * 201}, {"text": " "}, {"text": "a", "cluster": "other"}, {"text": "a", "id": "../x"},
        {"text": "a", "time": "yesterday"}, {"text": "a", "time": "2026-11-25T00:00:00"},
        {"text": "a", "time": (datetime.now(UTC) - timedelta(days=400)).isoformat()},
        {"text": "a", "time": (datetime.now(UTC) + timedelta(hours=1)).isoformat()},
    ],
)  # fmt: skip
def test_what_is_no_mark_is_a_problem_and_writes_nothing(unwritten: Served, body: Any) -> None:
    answer = _post(unwritten, body)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert LakeReader(unwritten.lake.lake.root).count("marks") == 0
