"""The assignor of share groups on small groups; the expected values were given by the real classes."""

from __future__ import annotations

from typing import Any

import pytest

from assignors import CannotTell
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server, known_share_strategies
from assignors.jsonl import assign_line
from tests.assignors.brokers.small_groups import T, U, assigned, group

# Release, members, partition counts, and what the class of that release gives.
GIVEN: dict[str, tuple[str, dict[str, Any], dict[str, int], dict[str, Any]]] = {
    "since 4.2 more members than partitions share them": (
        "4.4.0",
        dict.fromkeys("abcde", "t"),
        {"t": 2},
        {"a": {T: [0, 1]}, "b": {T: [1]}, "c": {T: [1]}, "d": {T: [0]}, "e": {T: [0]}},
    ),
    "since 4.2 members keep what they had as far as the balance allows": (
        "4.2.0",
        {"a": ("t", {T: (0, 1, 2)}), "b": "t"},
        {"t": 3},
        {"a": {T: [0, 2]}, "b": {T: [1]}},
    ),
    "a topic that nobody subscribes to any more stays where it was if subscriptions differ": (
        "4.4.0",
        {"a": ("t", {T: (0, 1), U: (0,)}), "b": "t nowhere"},
        {"t": 2, "u": 1},
        {"a": {U: [0], T: [1]}, "b": {T: [0]}},
    ),
    "and does not if they are alike": (
        "4.4.0",
        {"a": ("t", {T: (0, 1), U: (0,)}), "b": "t"},
        {"t": 2, "u": 1},
        {"a": {T: [0]}, "b": {T: [1]}},
    ),
}


@pytest.mark.parametrize("case", GIVEN)
def test_a_share_group_gets_what_the_class_of_its_release_gives(case: str) -> None:
    release, members, counts, expected = GIVEN[case]
    assert assigned("server-simple", group(members, **counts), release) == expected


def test_only_initialized_partitions_are_assigned() -> None:
    members = (ServerMember("a", ("t",)), ServerMember("b", ("t",)))
    some = ServerGroup(members, {"t": ServerTopic(T, 4, initialized=(1, 3))})

    assert assigned("server-simple", some, "4.3.1") == {"a": {T: [1]}, "b": {T: [3]}}


def test_share_groups_of_the_preview_are_not_recomputed() -> None:
    assert known_share_strategies() == ("server-simple",)
    with pytest.raises(CannotTell, match=r"'simple' of brokers before 4\.2, where .* a preview"):
        assign_on_server("server-simple", group({"a": "t"}, t=1), "4.1.1")


def test_a_line_may_say_which_partitions_are_initialized() -> None:
    line: dict[str, Any] = {
        "strategy": "server-simple",
        "library": "4.3.1",
        "topics": {"t": {"id": T, "partitions": 3, "initialized": [0, 2]}},
        "members": {"a": {"topics": ["t"], "target": [[T, [0]]]}, "b": {"topics": ["t"]}},
    }

    assert assign_line(line) == {"assignment": {"a": [[T, 0]], "b": [[T, 2]]}}
