from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from assignors import Group, Library, assign, from_pairs, same
from assignors.brokers import assign_on_server
from assignors.jsonl import assign_line, what_if_line, write_client_line, write_server_line
from assignors.jsonl.lines import ClientLine, ServerLine, read
from tests.assignors.random_groups import random_group, random_racks
from tests.assignors.random_server_groups import random_server_group

QUESTION: dict[str, Any] = {
    "strategy": "range",
    "library": "java:3.7.1",
    "partitions_per_topic": {"t": 3},
    "members": {
        "b": {"topics": ["t"], "owned": [["t", 0]], "generation": 4, "rack": None, "user_data": None},
        "a": {"topics": ["t"], "owned": [], "generation": None, "group_instance_id": None, "user_data": "00ff"},
    },
}


def test_a_line_is_answered_with_members_in_its_order() -> None:
    assert assign_line(QUESTION) == {"assignment": {"b": [["t", 2]], "a": [["t", 0], ["t", 1]]}}


def test_the_library_may_be_left_out_or_be_a_bare_release() -> None:
    without = {key: value for key, value in QUESTION.items() if key != "library"}

    assert assign_line(without) == assign_line(QUESTION) == assign_line(QUESTION | {"library": "2.4.1"})


def test_static_members_and_racks_are_read() -> None:
    question = {
        "strategy": "range",
        "partitions_per_topic": {"t": 2},
        "partition_racks": {"t": [["r1", None], ["r1"]]},
        "members": {
            "a": {"topics": ["t"], "rack": "r1"},
            "b": {"topics": ["t"], "rack": "", "group_instance_id": "i"},
        },
    }

    assert assign_line(question) == {"assignment": {"a": [["t", 1]], "b": [["t", 0]]}}


@pytest.mark.parametrize("partition", [-(1 << 31), (1 << 31) - 1])
def test_an_owned_partition_may_be_any_int32_as_in_a_record(partition: int) -> None:
    members = {"a": {"topics": ["t"], "owned": [["t", partition]]}}

    assert assign_line(QUESTION | {"members": members}) == {"assignment": {"a": [["t", 0], ["t", 1], ["t", 2]]}}


def of_a(**fields: Any) -> dict[str, Any]:
    return {"members": {"a": {"topics": [], **fields}}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"strategy": "mine"}, "Strategy 'mine' is not known"),
        ({"strategy": "sticky", "library": "sarama"}, "not recomputed"),
        ({"strategy": 7}, "Expected `str`, got `int` - at `$.strategy`"),
        ({"library": "java:x"}, "cannot be read"),
        ({"library": None, "members": []}, "Expected `object`, got `array` - at `$.members`"),
        ({"partitions_per_topic": {"t": -1}}, "partition count -1"),
        ({"partitions_per_topic": {"t": 1e3}}, "Expected `int`, got `float` - at `$.partitions_per_topic[...]`"),
        ({"partitions_per_topic": {"t": 10**12}}, "partition count 1000000000000"),
        (
            {"members": {"b": {"topics": []}, "a": {}}},
            "Object missing required field `topics` - at `$.members[...]`",
        ),
        (of_a(topics=[None]), "Expected `str`, got `null` - at `$.members[...].topics[0]`"),
        (of_a(owned=[["t"]]), "length 2"),
        (of_a(owned=[["t", True]]), "Expected `int`, got `bool`"),
        (of_a(owned=[["t", 1 << 31]]), "Expected `int`"),
        (of_a(owned=[["t", -(1 << 31) - 1]]), "Expected `int`"),
        (of_a(owned=[["t" * 8_192, 0]]), "Expected `str` of length <= 8191"),
        (of_a(user_data="0g"), "not hex"),
        ({"remembered_generation": -2}, "Expected `int` >= -1"),
        ({"remembered_generation": 1 << 31}, "Expected `int`"),
        ({"other_topics_known": 1}, "Expected `bool`, got `int`"),
        ({"partition_racks": {"t": [[], "r1"]}}, "Expected `array`, got `str` - at `$.partition_racks[...][1]`"),
    ],
)
def test_what_is_wrong_with_a_line_is_its_answer(change: dict[str, Any], reason: str) -> None:
    assert reason in assign_line(QUESTION | change)["error"]


@pytest.mark.parametrize("line", [None, [], "x", 3, {}, {"strategy": "range"}])
def test_what_is_no_question_has_an_error(line: object) -> None:
    assert set(assign_line(line)) == {"error"}


def through_json(line: dict[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(json.dumps(line))
    return decoded


def test_a_group_of_clients_is_read_as_it_was_written() -> None:
    random = Random("lines")
    for _ in range(300):
        group = random_group(random, racks=True)
        racks = random_racks(random, group) if any(member.rack for member in group.members) else None
        members = [
            replace(
                member,
                owned=tuple((topic, (2, 0)) for topic in dict.fromkeys(member.topics)) if random.random() < 0.5 else (),
                generation=random.choice((None, 0, 7)),
                user_data=random.choice((None, b"", b"\x00\xff")),
            )
            for member in group.members
        ]
        group = replace(
            group,
            members=tuple(members),
            remembered_generation=random.choice((-1, 3, (1 << 31) - 1)),
            other_topics_known=random.random() < 0.5,
        )
        library = Library("java", (3, 7, 1))
        line = through_json(write_client_line("range", group, library, racks))
        asked = read(line, ClientLine)
        assert asked.group() == group
        assert list(line["partitions_per_topic"]) == list(group.partitions_per_topic)
        assert asked.leaders_library() == library
        assert asked.racks() == (None if racks is None else {t: [list(of) for of in r] for t, r in racks.items()})
        answer = from_pairs(assign_line(line)["assignment"])
        assert same(answer, assign("range", group, library, racks))


def test_a_group_of_a_broker_is_read_as_it_was_written() -> None:
    random = Random("lines of brokers")
    for _ in range(300):
        group = random_server_group(random)
        line = through_json(write_server_line("server-range", group, "4.0.1"))
        known = read(line, ServerLine).group()
        assert [replace(m, rack=m.rack or None) for m in group.members] == [
            replace(m, target=tuple((topic, tuple(of)) for topic, of in m.target)) for m in known.members
        ]
        assert known.topics == group.topics
        answer = from_pairs(assign_line(line)["assignment"])
        assert same(answer, assign_on_server("server-range", group, "4.0.1"))


def test_a_strategy_of_the_user_s_own_has_no_library() -> None:
    assert "library" not in write_client_line("mine", Group((), {}), Library("custom"))


# The lines of docs/tools.md for assign and what-if, answered unchanged.


PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tools.md").read_text("utf-8")
EXAMPLES = re.findall(r"^    \$ echo '(.*)' \| evenkeel (assign|what-if)\n    (.*)$", PAGE, re.MULTILINE)


def test_there_are_examples_of_every_kind() -> None:
    assert [command for _, command, _ in EXAMPLES] == [*["assign"] * 4, "what-if"]


@pytest.mark.parametrize(("line", "command", "answer"), EXAMPLES)
def test_an_example_is_answered_as_the_page_says(line: str, command: str, answer: str) -> None:
    question: Any = msgspec.json.decode(line)

    told = assign_line(question) if command == "assign" else what_if_line(question)

    assert msgspec.json.encode(told).decode() == answer
