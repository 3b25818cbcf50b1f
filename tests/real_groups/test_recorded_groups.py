"""Records of real groups of other clients and of a share group, as the long tests met them, judged again.

`data/` has the membership records of groups on Kafka 4.3.1 with the releases of real_clients.py, recorded by the long
test (test_real_groups_soak.py) on 28 November 2026: members come and go, are killed and deployed together, and have
different subscriptions. The share group is of 29 November (test_real_share_groups.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real_groups.promises import broken
from tests.real_groups.real_classic_streams import tasks_in
from tests.real_groups.recorded import judged_lines, records_of

_DATA = Path(__file__).with_name("data")
RECORDED = sorted(path.stem for path in _DATA.glob("*.jsonl"))


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
