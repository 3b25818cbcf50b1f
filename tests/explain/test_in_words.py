"""A verdict's row in words: what is different, the nearest candidate, and where they part."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from rich.console import Console

from assignors import Group, Library, Subscription, assign
from assignors.jsonl import assign_line
from streaming.exceptions import SetupError
from streaming.explain import PartitionError, print_explanation, read_partition, verdict_in_words
from streaming.groups.verdicts import ClientInputs, pack_inputs
from tests.dashboards.made_lake import CLUSTER, MadeGroup, MadeLake

MEMBERS = (Subscription("a", ("orders",)), Subscription("b", ("orders",)))
GROUP = Group(MEMBERS, {"orders": 5})
JAVA = Library("java", (3, 7, 1))
RANGE = (
    "range cuts each topic by itself: its partitions, in order, into one block per subscriber; where they do not "
    "divide evenly, the first subscribers get one more."
)
ORDER = (
    "The members are taken in this order: a, b (static members by group.instance.id first, then the others by member "
    "id, as Java compares strings)."
)
BLOCK_OF_B = (
    "orders has 5 partitions and 2 subscribers: 2 each, and one more for the first. b is number 2 in the order and "
    "gets 3-4."
)


def row(
    verdict: str, inputs: ClientInputs | None, drifted: Sequence[Mapping[str, Any]] = (), reason: str | None = None
) -> dict[str, Any]:
    return {
        "cluster": "c", "group_id": "g", "decision": 7, "generation": 3, "verdict": verdict, "reason": reason,
        "matching_library": "java:3.7.1" if verdict == "identical" else None, "drifted_count": len(drifted),
        "drifted_partitions": drifted, "inputs": None if inputs is None else pack_inputs(inputs),
    }  # fmt: skip


def drifted(partition: int, expected: str | None, actual: list[str], kind: str = "misplaced") -> dict[str, Any]:
    return {"topic": "orders", "partition": partition, "kind": kind, "expected": expected, "actual": actual}


def test_an_identical_verdict_is_told_with_quotas_and_blocks() -> None:
    told = verdict_in_words(row("identical", ClientInputs("range", GROUP, JAVA)))
    assert told.sentences == (
        "The verdict is identical: recomputed as java:3.7.1, the assignment is what its strategy gives.",
        RANGE,
        ORDER,
        "orders has 5 partitions and 2 subscribers: 2 each, and one more for the first. In order: a: 0-2; b: 3-4.",
        "In the end 5 partitions are assigned: a 3, b 2.",
    )
    assert told.drift == ()


def test_one_partition_is_told_alone() -> None:
    told = verdict_in_words(row("identical", ClientInputs("range", GROUP, JAVA)), ("orders", 3))
    assert told.sentences[2:] == (BLOCK_OF_B, "In the end b should own orders 3.")


def test_drift_names_the_nearest_candidate_and_where_it_parts() -> None:
    told = verdict_in_words(
        row("drifted", ClientInputs("range", GROUP, JAVA), [drifted(2, "a", ["b"])], "none of 4 candidates gives this")
    )
    assert told.sentences[0] == "The verdict is drifted, in 1 partition: none of 4 candidates gives this."
    assert told.drift[0] == "orders 2 was given to b; a should own it."
    assert told.nearest is not None
    assert (told.nearest.strategy, len(told.nearest.differences)) == ("range", 1)
    compared = f"Compared with what {told.tried} pairs of strategy and library would give"
    assert told.drift[1] == f"{compared}, range of java:0.9 is nearest: it differs in 1 partition."
    assert told.drift[2] == (
        "They part at step 2: orders has 5 partitions and 2 subscribers: 2 each, and one more for the first. a is "
        "number 1 in the order and gets 0-2. In fact b has it."
    )


def test_drift_that_another_strategy_explains_is_told_as_such() -> None:
    given = assign("roundrobin", GROUP, JAVA)
    moved = [drifted(1, "a", ["b"]), drifted(2, "a", ["a"]), drifted(4, "b", ["a"])]
    told = verdict_in_words(row("drifted", ClientInputs("range", GROUP, JAVA), [moved[0], moved[2]], "none fits"))
    assert {member: sorted(topics["orders"]) for member, topics in given.items()} == {"a": [0, 2, 4], "b": [1, 3]}
    assert told.nearest is not None
    assert told.nearest.differences == ()
    assert "roundrobin of java:" in told.drift[2]
    assert "another strategy than the group's" in told.drift[2]


def test_a_violated_invariant_needs_no_strategy() -> None:
    told = verdict_in_words(
        row("drifted", None, [drifted(0, None, ["a", "b"], "doubly_assigned")], "it violates the invariants")
    )
    assert told.sentences[1].startswith("No strategy had to be asked")
    assert told.drift == ("orders 0 was given to several members at once: a, b.",)


def test_a_strategy_of_ones_own_is_asked_only_where_it_is_configured() -> None:
    inputs = ClientInputs("pinned", GROUP, Library("custom"))
    assert "a strategy of your own" in verdict_in_words(row("identical", inputs)).sentences[1]


def test_json_is_a_line_of_assign_that_gives_the_assignment_again() -> None:
    found = row("identical", ClientInputs("range", GROUP, JAVA))
    line = json.loads(json.dumps(verdict_in_words(found).json(found)))
    given = {"a": [["orders", n] for n in (0, 1, 2)], "b": [["orders", n] for n in (3, 4)]}
    assert assign_line(line) == {"assignment": given}
    assert [step["kind"] for step in line["explanation"]["steps"]] == ["order", "blocks", "result"]


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
    assert "orders has 6 partitions and 2 subscribers: 3 each." in said
    line = json.loads(printed(lake, "billing", as_json=True))
    assert "assignment" in assign_line(line)


def test_what_is_not_there_is_said_in_one_sentence(lake: str) -> None:
    with pytest.raises(SetupError, match="has no group nobody"):
        printed(lake, "nobody")
    with pytest.raises(SetupError, match="no verdict on generation 99999 of billing"):
        printed(lake, "billing", 99_999)
