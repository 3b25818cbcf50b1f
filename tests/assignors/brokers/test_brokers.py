"""The brokers' assignors on small groups with hand-written results, and invalid groups."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import (
    BadGroup,
    CannotTell,
    LeaderWouldFail,
    UnknownLibrary,
    UnknownStrategy,
    same,
)
from assignors.brokers import (
    ServerGroup,
    ServerMember,
    ServerTopic,
    Target,
    assign_on_server,
)
from assignors.jsonl import assign_line
from tests.assignors.brokers.small_groups import T, U, assigned, group
from tests.assignors.random_server_groups import random_server_group
from tests.examples import examples

# Release, members, partition counts, and what the real class of that release gives.
UNIFORM: dict[str, tuple[str | None, dict[str, Any], dict[str, int], dict[str, Any]]] = {
    # t, dealt first, leaves b with one more than a; then u-0 goes from a to c, and b has two more.
    "a topic is balanced again after a later one has changed the members": (
        None,
        {"a": ("t u", {U: (0,)}), "b": "t u", "c": "u"},
        {"t": 4, "u": 1},
        {"a": {T: [2, 3]}, "b": {T: [0, 1]}, "c": {U: [0]}},
    ),
}


@pytest.mark.parametrize("case", UNIFORM)
def test_uniform_gives_what_the_class_of_its_release_gives(case: str) -> None:
    release, members, counts, expected = UNIFORM[case]
    assert assigned("server-uniform", group(members, **counts), release) == expected


def test_a_subscribed_name_without_a_topic_makes_subscriptions_different_and_nothing_else() -> None:
    odd = group({"a": "t nowhere", "b": "t"}, t=2)

    assert not odd.homogeneous
    assert assigned("server-uniform", odd) == {"a": {T: [0]}, "b": {T: [1]}}


def test_a_member_that_had_just_its_share_keeps_it_also_where_its_partitions_crowd_a_bucket() -> None:
    # Each of 16 members gets nine. Those of m0 are in one of the 16 places of their set, whose order does not matter
    # as none is taken away. (As the real class.)
    had = tuple(range(0, 144, 16))
    members = {f"m{number}": ("t", {T: had} if number == 0 else {}) for number in range(16)}
    assert assigned("server-uniform", group(members, t=144))["m0"] == {T: [0, 16, 32, 48, 64, 80, 96, 112, 128]}


def test_members_without_topics_get_nothing() -> None:
    for strategy in ("server-uniform", "server-range"):
        assert assigned(strategy, group({"a": "", "b": ""}, t=2)) == {"a": {}, "b": {}}
        assert assigned(strategy, group({"a": "", "b": "t"}, t=2)) == {"a": {}, "b": {T: [0, 1]}}
    assert assigned("server-uniform", group({}, t=2)) == {}


def test_previous_owners_that_contradict_each_other_can_make_the_assignor_throw() -> None:
    phantom = group({"a": ("t", {T: (7, 8)}), "b": "t"}, t=2)

    with pytest.raises(LeaderWouldFail, match="left unassigned"):
        assign_on_server("server-uniform", phantom, "4.0.1")
    different = group({"a": ("t u", {T: (7,)}), "b": "t"}, t=2, u=1)
    with pytest.raises(LeaderWouldFail, match="ArrayIndexOutOfBounds"):
        assign_on_server("server-uniform", different, "4.0.1")


@settings(max_examples=examples(150), deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(("4.0.0", "4.4.0")))
def test_every_partition_has_one_owner_who_asked_for_it_and_a_second_time_nothing_moves(
    random: Random, release: str
) -> None:
    of = random_server_group(random)
    of = ServerGroup(tuple(ServerMember(m.member_id, m.topics) for m in of.members), of.topics)
    for strategy in ("server-range", "server-uniform"):
        first = assign_on_server(strategy, of, release)
        for member in of.members:
            assert set(first[member.member_id]) <= {uuid.text for uuid in of.subscribed(member)}
        dealt = sorted((t, p) for topics in first.values() for t, partitions in topics.items() for p in partitions)
        wanted = {uuid.text for member in of.members for uuid in of.subscribed(member)}
        assert dealt == sorted((t, p) for t in wanted for p in range(of.counts[t]))
        targets: dict[str, Target] = {m: tuple((t, tuple(p)) for t, p in topics.items()) for m, topics in first.items()}
        again = ServerGroup(
            tuple(ServerMember(m.member_id, m.topics, targets[m.member_id]) for m in of.members), of.topics
        )
        assert same(assign_on_server(strategy, again, release), first)


@pytest.mark.parametrize(
    ("members", "topics", "error"),
    [
        (("a", "a"), {}, "'a' appears twice"),
        (("a",), {"t": ServerTopic("short", 1)}, "'short' is not a UUID"),
        (("a",), {"t": ServerTopic(T + "!", 1)}, "is not a UUID"),
        (("a",), {"t": ServerTopic(T, 1), "u": ServerTopic(T + "==", 1)}, "Two topics"),
        (("a",), {"t": ServerTopic(T, -1)}, "count -1"),
        (("a",), {"t": ServerTopic(T, 10**9)}, "count 1000000000"),
        (("a",), {"t": ServerTopic(T, 1_500_000), "u": ServerTopic(U, 1_500_000)}, "3000000 partitions in total"),
    ],
)
def test_what_is_no_group_is_refused(members: Any, topics: Any, error: str) -> None:
    with pytest.raises(BadGroup, match=error):
        ServerGroup(tuple(ServerMember(member_id, ("t",)) for member_id in members), topics)


@pytest.mark.parametrize("target", [((T, (0,)), (T + "==", (1,))), ((T, (2**31,)),), ((T, (True,)),), ((T, ("0",)),)])
def test_a_target_that_no_record_holds_is_refused(target: Any) -> None:
    with pytest.raises(BadGroup):
        ServerGroup((ServerMember("a", ("t",), target),), {"t": ServerTopic(T, 1)})


def test_names_and_releases_that_are_not_known_are_told_apart() -> None:
    with pytest.raises(UnknownStrategy, match="'server-sticky'"):
        assign_on_server("server-sticky", group({}))
    with pytest.raises(UnknownLibrary, match="not a Kafka release"):
        assign_on_server("server-range", group({}), "librdkafka:2.3")


@pytest.mark.parametrize("strategy", ["server-range", "server-uniform"])
def test_what_brokers_gave_while_the_protocol_was_a_preview_is_not_recomputed(strategy: str) -> None:
    with pytest.raises(CannotTell, match=r"of brokers before 4\.0, where the protocol was early access or a preview"):
        assign_on_server(strategy, group({"a": "t"}, t=1), "3.9.1")


LINE: dict[str, Any] = {
    "strategy": "server-range",
    "library": "4.0.1",
    "topics": {"t": {"id": T, "partitions": 3}},
    "members": {
        "b": {"topics": ["t"], "target": [[T, [0]]], "group_instance_id": None, "rack": "r"},
        "a": {"topics": ["t"]},
    },
}


def test_a_line_is_answered_with_topic_ids() -> None:
    assert assign_line(LINE) == {"assignment": {"b": [[T, 2]], "a": [[T, 0], [T, 1]]}}
    assert assign_line(LINE | {"strategy": "server-uniform"}) == {"assignment": {"b": [[T, 0], [T, 2]], "a": [[T, 1]]}}
    assert assign_line(LINE | {"strategy": "server-uniform", "library": "4.0.0"}) == {
        "assignment": {"b": [[T, 0]], "a": [[T, 1], [T, 2]]}
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"strategy": "server-mine"}, "Server strategy 'server-mine' is not known"),
        ({"library": "sarama"}, "not a Kafka release"),
        ({"library": 4}, "Expected `str | null`, got `int`"),
        ({"topics": {"t": {"partitions": 1}}}, "missing required field `id`"),
        ({"topics": {"t": {"id": T, "partitions": "3"}}}, "Expected `int`, got `str`"),
        ({"topics": {"t": {"id": "x", "partitions": 3}}}, "not a UUID"),
        ({"members": {"a": {"topics": [], "target": [[T]]}}}, "length 2"),
        ({"members": {"a": {"topics": [], "target": [[T, [1 << 31]]]}}}, "int32"),
    ],
)
def test_what_is_wrong_with_a_line_is_its_answer(change: dict[str, Any], reason: str) -> None:
    assert reason in assign_line(LINE | change)["error"]


def test_members_with_instance_ids_of_their_own_are_in_order_whatever_their_buckets() -> None:
    # All strings of "Aa" and "BB" of equal length have the same hash code, and Java makes a tree of nine in a bucket.
    ids = ["".join(parts) for parts in product(("Aa", "BB"), repeat=4)][:9]
    static = tuple(ServerMember(name, ("t",), group_instance_id=str(9 - n)) for n, name in enumerate(ids))
    told = assign_on_server("server-range", ServerGroup(static, {"t": ServerTopic(T, 9)}))
    assert [list(told[name][T]) for name in ids] == [[n] for n in range(8, -1, -1)]
    alike = tuple(ServerMember(name, ("t",), group_instance_id="i") for name in ids)
    with pytest.raises(CannotTell, match="eight keys"):
        assign_on_server("server-range", ServerGroup(alike, {"t": ServerTopic(T, 9)}))
