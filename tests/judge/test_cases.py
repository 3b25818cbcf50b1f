"""Real faults of groups in the world, as they were reported: each file names its source and what is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assignors.jsonl import assign_line
from streaming.judge import judge_line

CASES: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(Path(__file__).parent.glob("data/*.json"))
}


def judged(case: str) -> dict[str, Any]:
    rows = judge_line(CASES[case]["judge"])
    assert rows["quarantine"] == []
    assert all(row["undecodable"] is None for row in rows["members"])
    return rows


def verdicts(case: str) -> list[str]:
    return [row["verdict"] for row in judged(case)["drift"]]


def test_the_first_join_of_franz_go_is_never_drifted() -> None:
    (verdict,) = verdicts("franz-go-first-join")
    assert verdict in {"unverified", "identical"}


def test_two_owners_of_each_partition_are_drift_whatever_version_kafka_go_claims() -> None:
    rows = judged("kafka-go-two-owners")
    first, second = rows["drift"]
    assert first["verdict"] != "drifted"
    assert (second["generation"], second["verdict"]) == (2, "drifted")
    assert {one["kind"] for one in second["drifted_partitions"]} == {"doubly_assigned"}
    assert [one["partition"] for one in second["drifted_partitions"]] == [0, 1, 2, 3, 4]


def test_the_basis_of_drift_with_two_owners_is_an_invariant() -> None:
    assert judged("kafka-go-two-owners")["drift"][1]["basis"] == "invariant"


def test_the_partitions_of_kafka_go_are_counted_and_none_moves_from_an_owner_that_keeps_it() -> None:
    churn = judged("kafka-go-two-owners")["rebalance_churn"]
    assert [row["partitions"] for row in churn] == [5, 5]
    assert [row["partitions_moved"] for row in churn] == [0, 0]


def test_the_group_metadata_of_redpanda_is_read() -> None:
    rows = judged("redpanda-group-metadata")
    assert verdicts("redpanda-group-metadata") == ["identical"]
    (member,) = rows["members"]
    assert (member["member_id"], member["client_id"]) == ("m-1", "rdkafka")
    assert member["partitions"] == [{"topic": "t", "partitions": [0, 1, 2], "broker": None}]


@pytest.mark.parametrize("case", ["sarama-empty-user-data", "sarama-empty-user-data-v0"])
def test_the_round_robin_of_sarama_is_recognised_with_empty_user_data(case: str) -> None:
    assert verdicts(case) == ["identical"]


def test_the_round_robin_of_librdkafka_1_5_2_goes_round_the_subscribers_and_counts_all_members() -> None:
    case = CASES["librdkafka-1.5.2-roundrobin"]
    assert assign_line(case["assign"]) == case["right"]


def test_every_case_has_a_test() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in CASES if f'"{name}"' not in text] == []
