"""Records of real groups of other clients and of a share group, as the long tests met them, judged again.

`data/` has the membership records of groups on Kafka 4.3.1 with the releases of real_clients.py, recorded by the long
test (test_real_groups_soak.py) on 28 November 2026: members come and go, are killed and deployed together, and have
different subscriptions. The share group is of 29 November (test_real_share_groups.py), as is the streams group, the
beginning of one of test_real_streams_groups.py: instances with one to three threads come and go, and all of its 294
decisions with members were identical.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.groups.verdicts import recompute_all
from tests.real_groups.promises import broken
from tests.real_groups.real_classic_streams import tasks_in
from tests.real_groups.recorded import judged_lines, records_of

_DATA = Path(__file__).with_name("data")
RECORDED = sorted(path.stem for path in _DATA.glob("*.jsonl") if not path.stem.startswith(("connect-", "streams-")))


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]


def test_a_group_of_each_client_is_recorded() -> None:
    clients = {name.rpartition("-")[0] for name in RECORDED}
    assert clients == {"franz-go", "kafka-streams", "kafkajs", "sarama", "share"}


@pytest.mark.parametrize("name", RECORDED)
def test_no_decision_of_a_real_group_of_another_client_is_drifted(name: str) -> None:
    rows = judged_lines(_lines(name))
    assert len(rows.drift) > 8
    assert {row.verdict for row in rows.drift} <= {"identical", "unverified", "not_applicable"}
    assert not rows.quarantine


def test_saramas_roundrobin_is_recomputed_whatever_user_data_its_members_are_configured_to_send() -> None:
    verdicts = [row for row in judged_lines(_lines("sarama-roundrobin")).drift if row.verdict != "not_applicable"]
    assert {(row.verdict, (row.matching_library or "").partition(":")[0]) for row in verdicts} == {
        ("identical", "sarama")
    }


def test_each_target_of_a_real_share_group_is_recomputed_from_its_log() -> None:
    rows = judged_lines(_lines("share-simple")).drift

    assert [row.verdict for row in rows if row.reason != "the group is empty"] == ["identical"] * 14
    assert {row.matching_library for row in rows} <= {"broker:4.2.0", None}


def test_decisions_of_real_connect_workers_are_recomputed() -> None:
    """Two and three workers of 4.3.1, recorded by test_real_connect.py on 29 November 2026."""
    rows = judged_lines(_lines("connect-workers"))
    assert {(row.verdict, row.strategy) for row in rows.drift if row.strategy} == {("identical", "sessioned")}
    assert not rows.quarantine
    assert any(row.partitions_pending_handover and row.left for row in rows.rebalance_churn), "a worker crashed"
    assert sum(row.partitions_moved or 0 for row in rows.rebalance_churn) > 0
    newest = rows.rebalance_churn[-1].decision
    runs = {
        (row.client_host, of.topic.rpartition("-")[2], n)
        for row in rows.members
        if row.decision == newest
        for of in row.partitions or ()
        for n in of.partitions
    }
    assert Counter(connector for _, connector, _ in runs) == {"second": 2, "sink": 7}
    assert len({(connector, number) for _, connector, number in runs}) == len(runs)


@pytest.mark.parametrize("name", RECORDED)
def test_no_real_leader_breaks_what_its_strategy_promises(name: str) -> None:
    assert not [record.generation for record, counts in records_of(_lines(name)) if broken(record, counts)]


def test_threads_of_kafka_streams_have_the_tasks_that_their_records_say() -> None:
    lines = _lines("kafka-streams-classic")
    newest = {id(line): record for line in lines for record, _ in records_of([line])}
    said = [{client: tuple(tasks) for client, tasks in line["tasks"].items()} for line in lines]

    assert [tasks_in(newest[id(line)]) for line in lines] == said
    assert len(said) == 5


def test_of_kafka_streams_each_decision_that_is_not_recomputed_says_why() -> None:
    rows = judged_lines(_lines("kafka-streams-classic"))
    told = [row for row in rows.drift if row.verdict != "not_applicable"]

    assert {row.reason for row in told} == {
        "Kafka Streams places tasks by the lag of each copy of their state at that moment, which no record has"
    }
    # The last three members had 3, 3 and 2 of 8 tasks.
    newest = rows.group_health[-1]
    assert newest.imbalance == newest.imbalance_optimal == 3 / (8 / 3) - 1


def test_each_target_of_a_real_streams_group_is_what_its_assignor_gives() -> None:
    rows = judged_lines(_lines("streams-sticky"))
    assert [(row.verdict, row.reason, row.matching_library) for row in rows.drift] == [
        ("identical", None, "broker:4.2.0")
    ] * len(rows.drift)
    assert len(rows.drift) == 12
    assert recompute_all(rows) == {"identical": 12}


def test_an_active_task_that_is_put_into_a_second_target_of_a_real_streams_group_is_drift() -> None:
    lines = _lines("streams-sticky")
    targets = [
        record for line in lines for record in line["records"] if record["key"].startswith("0015") and record["value"]
    ]
    first, second = targets[0], targets[1]
    second["value"] = first["value"]  # what one member alone was given
    drifted = [row for row in judged_lines(lines).drift if row.verdict == "drifted"]
    assert drifted
    assert {(row.basis, one.kind) for row in drifted for one in row.drifted_partitions} == {
        ("invariant", "doubly_assigned")
    }
