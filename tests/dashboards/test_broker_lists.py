"""The members by broker on the board of a RocketMQ group."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dashboards.boards.parts.broker_lists import broker_lists
from dashboards.format import DASH, Clock

NOW = datetime(2026, 11, 25, 10, 40, tzinfo=UTC)


def told(**more: Any) -> dict[str, Any]:
    row = {
        "broker": "broker-a", "broker_id": 0, "address": "10.0.0.1:10911", "answer": "ok", "reason": None,
        "connections": 3, "missing": [], "duplicated": [], "broker_version": "V5_5_0", "consume_enabled": True,
        "clients": [{"client_id": "c-1", "address": "10.0.0.9:5", "language": "JAVA", "version": None}],
        "consume_type": "push", "message_model": "CLUSTERING", "consume_from": None, "subscription": ["orders"],
        "round_time": NOW, **more,
    }  # fmt: skip
    [found] = broker_lists([row], Clock(NOW))
    return found


def test_a_sound_list_names_nobody() -> None:
    row = told()
    assert (row["known"], row["connections"], row["missing"], row["duplicated"]) == (True, 3, "", "")
    assert (row["release"], row["clients"]) == ("5.5.0", "c-1 10.0.0.9:5 JAVA")


def test_the_last_heartbeat_says_how_the_group_consumes_and_a_stopped_group_is_named() -> None:
    assert (told()["told"], told()["stopped"]) == ("push, CLUSTERING; orders", False)
    assert told(consume_type=None, message_model=None, subscription=None, consume_enabled=False)["told"] == ""
    assert told(consume_enabled=False)["stopped"]


def test_who_is_missing_or_listed_twice_is_named() -> None:
    row = told(missing=["c-1", "c-2"], duplicated=["c-3"])
    assert (row["missing"], row["duplicated"]) == ("c-1, c-2", "c-3")
    assert told(missing=[f"c-{n}" for n in range(25)])["missing"].endswith("c-19 and 5 more")


def test_a_broker_that_does_not_answer_has_no_number_of_connections() -> None:
    row = told(
        answer="not_asked",
        reason="no answer within 3 s",
        connections=None,
        missing=None,
        clients=None,
        broker_version=None,
    )
    assert (row["known"], row["answer"], row["reason"]) == (False, "not asked", "no answer within 3 s")
    assert (row["missing"], row["release"]) == ("", DASH)
