"""A written group is read as the same group, and gets the same answer."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

from assignors import Group, Library, assign, from_pairs, same
from assignors.brokers import assign_on_server
from assignors.jsonl import assign_line, write_client_line, write_server_line
from assignors.jsonl.lines import ClientLine, ServerLine, read
from tests.assignors.random_groups import random_group, random_racks
from tests.assignors.random_server_groups import random_server_group


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
