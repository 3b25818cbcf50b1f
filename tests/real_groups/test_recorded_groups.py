"""Records of real groups of other clients, as the long test met them (test_real_groups_soak.py), judged again.

`data/` has the membership records of groups on Kafka 4.3.1 with the releases of real_clients.py, recorded by the long
test on 28 November 2026: members come and go, are killed and deployed together, and have different subscriptions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real_groups.promises import broken
from tests.real_groups.recorded import judged_lines, records_of

_DATA = Path(__file__).with_name("data")
RECORDED = sorted(path.stem for path in _DATA.glob("*.jsonl"))


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]


def test_a_group_of_each_client_is_recorded() -> None:
    assert {name.rpartition("-")[0] for name in RECORDED} == {"franz-go", "kafkajs", "sarama"}


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


@pytest.mark.parametrize("name", RECORDED)
def test_no_real_leader_breaks_what_its_strategy_promises(name: str) -> None:
    assert not [record.generation for record, counts in records_of(_lines(name)) if broken(record, counts)]
