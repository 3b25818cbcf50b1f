"""The assignor of share groups on small groups; the expected values were given by the real classes."""

from __future__ import annotations

from typing import Any

import pytest

from assignors import CannotTell, imbalance
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server, known_share_strategies
from assignors.jsonl import assign_line
from tests.assignors.brokers.small_groups import T, U, assigned, group


def test_four_zero_gives_every_member_all_partitions_of_its_topics() -> None:
    members = {"a": ("t", {T: (0,)}), "b": "t u"}

    assert assigned("server-simple", group(members, t=2, u=1), "4.0.1") == {"a": {T: [0, 1]}, "b": {T: [0, 1], U: [0]}}


def test_four_one_gives_a_partition_by_the_hash_of_the_member_and_lets_it_keep_the_rest() -> None:
    members = {"a": ("t", {T: (0, 1, 2)}), "b": "t"}

    # "a" hashes to 97 and "b" to 98: partitions 1 and 2 of three.
    assert assigned("server-simple", group(members, t=3), "4.1.1") == {"a": {T: [0, 1]}, "b": {T: [2]}}


def test_since_four_two_more_members_than_partitions_share_them() -> None:
    result = assigned("server-simple", group(dict.fromkeys("abcde", "t"), t=2), "4.4.0")

    assert result == {"a": {T: [0, 1]}, "b": {T: [1]}, "c": {T: [1]}, "d": {T: [0]}, "e": {T: [0]}}


def test_since_four_two_members_keep_what_they_had_as_far_as_the_balance_allows() -> None:
    members = {"a": ("t", {T: (0, 1, 2)}), "b": "t"}

    assert assigned("server-simple", group(members, t=3), "4.2.0") == {"a": {T: [0, 2]}, "b": {T: [1]}}


def test_a_topic_that_nobody_subscribes_to_any_more_stays_where_it_was_if_subscriptions_differ() -> None:
    members = {"a": ("t", {T: (0, 1), U: (0,)}), "b": "t nowhere"}

    assert assigned("server-simple", group(members, t=2, u=1), "4.4.0") == {"a": {U: [0], T: [1]}, "b": {T: [0]}}
    members["b"] = "t"
    assert assigned("server-simple", group(members, t=2, u=1), "4.4.0") == {"a": {T: [0]}, "b": {T: [1]}}


def test_only_initialized_partitions_are_assigned() -> None:
    members = (ServerMember("a", ("t",)), ServerMember("b", ("t",)))
    some = ServerGroup(members, {"t": ServerTopic(T, 4, initialized=(1, 3))})

    assert assigned("server-simple", some, "4.3.1") == {"a": {T: [1]}, "b": {T: [3]}}
    assert assigned("server-simple", some, "4.0.1") == {"a": {T: [0, 1, 2, 3]}, "b": {T: [0, 1, 2, 3]}}


@pytest.mark.parametrize("members", [1, 2, 3, 5, 8, 40])
@pytest.mark.parametrize("partitions", [1, 3, 8, 12])
def test_no_partition_and_no_member_is_left_out(members: int, partitions: int) -> None:
    names = [f"m{number}" for number in range(members)]
    result = assign_on_server("server-simple", group(dict.fromkeys(names, "t"), t=partitions), "4.4.0")

    counts = [len(owned[T]) for owned in result.values()]
    assert max(counts) - min(counts) <= 1
    assert {number for owned in result.values() for number in owned[T]} == set(range(partitions))
    assert imbalance(counts) is not None


def test_share_groups_of_three_nine_are_not_recomputed() -> None:
    assert known_share_strategies() == ("server-simple",)
    with pytest.raises(CannotTell, match=r"'simple' of brokers before 4\.0"):
        assign_on_server("server-simple", group({"a": "t"}, t=1), "3.9.1")


def test_a_line_may_say_which_partitions_are_initialized() -> None:
    line: dict[str, Any] = {
        "strategy": "server-simple",
        "library": "4.3.1",
        "topics": {"t": {"id": T, "partitions": 3, "initialized": [0, 2]}},
        "members": {"a": {"topics": ["t"], "target": [[T, [0]]]}, "b": {"topics": ["t"]}},
    }

    assert assign_line(line) == {"assignment": {"a": [[T, 0]], "b": [[T, 2]]}}
