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
from assignors.clients.sticky.claims import write_sticky
from assignors.context import at_most
from tests.assignors.clients.sticky.members import claiming
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


def test_partitions_that_crowd_a_bucket_of_the_smallest_table_cannot_be_told() -> None:
    # `TopicPartition.hashCode` is 31 * (31 + number) + 116 for t: every sixteenth falls into one of 16 places.
    def claimed(count: int) -> Group:
        sixteenth = tuple(range(0, 16 * count, 16))
        return Group((claiming("a", "t", t=sixteenth), claiming("b", "t")), {"t": 129})

    assert counts(assign("sticky", claimed(8), "2.4.1")) == {"a": 65, "b": 64}
    with pytest.raises(CannotTell, match="bucket"):
        assign("sticky", claimed(9), "2.4.1")
