"""A verdict's row in words: and what is different."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from assignors import Group, Library, Subscription
from assignors.jsonl import assign_line
from streaming.exceptions import SetupError
from streaming.explain import (
    NoSuchPartitionError,
    PartitionError,
    print_explanation,
    read_partition,
    verdict_in_words,
    verdicts_in_words,
)
from streaming.groups.verdict_inputs import ClientInputs, pack_inputs, pack_line
from streaming.tables import DeltaLake, table_named
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake
from tests.empty_lake import empty_lake

MEMBERS = (Subscription("a", ("orders",)), Subscription("b", ("orders",)))
GROUP = Group(MEMBERS, {"orders": 5})
JAVA = Library("java", (3, 7, 1))
RANGE = "range deals each topic by itself, as evenly as it can; the first subscribers get what is left over."


def row(
    verdict: str, inputs: ClientInputs | None, drifted: Sequence[Mapping[str, Any]] = (), reason: str | None = None
) -> dict[str, Any]:
    return {
        "cluster": "c", "group_id": "g", "topic": None, "decision": 7, "generation": 3, "verdict": verdict,
        "basis": "declared" if verdict == "drifted" else None, "own_verdict": verdict, "nearest_library": None,
        "nearest_differing": None, "reason": reason,
        "matching_library": "java:3.7.1" if verdict == "identical" else None,
        "drifted_count": len(drifted), "drifted_partitions": drifted,
        "inputs": None if inputs is None else pack_inputs(inputs),
    }  # fmt: skip


def drifted(partition: int, expected: str | None, actual: list[str], kind: str = "misplaced") -> dict[str, Any]:
    return {"topic": "orders", "partition": partition, "kind": kind, "expected": expected, "actual": actual}


def test_an_identical_verdict_is_told_with_what_each_member_gets() -> None:
    told = verdict_in_words(row("identical", ClientInputs("range", GROUP, JAVA)))
    assert told.sentences == (
        "The verdict is identical: recomputed as java:3.7.1, the assignment is what its strategy gives.",
        RANGE,
        "a gets orders 0-2.",
        "b gets orders 3-4.",
        "In all 5 partitions for 2 members, 2 to 3 each.",
    )
    assert told.drift == ()


def test_one_partition_is_told_alone() -> None:
    told = verdict_in_words(row("identical", ClientInputs("range", GROUP, JAVA)), ("orders", 3))
    assert told.sentences[2:] == ("b should own orders 3.",)


def test_drift_names_the_owners_that_differ_and_the_library_that_comes_nearest() -> None:
    wrong = row(
        "drifted", ClientInputs("range", GROUP, JAVA), [drifted(0, "a", ["b"])], "none of 4 candidates gives this"
    )
    told = verdict_in_words(wrong | {"nearest_library": "java:0.9", "nearest_differing": 1})
    assert told.sentences[0] == (
        "The verdict is drifted, in 1 partition: none of 4 candidates gives this. It is declared who decides, and how. "
        "java:0.9 comes nearest: it differs in 1 partition."
    )
    assert told.drift == ("orders 0 was given to b; a should own it.",)


TWICE = drifted(0, None, ["a", "b"], "doubly_assigned")
RESTS_ON: dict[str, tuple[dict[str, Any], str]] = {
    "a violated invariant needs no strategy": (row("drifted", None, [TWICE]), "No strategy had to be asked"),
    "a strategy of one's own is asked only where it is configured": (
        row("identical", ClientInputs("pinned", GROUP, Library("custom"))),
        "a strategy of your own",
    ),
    "an unverified deal of Connect says what would be wrong": (
        row("unverified", None) | {"strategy": "sessioned"},
        "Nothing here is known to be wrong: a connector or task on two",
    ),
    "a recomputed eager deal of Connect says where its inputs come from": (
        row("identical", None) | {"strategy": "default", "matching_library": "connect"},
        "Connect's eager leader deals every",
    ),
    "so does one with a memory": (
        row("identical", None) | {"strategy": "sessioned", "matching_library": "connect"},
        "and its memory, which no",
    ),
}


@pytest.mark.parametrize("case", RESTS_ON)
def test_the_second_sentence_says_what_a_verdict_rests_on(case: str) -> None:
    found, text = RESTS_ON[case]
    assert text in verdict_in_words(found).sentences[1]


def test_json_is_a_line_of_assign_that_gives_the_assignment_again() -> None:
    found = row("identical", ClientInputs("range", GROUP, JAVA))
    line = json.loads(json.dumps(verdict_in_words(found).json(found)))
    given = {"a": [["orders", n] for n in (0, 1, 2)], "b": [["orders", n] for n in (3, 4)]}
    assert assign_line(line) == {"assignment": given}
    assert line["explanation"]["sentences"][1] == RANGE


def queues(topic: str, **more: Any) -> dict[str, Any]:
    """RocketMQ's verdict on a topic: queues 0 and 1 on each of two brokers, dealt to two clients."""
    listed = [{"topic": topic, "broker": broker, "queue": n} for broker in ("broker-a", "broker-b") for n in (0, 1)]
    line = {"strategy": "rocketmq:AVG", "queues": listed, "clients": ["c1", "c2"]}
    return row("identical", None) | {"topic": topic, "generation": None, "inputs": pack_line(line)} | more


def told_of(rows: Sequence[Mapping[str, Any]], typed: str) -> list[tuple[Any, tuple[str, ...]]]:
    """By topic the sentences on a partition, without the verdict and the rule."""
    return [(row["topic"], told.sentences[2:]) for row, told in verdicts_in_words(rows, read_partition(typed))]


def test_a_partition_that_the_verdict_does_not_have_is_named_with_those_that_it_has() -> None:
    found = [row("identical", ClientInputs("range", GROUP, JAVA))]
    for topic, number in (("ordres", 3), ("orders", 5)):
        has = f"^This verdict has no partition {topic} {number}: it has orders 0-4.$"
        with pytest.raises(NoSuchPartitionError, match=has):
            verdicts_in_words(found, (topic, number))
        assert not any("nobody" in sentence for sentence in verdict_in_words(found[0], (topic, number)).sentences)


def test_a_drifted_partition_is_told_also_where_no_strategy_was_given_it() -> None:
    given = [drifted(9, None, ["b"])]
    found = [row("drifted", ClientInputs("range", GROUP, JAVA), given, "none of 4 candidates gives this")]
    ((_, told),) = verdicts_in_words(found, ("orders", 9))
    assert told.drift[0] == "orders 9 was given to b and should have no owner."
    assert told.sentences[-1] == "There is no partition orders 9 in what the strategy was given."


def test_nothing_is_said_of_a_partition_where_what_the_strategy_was_given_is_not_known() -> None:
    ((_, told),) = verdicts_in_words([row("unverified", None, reason="it is too large")], ("ordres", 3))
    assert len(told.sentences) == 2
    assert not any("ordres" in sentence for sentence in told.sentences)


def test_a_queue_is_told_by_the_verdict_on_its_topic_once_for_each_broker() -> None:
    found = [queues("orders"), queues("payments")]
    for topic in ("orders", "payments"):
        ((of, sentences),) = told_of(found, f"{topic}/1")
        assert of == topic
        assert sentences == (f"c1 should own {topic}@broker-a 1.", f"c2 should own {topic}@broker-b 1.")
        assert told_of(found, f"{topic}@broker-b/1") == [(topic, sentences[1:])]


def test_a_queue_of_no_topic_of_the_group_or_beyond_its_topic_is_not_there() -> None:
    found = [queues("orders"), queues("payments")]
    for typed, why in (
        ("order/0", "order 0: its topics are orders, payments."),
        ("payments/2", "payments 2: it has payments@broker-a 0-1; payments@broker-b 0-1."),
        ("payments@broker-c/0", "payments@broker-c 0: it has payments@broker-a 0-1; "),
    ):
        with pytest.raises(NoSuchPartitionError, match=f"^This verdict has no partition {why}"):
            verdicts_in_words(found, read_partition(typed))


def test_a_drifted_queue_is_found_by_each_of_its_names() -> None:
    wrong = [drifted(1, "c2", ["c1"]) | {"broker": broker} for broker in ("broker-a", "broker-b")]
    more = {"verdict": "drifted", "reason": "r", "drifted_count": 2, "drifted_partitions": wrong}
    said = [f"orders@{broker} 1 was given to c1; c2 should own it." for broker in ("broker-a", "broker-b")]
    for typed, expected in (("orders/1", said), ("orders@broker-b/1", said[1:]), ("orders@broker-a/1", said[:1])):
        ((_, told),) = verdicts_in_words([queues("orders", **more)], read_partition(typed))
        assert list(told.drift) == expected


def test_a_topic_that_the_group_has_left_is_not_told() -> None:
    found = [queues("orders", decision=8), queues("payments", decision=7)]
    assert [row["topic"] for row, _ in verdicts_in_words(found)] == ["orders"]


def test_a_partition_is_a_topic_a_slash_and_a_number() -> None:
    assert read_partition("orders/3") == ("orders", 3)
    for wrong in ("orders", "orders/", "/3", "orders/x", "orders/-1", "orders/" + "9" * 11):
        with pytest.raises(PartitionError, match="TOPIC/NUMBER"):
            read_partition(wrong)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("explain") / "lake"
    groups = [MadeGroup("billing"), MadeGroup("pile-up", verdict="drifted", all_on_first=True, drifted_since=1)]
    MadeLake(root, groups, rounds=125)
    return str(root)


def printed(lake: str, *arguments: Any, **options: Any) -> str:
    out = io.StringIO()
    print_explanation(lake, Console(file=out, width=200), *arguments, **options)
    return out.getvalue()


def test_the_command_tells_the_newest_verdict_of_a_lake(lake: str) -> None:
    said = printed(lake, "billing")
    assert said.startswith(f"billing ({CLUSTER}), generation ")
    assert "In all 6 partitions for 2 members, 3 each." in said
    line = json.loads(printed(lake, "billing", as_json=True))
    assert "assignment" in assign_line(line)


def test_what_is_not_there_is_said_in_one_sentence(lake: str) -> None:
    with pytest.raises(
        SetupError, match=r"has no group nobody: look the name up on the page \(`evenkeel serve`\), or "
    ):
        printed(lake, "nobody")
    with pytest.raises(SetupError, match="no verdict on generation 99999 of billing"):
        printed(lake, "billing", 99_999)


def test_a_partition_that_is_not_there_ends_the_command_as_a_group_that_is_not_there(lake: str) -> None:
    assert "should own orders 3." in printed(lake, "billing", partition=("orders", 3))
    for partition in (("ordres", 3), ("orders", 6)):
        for as_json in (False, True):
            with pytest.raises(SetupError, match=f"has no partition {partition[0]} {partition[1]}: it has orders 0-5."):
                printed(lake, "billing", partition=partition, as_json=as_json)


TIME_MS = 1_800_000_000_000


def append(lake: DeltaLake, table: str, *rows: Mapping[str, Any]) -> None:
    known = {"cluster": "c", "group_id": "g", "round": 1, "round_time": TIME_MS, "record_time": TIME_MS,
             "event_date": TIME_MS // 86_400_000}  # fmt: skip
    columns = [column.name for column in table_named(table).columns]
    lake.append(table, [[(known | row).get(name) for name in columns] for row in rows], "job", 0)


def test_a_group_of_rocketmq_is_told_topic_by_topic_and_a_queue_by_its_own(tmp_path: Path) -> None:
    lake = empty_lake(tmp_path)
    append(lake, "drift", queues("orders"), queues("payments"))
    everything = printed(str(tmp_path), "g")
    assert [everything.count(f"topic {topic}, decision 7") for topic in ("orders", "payments")] == [1, 1]
    one = printed(str(tmp_path), "g", partition=("payments", 1))
    assert "topic orders" not in one
    assert one.count("should own") == 2
    assert "c2 should own payments@broker-b 1." in one
    line = json.loads(printed(str(tmp_path), "g", partition=("payments", 1), as_json=True))
    assert line["explanation"]["topic"] == "payments"


@pytest.mark.parametrize(
    ("generation", "named"), [(None, "A newer decision, number 6,"), (4, "A newer decision, generation 4, number 6,")]
)
def test_a_newer_decision_is_named_by_its_own_generation_or_by_none(
    tmp_path: Path, generation: int | None, named: str
) -> None:
    lake = empty_lake(tmp_path)
    append(lake, "drift", row("unverified", None) | {"decision": 5})
    decided = [{"decision": 5, "generation": 3}, {"decision": 6, "generation": generation}]
    append(lake, "rebalance_churn", *(one | {"kind": "rebalance", "revision": 1} for one in decided))
    assert printed(str(tmp_path), "g").endswith(f"  {named} has no verdict yet.\n")


def test_a_decision_without_a_time_is_of_an_unknown_one(tmp_path: Path) -> None:
    lake = empty_lake(tmp_path)
    append(lake, "drift", row("unverified", None) | {"record_time": None})
    assert printed(str(tmp_path), "g").startswith("g (c), generation 3, decision 7 of an unknown time\n")


@pytest.mark.parametrize(
    ("protocol", "place", "named", "counted"),
    [
        ("streams", ("0", 2), "0_2 was given to several members at once: a, b.", "in 1 task"),
        ("connect", ("files", 0), "files-0 was given to several members at once: a, b.", "in 1 task"),
        ("connect", ("files", -1), "connector files was given to several members at once: a, b.", "in 1 task"),
        ("share", ("orders", 3), "orders 3 was given to several members at once: a, b.", "in 1 partition"),
    ],
)
def test_what_drifted_is_called_as_its_own_system_calls_it(
    protocol: str, place: tuple[str, int], named: str, counted: str
) -> None:
    topic, number = place
    one = {"topic": topic, "partition": number, "kind": "doubly_assigned", "expected": None, "actual": ["a", "b"]}
    more = {"basis": "invariant", "drifted_count": 1, "drifted_partitions": [one], "protocol_type": protocol}
    told = verdict_in_words(row("drifted", None, reason="why") | more)
    assert told.drift == (named,)
    assert counted in told.sentences[0]


def test_the_protocol_is_that_of_the_decision(tmp_path: Path) -> None:
    lake = empty_lake(tmp_path)
    append(lake, "drift", row("drifted", None) | {"decision": 5, "drifted_count": 1})
    decided = {"decision": 5, "kind": "rebalance", "revision": 1, "protocol_type": "streams"}
    append(lake, "rebalance_churn", decided)
    assert "The verdict is drifted, in 1 task:" in printed(str(tmp_path), "g")
