"""Java's sticky strategies: hand-written values, and what holds for every group and for other libraries too."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import (
    Assignment,
    CannotTell,
    Group,
    LeaderWouldFail,
    Library,
    Subscription,
    assign,
    counts,
    owners,
    same,
    strategy_named,
    with_hidden_inputs,
)
from assignors.clients.sticky import read_sticky, write_sticky
from assignors.clients.sticky.user_data import MemberData
from assignors.work import at_most
from tests.assignors.clients.sticky.members import claiming, cooperative, newcomer, read_by_kafka_python
from tests.examples import examples

JAVA = ("2.4.1", "2.5.1", "2.8.1", "3.0.2", "3.4.0", "3.4.1", "3.5.1", "3.5.2", "3.7.1", "4.3.1")
OTHERS = ("librdkafka:2.2", "librdkafka:2.16", "kafka-python:3.0.12")


# Found at random and reduced; the real class was still running after 15 s.
_GROUND_LOOP = Group(
    (
        Subscription("q", ("r",)),
        Subscription("e", ("r",), user_data=write_sticky((("r", (7, 12, 13, 17, 18, 22, 24, 27)),), 7)),
        Subscription("j", ("r", "w")),
        Subscription("y", ("w", "u"), user_data=write_sticky((("w", (1, 5, 3)),), 7)),
        Subscription("d", ("r",), user_data=write_sticky((("r", (15, 11, 29, 16, 20, 6, 23, 0, 1, 21, 26)),), 7)),
        Subscription("t", ("p", "w"), user_data=write_sticky((("w", (0, 2, 4, 6)),), 7)),
        Subscription("i", ("p", "v"), user_data=write_sticky((), 7)),
        Subscription("r", ("r",), user_data=write_sticky((("r", (3, 4, 8, 9, 10, 14, 19, 25, 28)),), 7)),
    ),
    {"r": 30, "w": 7, "p": 2, "u": 1, "v": 3},
)


@pytest.mark.parametrize("library", [*JAVA, *OTHERS])
def test_a_newcomer_gets_what_is_left_and_the_rest_is_held_back(library: str) -> None:
    members = (cooperative("a", "t", owned={"t": (0, 1, 2, 3)}), newcomer("b", "t"))

    result = assign("cooperative-sticky", Group(members, {"t": 5}), library)

    assert counts(result) == {"a": 3, "b": 1}
    assert set(result["a"]["t"]) < {0, 1, 2, 3}
    assert result["b"] == {"t": (4,)}


def test_from_3_7_1_on_the_lowest_numbers_of_all_topics_are_kept() -> None:
    group = Group(
        (cooperative("a", "s", "t", owned={"s": (0, 1), "t": (0, 1)}), newcomer("b", "s", "t")), {"s": 2, "t": 2}
    )

    assert assign("cooperative-sticky", group, "3.7.0")["a"] == {"s": (0, 1)}
    assert assign("cooperative-sticky", group, "3.7.1")["a"] == {"s": (0,), "t": (0,)}


def test_instance_ids_do_not_count() -> None:
    def group(instance: str | None) -> Group:
        return Group((Subscription("a", ("t",), group_instance_id=instance), Subscription("b", ("t",))), {"t": 3})

    assert same(assign("sticky", group("z")), assign("sticky", group(None)))


def test_a_member_without_topics_that_comes_first_is_given_some() -> None:
    first, second = Subscription("a", ()), Subscription("b", ("t",))

    result = assign("cooperative-sticky", Group((first, second), {"t": 2}))

    assert counts(result) == {"a": 1, "b": 1}


def test_a_partition_that_two_members_of_one_generation_claim_goes_to_one_of_them_later() -> None:
    members = (cooperative("a", "t", owned={"t": (0, 1)}), cooperative("b", "t", owned={"t": (1, 2)}))

    result = assign("cooperative-sticky", Group(members, {"t": 3}))

    assert owners(result) == {"t": {0: ["a"], 2: ["b"]}}


def test_of_two_claims_the_one_of_the_higher_generation_holds_from_3_4_1_on() -> None:
    old = cooperative("a", "t", owned={"t": (0, 1)}, generation=3)
    new = cooperative("b", "t", owned={"t": (1, 2)}, generation=4)

    assert owners(assign("cooperative-sticky", Group((old, new), {"t": 3}), "3.6.2")) == {
        "t": {0: ["a"], 1: ["b"], 2: ["b"]}
    }


@pytest.mark.parametrize("library", JAVA)
def test_unreadable_user_data_is_no_past(library: str) -> None:
    bad = Group((Subscription("a", ("t",), user_data=b"\xff" * 7), Subscription("b", ("t",))), {"t": 4})
    none = Group((Subscription("a", ("t",)), Subscription("b", ("t",))), {"t": 4})

    assert same(assign("sticky", bad, library), assign("sticky", none, library))


def test_a_leader_that_would_not_end_is_told() -> None:
    with pytest.raises(LeaderWouldFail, match="forever"):
        assign("sticky", _GROUND_LOOP, "3.7.1")


def test_a_leader_that_would_not_end_is_told_also_where_it_first_moves_others_for_a_while() -> None:
    # Each of these members has one partition more than the one before it, and the last has two more. So it hands one
    # on, and each walk over the partitions takes that one step down the line. (The real class was still running after
    # 15 s.)
    line = dict(enumerate([*range(18), 19], 10))
    members = [claiming(f"c{n}", f"z{n} z{n + 1}", 7, **{f"z{n}": tuple(range(had))}) for n, had in line.items()]
    of_line = {f"z{n}": had for n, had in line.items()}
    group = Group((*_GROUND_LOOP.members, *members), {**_GROUND_LOOP.partitions_per_topic, **of_line})
    with pytest.raises(LeaderWouldFail, match="forever"), at_most(100_000):
        assign("sticky", group, "3.7.1")


def test_a_group_without_members_has_no_leader() -> None:
    with pytest.raises(LeaderWouldFail):
        assign("sticky", Group((), {"t": 3}))


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("library", ["sarama", "franz-go:1.14.1", "aiokafka:0.8", "unknown"])
def test_other_libraries_cannot_be_told(strategy: str, library: str) -> None:
    with pytest.raises(CannotTell, match="not recomputed"):
        assign(strategy, Group((Subscription("a", ("t",)),), {"t": 1}), library)


def test_why_java_s_sticky_before_2_4_is_not_recomputed_is_told_from_its_first_release_on() -> None:
    for release in ("0.11", "2.3.1"):
        with pytest.raises(CannotTell, match="another class"):
            assign("sticky", Group((Subscription("a", ("t",)),), {"t": 1}), release)


def test_racks_that_are_not_known_cannot_be_told() -> None:
    group = Group((Subscription("a", ("t",), rack="r"), Subscription("b", ("t",))), {"t": 2})

    with pytest.raises(CannotTell, match="racks of the replicas are not known"):
        assign("sticky", group)
    assert counts(assign("sticky", group, "3.4.1")) == {"a": 1, "b": 1}
    assert assign("sticky", group, partition_racks={"t": [[], ["r"]]})["a"] == {"t": (1,)}


_TOPICS = ("s", "t", "u")


@st.composite
def _groups(draw: st.DrawFn) -> Group:
    names = draw(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6, unique=True))
    topics = st.lists(st.sampled_from(_TOPICS), min_size=1, max_size=3, unique=True).map(tuple)
    return Group(
        tuple(Subscription(name, draw(topics)) for name in names),
        draw(st.fixed_dictionaries({topic: st.integers(0, 9) for topic in _TOPICS})),
    )


@settings(deadline=None, max_examples=examples(150))
@given(_groups(), st.sampled_from(JAVA))
def test_every_partition_goes_to_one_subscriber_and_stays_there(group: Group, release: str) -> None:
    first = assign("sticky", group, release)
    subscribed = {topic for member in group.members for topic in member.topics}
    assert {(topic, p) for topic, of in owners(first).items() for p in of} == {
        (topic, p) for topic in subscribed for p in range(group.partitions_per_topic[topic])
    }
    assert all(len(members) == 1 for of in owners(first).values() for members in of.values())
    assert all(set(first[member.member_id]) <= set(member.topics) for member in group.members)

    if release in {"2.5.1", "2.8.1"}:  # In these, members lose some of their partitions if subscriptions differ.
        return
    again = Group(tuple(_with_past(member, first) for member in group.members), group.partitions_per_topic)
    assert same(assign("sticky", again, release), first)


def _with_past(member: Subscription, result: Assignment) -> Subscription:
    held = tuple((topic, tuple(partitions)) for topic, partitions in result[member.member_id].items())
    return Subscription(member.member_id, member.topics, user_data=write_sticky(held, 1))


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_what_no_record_holds_is_said_of_java_and_kafka_python_only(strategy: str) -> None:
    group = Group((Subscription("a", ("t",)),), {"t": 1})

    def reasons(library: Library) -> list[str | None]:
        return [reason for _, reason in with_hidden_inputs(strategy, group, library)]

    assert reasons(Library("java", (2, 8, 1))) == reasons(Library("librdkafka")) == []
    assert reasons(Library("kafka-python", (3,))) == [None]
    assert len(reasons(Library("java", (3, 0)))) == 1
    assert list(with_hidden_inputs("range", group, Library("java"))) == []
    assert strategy_named(strategy).name == strategy


@pytest.mark.parametrize(("of_a", "of_b", "owner"), [(6, 5, "a"), (5, 6, "b")])
def test_a_partition_that_two_members_claim_stays_with_the_newer_generation_in_their_user_data(
    of_a: int, of_b: int, owner: str
) -> None:
    members = (
        Subscription("a", ("t",), owned=(("t", (0, 1)),), user_data=struct.pack(">i", of_a)),
        Subscription("b", ("t",), owned=(("t", (0, 2)),), user_data=struct.pack(">i", of_b)),
    )
    newer = {"a": {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, "b": {"a": {"t": (1, 3)}, "b": {"t": (0, 2)}}}
    for release in ("2.8.1", "3.0", "3.4"):
        assert same(assign("cooperative-sticky", Group(members, {"t": 4}), release), newer[owner])
    # Before 2.8.1 user data says nothing: the last claim counts.
    assert same(assign("cooperative-sticky", Group(members, {"t": 4}), "2.4"), newer["b"])


# Results of the next tests are those of the real classes (2.4.1, 3.4.0, 3.5.1 and 4.3.1), unless they say otherwise.


def test_java_before_3_0_throws_where_the_previous_owner_can_have_nothing_else() -> None:
    members = claiming("a", "", 2, x=(0,)), claiming("b", "x", x=(0, 1)), claiming("c", "x")
    with pytest.raises(LeaderWouldFail, match="takes no part"):
        assign("sticky", Group(members, {"x": 2}), "2.4.1")


@pytest.mark.parametrize("release", ["2.4.1", "3.4.0"])
def test_members_of_the_same_size_are_balanced_however_small_those_of_other_topics_are(release: str) -> None:
    # (Otherwise Java would look at x-0, whose previous owner takes no part, and throw.)
    members = claiming("a", "x", x=(0, 1, 2)), claiming("b", "x", x=(3, 4, 5)), claiming("c", "y", y=(0,))
    members = *members, claiming("d", "y", y=(1,)), claiming("e", "", 2, x=(0,))
    kept = {"a": {"x": (0, 1, 2)}, "b": {"x": (3, 4, 5)}, "c": {"y": (0,)}, "d": {"y": (1,)}}
    assert same(assign("sticky", Group(members, {"x": 6, "y": 2}), release), kept)


@pytest.mark.parametrize("release", JAVA)
def test_a_move_that_leaves_a_difference_of_one_is_the_last(release: str) -> None:
    # (Otherwise Java would look at x-2, whose previous owner takes no part, and throw.)
    members = claiming("a", "x"), claiming("b", "", 2, x=(2,)), claiming("c", "x", x=(0, 1, 2))
    assert same(assign("sticky", Group(members, {"x": 3}), release), {"a": {"x": (0,)}, "c": {"x": (1, 2)}})


def test_a_difference_of_one_is_balanced_also_with_a_partition_that_does_not_exist() -> None:
    # (Otherwise Java would look at x-0, whose previous owner takes no part, and throw.)
    members = claiming("a", "x", 1), claiming("b", "x", x=(2,)), claiming("c", "", 1, x=(0,))
    result = assign("sticky", Group(members, {"x": 2}), "3.5.1")
    assert same(result, {"a": {"x": (0, 1)}, "b": {"x": (2,)}})


def test_members_are_balanced_also_where_one_keeps_a_partition_that_does_not_exist() -> None:
    # b has three with x-0 and y-2, which its topic no longer has, and a one: y-1 moves.
    members = claiming("a", "y"), claiming("b", "x y", y=(1, 2))
    result = assign("sticky", Group(members, {"x": 1, "y": 2}), "4.3.1")
    assert same(result, {"a": {"y": (0, 1)}, "b": {"x": (0,), "y": (2,)}})


def test_java_2_4_moves_first_what_had_another_owner_before() -> None:
    members = claiming("a", "x", 3, x=(0, 1)), claiming("b", "x", 1, x=(1,))
    assert same(assign("sticky", Group(members, {"x": 2}), "2.4.1"), {"a": {"x": (0,)}, "b": {"x": (1,)}})


def test_partitions_that_crowd_a_bucket_of_the_smallest_table_cannot_be_told() -> None:
    # `TopicPartition.hashCode` is 31 * (31 + number) + 116 for t: every sixteenth falls into one of 16 places.
    def claimed(count: int) -> Group:
        sixteenth = tuple(range(0, 16 * count, 16))
        return Group((claiming("a", "t", t=sixteenth), claiming("b", "t")), {"t": 129})

    assert counts(assign("sticky", claimed(8), "2.4.1")) == {"a": 65, "b": 64}
    with pytest.raises(CannotTell, match="bucket"):
        assign("sticky", claimed(9), "2.4.1")


@pytest.mark.parametrize("release", ["3.4.1", "3.5.2", "4.3.1"])
def test_only_the_newest_of_three_claims_holds(release: str) -> None:
    members = claiming("a", "x", 1, x=(0,)), claiming("b", "x", 2, x=(0,)), claiming("c", "x", 3, x=(0,))
    assert same(assign("sticky", Group(members, {"x": 1}), release), {"c": {"x": (0,)}})


def test_a_member_that_owned_nothing_has_its_generation_all_the_same() -> None:
    # An empty array of topics, then the generation.
    assert read_sticky(b"\0\0\0\0" + b"\0\0\0\7") == (MemberData((), 7), 8)


@pytest.mark.parametrize("library", ["2.4.1", "2.5.1", "2.8.1", "kafka-python:3.0.12"])
def test_java_before_3_0_and_kafka_python_count_a_topic_twice_that_a_member_lists_twice(library: str) -> None:
    # z-0 and z-1 go back to m. With these two it has as much as the leader believes that it could have: x-0 stays.
    m, q = claiming("m", "x x", 2, z=(0, 1)), claiming("q", "z", z=(6, 7, 8, 9, 10))
    members: tuple[Subscription, ...] = m, claiming("o", "x z", x=(0,), z=(0, 1, 2, 3, 4, 5)), q
    if library.startswith("kafka-python"):
        members = read_by_kafka_python(*members)
    result = assign("sticky", Group(members, {"x": 1, "z": 11}), library)
    assert same(result, {"m": {"z": (0, 1)}, "o": {"x": (0,), "z": (2, 3, 4, 5)}, "q": {"z": (6, 7, 8, 9, 10)}})


@pytest.mark.parametrize(("release", "of_a", "of_c"), [("2.4.1", 2, 1), ("2.5.1", 2, 1), ("2.8.1", 1, 2)])
def test_members_of_an_older_generation_keep_what_they_own_before_2_8_1(release: str, of_a: int, of_c: int) -> None:
    # (As the real classes of these three.)
    had = {"a": (2, 5), "b": (0, 6), "c": (1, 5)}
    members = tuple(cooperative(name, "t", owned={"t": (p,)}, generation=n) for name, (p, n) in had.items())
    result = assign("cooperative-sticky", Group(members, {"t": 3}), release)
    assert same(result, {"a": {"t": (of_a,)}, "b": {"t": (0,)}, "c": {"t": (of_c,)}})


@pytest.mark.parametrize("library", ["java:3.0", "java:3.4"])
def test_claims_older_than_the_leader_s_last_decision_do_not_count(library: str) -> None:
    members = (claiming("a", "t", 3, t=(1,)), claiming("b", "t", 3, t=(0,)))
    counting = assign("sticky", Group(members, {"t": 2}), library)
    assert same(counting, {"a": {"t": (1,)}, "b": {"t": (0,)}})
    remembered = assign("sticky", Group(members, {"t": 2}, remembered_generation=4), library)
    assert same(remembered, {"a": {"t": (0,)}, "b": {"t": (1,)}})


@pytest.mark.parametrize(
    ("release", "of_a"), [("2.4.1", 1), ("2.5.1", 0), ("2.8.1", 0), ("3.0.2", 0), ("3.4.0", 0), ("3.4.1", 1)]
)
def test_claims_without_a_generation_do_not_count_beside_a_generation_where_only_the_highest_does(
    release: str, of_a: int
) -> None:
    without = Subscription("a", ("t",), user_data=write_sticky((("t", (1,)),), None))
    result = assign("sticky", Group((without, claiming("b", "t", 3)), {"t": 2}), release)
    assert same(result, {"a": {"t": (of_a,)}, "b": {"t": (1 - of_a,)}})
