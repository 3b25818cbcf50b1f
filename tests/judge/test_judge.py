"""A line of `evenkeel judge`: records and topics in, rows of the core out."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.jsonl import assign_line
from streaming.examples import EXAMPLES
from streaming.groups.rows import ChurnRow, DriftRow, LagRow, MemberRow, QuarantineRow
from streaming.judge import judge_line
from tests.examples import examples
from tests.groups.build import SECOND, START, make_observation, make_topic, rows_in_batches
from tests.groups.modern_log import FIRST, SECOND_MEMBER, TOPIC_ID, read
from tests.offsets_log.real_records import REAL
from tests.offsets_log.written import assignment, group_key, group_value, member, offset_key, offset_value, subscription

Pair = tuple[bytes | None, bytes | None]


def membership(generation: int, **assigned: list[int]) -> bytes:
    members = [
        member(3, member_id=name, subscription=subscription(3, ["t"]), assignment=assignment(0, [("t", partitions)]))
        for name, partitions in assigned.items()
    ]
    return group_value(3, members, generation=generation, protocol="range", leader=next(iter(assigned), None))


def line(*pairs: Pair, topics: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    records = [
        {"key": key and key.hex(), "value": None if value is None else value.hex(), "time": START + at * SECOND}
        for at, (key, value) in enumerate(pairs)
    ]
    return {"topics": {"t": 3} if topics is None else topics, "records": records, **more}


EVEN = group_key("g"), membership(1, a=[0, 1], b=[2])


def test_rows_have_every_column_of_their_tables_by_name() -> None:
    commit = offset_key("g", "t", 0), offset_value(3, 5)
    asked = line(EVEN, commit, (b"\x00", None), topics={"t": {"partitions": 3, "start": [0, 0, 0], "end": [7, 8, 9]}})
    rows = judge_line(asked)
    shapes = {
        "drift": DriftRow,
        "rebalance_churn": ChurnRow,
        "members": MemberRow,
        "lag": LagRow,
        "quarantine": QuarantineRow,
    }
    assert list(rows) == list(shapes)
    for table, shape in shapes.items():
        assert rows[table]
        assert all(list(row) == list(shape.__struct_fields__) for row in rows[table])
    assert json.loads(json.dumps(rows)) == rows


def test_a_decision_is_named_by_the_number_of_its_record() -> None:
    rows = judge_line(line((group_key("h"), None), EVEN))
    assert [(row["group_id"], row["decision"], row["verdict"]) for row in rows["drift"]] == [("g", 1, "identical")]
    assert [(row["member_id"], row["partition_count"]) for row in rows["members"]] == [("a", 2), ("b", 1)]


def test_the_example_in_the_help_has_a_verdict() -> None:
    asked = json.loads(shlex.split(EXAMPLES["judge"])[1])
    rows = judge_line(asked)
    assert [row["verdict"] for row in rows["drift"]] == ["identical"]
    assert rows["quarantine"] == []


def test_lag_is_of_topics_with_ends_alone() -> None:
    commits = [(offset_key("g", name, 0), offset_value(3, 5)) for name in ("t", "u")]
    asked = line(*commits, topics={"t": {"partitions": 1, "end": [7]}, "u": 1})
    assert [(row["topic"], row["lag"], row["committed_offset"]) for row in judge_line(asked)["lag"]] == [("t", 2, 5)]


def test_an_end_that_is_null_is_not_known() -> None:
    asked = line((offset_key("g", "t", 0), offset_value(3, 5)), topics={"t": {"partitions": 1, "end": [None]}})
    (row,) = judge_line(asked)["lag"]
    assert (row["lag"], row["lag_status"]) == (None, "unknown")


def test_the_round_is_ten_seconds_behind_the_newest_record_unless_its_time_is_given() -> None:
    assert [row["round_time"] for row in judge_line(line(EVEN))["drift"]] == [START + 10 * SECOND]
    assert [row["round_time"] for row in judge_line(line(EVEN, round_time=START + 5))["drift"]] == [START + 5]


def test_several_groups_of_a_line_are_judged_each_for_itself() -> None:
    other = group_key("h"), membership(7, c=[0, 1, 2])
    rows = judge_line(line(EVEN, other))["drift"]
    assert {(row["group_id"], row["generation"], row["verdict"]) for row in rows} == {
        ("g", 1, "identical"),
        ("h", 7, "identical"),
    }


def test_the_expected_strategy_is_that_of_the_first_pattern_that_fits() -> None:
    rules = [{"groups": "h", "strategy": "range"}, {"groups": "/^g/", "strategy": "sticky", "clients": ["java"]}]
    (row,) = judge_line(line(EVEN, strategies=rules))["drift"]
    assert (row["expected_strategy"], row["strategy_mismatch"]) == ("sticky", True)


def test_a_group_of_the_new_protocol_is_judged_by_topic_ids() -> None:
    topics = {"orders": {"partitions": 4, "id": TOPIC_ID}}
    rows = judge_line(line(*FIRST, *SECOND_MEMBER, topics=topics))
    life = rows_in_batches(
        [*read([*FIRST, *SECOND_MEMBER], 0, [12]), make_observation(99, make_topic("orders", 4, topic_id=TOPIC_ID))]
    )
    assert [(row["verdict"], row["matching_library"]) for row in rows["drift"]] == [
        (row.verdict, row.matching_library) for row in life.drift
    ]
    assert "identical" in {row["verdict"] for row in rows["drift"]}


def test_what_cannot_be_read_is_in_quarantine_with_its_bytes_in_hex() -> None:
    rows = judge_line(line((b"\x00\x02\x00\x01g", b"\x00\x03\x00"), (None, b"\x01")))
    assert [(row["record_offset"], row["key"], row["value"]) for row in rows["quarantine"]] == [
        (0, "0002000167", "000300"),
        (1, None, "01"),
    ]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"topics": {}}, "Object missing required field `records`"),
        (line((b"\x00", None), more=1), "Object contains unknown field `more`"),
        ({"topics": {}, "records": [{"key": "0g", "value": None, "time": 1}]}, "the key of records[0] is not hex"),
        (line(topics={"t": 0}), "Expected `int` >= 1 - at `$.topics[...]`"),
        (line(topics={"t": 100_001}), "Expected `int` <= 100000 - at `$.topics[...]`"),
        (line(topics={"t": 60_000, "u": 60_000}), "the topics have more than 100000 partitions"),
        (
            line(topics={"t": {"partitions": 2, "end": [1]}}),
            "topic 't' has 2 partitions, and end is of 1",
        ),
        (
            line(strategies=[{"groups": "/(/", "strategy": "range"}]),
            "the regular expression /(/ does not compile: missing ), unterminated subpattern at position 0",
        ),
    ],
)
def test_a_bad_line_gives_the_reason(wrong: dict[str, Any], reason: str) -> None:
    assert judge_line(wrong) == {"error": reason}


_bytes = st.binary(max_size=40).map(bytes.hex)
_real = st.sampled_from([(key.hex(), None if value is None else value.hex()) for key, value in REAL])
_records = st.lists(
    st.builds(
        lambda pair, time: {"key": pair[0], "value": pair[1], "time": time},
        _real | st.tuples(st.none() | _bytes, st.none() | _bytes),
        st.sampled_from([-(2**63), -1, 0, START, 2**63 - 1]),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=examples(60))
@given(_records, st.dictionaries(st.text(max_size=3), st.integers(1, 5), max_size=3))
def test_any_records_get_rows_that_can_be_written(records: list[dict[str, Any]], topics: dict[str, int]) -> None:
    assert "drift" in json.loads(json.dumps(judge_line({"topics": topics, "records": records})))


# Real faults of groups in the world, as they were reported: each file names its source and what is right.


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
    assert (second["generation"], second["verdict"], second["basis"]) == (2, "drifted", "invariant")
    assert {one["kind"] for one in second["drifted_partitions"]} == {"doubly_assigned"}
    assert [one["partition"] for one in second["drifted_partitions"]] == [0, 1, 2, 3, 4]
    # None moves from an owner that keeps it.
    assert [(row["partitions"], row["partitions_moved"]) for row in rows["rebalance_churn"]] == [(5, 0), (5, 0)]


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
