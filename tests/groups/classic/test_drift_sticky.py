"""Verdicts on sticky groups: members' earlier partitions, and their generation, are in their own subscriptions."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from assignors import Assignment, CannotTell, LeaderWouldFail, Subscription, assign
from assignors.clients.sticky.claims import write_sticky
from streaming.groups.rows import DriftRow
from streaming.records import Member
from tests.assignors.sticky_chains import chain
from tests.examples import examples
from tests.groups.build import Life, declared, make_member, make_observation, make_record, make_topic
from tests.groups.verdicts import LIBRDKAFKA, judged, seen_for_long, verdict_of
from tests.oracle.java_assignors import Case

Parts = Mapping[str, Sequence[int]]
NOTHING: Parts = {}


def cooperative(member_id: str, had: Parts, assigned: Parts, generation: int = -1, **changes: Any) -> Member:
    """A member of a Java client from 3.4 on, subscribed to x and y."""
    return make_member(
        member_id,
        ("x", "y"),
        assigned,
        owned=tuple((topic, tuple(of)) for topic, of in had.items()),
        generation=generation if generation >= 0 else None,
        **({"user_data": struct.pack(">i", generation)} | changes),
    )


def sticky(member_id: str, had: Parts, assigned: Parts, generation: int = -1) -> Member:
    data = write_sticky(tuple((topic, tuple(of)) for topic, of in had.items()), generation) if had else None
    return make_member(
        member_id, ("x", "y"), assigned, generation=generation if generation >= 0 else None, user_data=data
    )


def judged_later(*members: Member, counts: Mapping[str, int], **changes: Any) -> DriftRow:
    """The verdict on a decision whose topics the rounds have known for long, and show until the grace is over."""
    life = Life(configured=changes.pop("configured", None))
    seen_for_long(life, *counts.items())
    topics = [make_topic(topic, n) for topic, n in counts.items()]
    life.take(make_record(2000, members, **changes), *(make_observation(at, *topics) for at in (2010, 3000)))
    return verdict_of(life)


COOPERATIVE = {"protocol": "cooperative-sticky"}
ALL: Parts = {"x": (0, 1, 2), "y": (0, 1)}
DECLARED = declared("java:3.4", "java:3.4.1", "java:3.5", "java:3.5.2", "java:3.7.1")

# Members, partition counts, what else is given, and columns of the verdict on a first decision.
FIRST_SEEN: dict[str, tuple[list[Member], dict[str, int], dict[str, Any], dict[str, object]]] = {
    "the first generation of a cooperative group": (
        [
            cooperative("a", NOTHING, {"x": (0, 2), "y": (1,)}),
            cooperative("b", NOTHING, {"x": (1,), "y": (0,)}),
        ],
        {"x": 3, "y": 2},
        COOPERATIVE,
        {"verdict": "identical", "matching_library": "java:3.4"},
    ),
    "a newcomer's partitions are held back": (
        [cooperative("a", ALL, {"x": (0, 1), "y": (0,)}, generation=1), cooperative("b", NOTHING, NOTHING)],
        {"x": 3, "y": 2},
        COOPERATIVE | {"generation": 2},
        {"verdict": "identical", "matching_library": "java:3.7.1"},
    ),
    "for one generation": (
        [
            cooperative("a", {"x": (0, 1), "y": (0,)}, {"x": (0, 1), "y": (0,)}, generation=2),
            cooperative("b", NOTHING, {"x": (2,), "y": (1,)}, generation=2),
        ],
        {"x": 3, "y": 2},
        COOPERATIVE | {"generation": 3},
        {"verdict": "identical"},
    ),
    "a last partition in transfer does not make the topic look smaller": (
        [
            cooperative("a", {"x": (0, 1), "y": (0,)}, {"x": (0,), "y": (0,)}, generation=1),
            cooperative("b", NOTHING, NOTHING),
        ],
        {"x": 2, "y": 1},
        COOPERATIVE | {"generation": 2},
        {"verdict": "identical", "matching_library": "java:3.7.1"},
    ),
    "a sticky group keeps what its user data says": (
        [
            sticky("a", {"x": (2,), "y": (0, 1)}, {"x": (2,), "y": (0, 1)}, generation=4),
            sticky("b", {"x": (0, 1)}, {"x": (0, 1)}, generation=4),
        ],
        {"x": 3, "y": 2},
        {"protocol": "sticky", "generation": 5},
        {"verdict": "identical"},
    ),
    "of two generations the higher one's claims hold": (
        [
            sticky("a", {"x": (0, 1)}, {"x": (0,), "y": (0,)}, generation=3),
            sticky("b", {"x": (1, 2)}, {"x": (1, 2), "y": (1,)}, generation=4),
        ],
        {"x": 3, "y": 2},
        {"protocol": "sticky", "generation": 5},
        {"verdict": "identical"},
    ),
    **{
        f"a sticky group dealt anew where the leader may remember more: {expected}": (
            [
                sticky("a", {"x": (2,), "y": (0, 1)}, {"x": (0, 2), "y": (1,)}, generation=4),
                sticky("b", {"x": (0, 1)}, {"x": (1,), "y": (0,)}, generation=4),
            ],
            {"x": 3, "y": 2},
            {"protocol": "sticky", "generation": 5, "configured": configured},
            {"verdict": expected},
        )
        for configured, expected in ((declared("java"), "unverified"), (None, "identical"))
    },
}


@pytest.mark.parametrize("case", FIRST_SEEN)
def test_a_sticky_leader_is_judged_by_what_members_say_that_they_had(case: str) -> None:
    members, counts, given, columns = FIRST_SEEN[case]
    row = judged(*members, counts=counts, **given)
    assert {name: getattr(row, name) for name in columns} == columns


# Every release leaves two of the three with their owner.
GIVEN_UP = [cooperative("a", {"x": (0,), "y": (0, 1)}, {"y": (0,)}, generation=1), cooperative("b", NOTHING, NOTHING)]


@pytest.mark.parametrize(
    ("members", "counts", "lost"),
    [
        (GIVEN_UP, {"x": 1, "y": 2}, ("x", 0)),
        (
            [cooperative("a", ALL, {"x": (0,)}, generation=1), cooperative("b", NOTHING, NOTHING)],
            {"x": 3, "y": 2},
            ("x", 1),
        ),
    ],
    ids=["one too many", "all but one"],
)
def test_partitions_given_up_beyond_what_the_strategy_holds_back_are_drift(
    members: Sequence[Member], counts: dict[str, int], lost: tuple[str, int]
) -> None:
    row = judged_later(*members, counts=counts, **COOPERATIVE, generation=2, configured=DECLARED)
    assert (row.verdict, row.candidates) == ("drifted", 5)
    assert (*lost, "unassigned") in {(d.topic, d.partition, d.kind) for d in row.drifted_partitions}


ANY_ORDER = "the result depends on the order in which the broker listed the topics"


@pytest.mark.parametrize(
    ("given_a", "given_b", "expected"),
    [
        ({"x": (0, 1)}, {"y": (0, 1)}, ("identical", "librdkafka:2.2", None)),
        ({"x": (0,), "y": (1,)}, {"x": (1,), "y": (0,)}, ("identical", "librdkafka:2.2", None)),
        ({"x": (0, 1), "y": (1,)}, {"y": (0,)}, ("unverified", None, ANY_ORDER)),
    ],
)
def test_librdkafka_may_have_been_told_the_topics_in_any_order(
    given_a: Parts, given_b: Parts, expected: tuple[str, str | None, str | None]
) -> None:
    """By hand: x-1 and y-1 were left; the first goes to the first member, whichever topic comes first."""
    row = judged_later(
        cooperative("a", {"x": (0,)}, given_a, **LIBRDKAFKA),
        cooperative("b", {"y": (0,)}, given_b, **LIBRDKAFKA),
        counts={"x": 2, "y": 2},
        protocol="cooperative-sticky",
    )
    assert (row.verdict, row.matching_library, row.reason) == expected


# What a real group of confluent-kafka 2.16 decided after a static member had come back with fewer topics, cut down.
_HAD: Parts = {"x": (0, 1, 2), "y": (0, 1), "z": (0, 1)}
_KEPT: Parts = {"x": (0, 1, 2), "y": (0, 1)}


def decided(assigned: Parts, **given: Any) -> tuple[Member, Member]:
    """What a member that subscribes to y alone, and claims all it had, is given beside a newcomer who waits for z."""
    given = {"user_data": struct.pack(">i", 1)} | given
    owned = tuple((topic, tuple(of)) for topic, of in _HAD.items())
    return (
        make_member("a", ("y",), assigned, owned=owned, generation=1, group_instance_id="s0", **given),
        make_member("b", ("y", "z"), **given),
    )


def judged_after_its_return(assigned: Parts, *, strategy: str = "cooperative-sticky", **library: Any) -> DriftRow:
    """The verdict on that decision, after the first one and the record of the member's return have been read."""
    life = Life(configured=library.pop("configured", None))
    given = {"group_instance_id": "s0", "user_data": struct.pack(">i", -1)} | library
    topics = [make_topic("x", 3), make_topic("y", 2), make_topic("z", 2)]
    seen_for_long(life, ("x", 3), ("y", 2), ("z", 2))
    life.take(
        make_record(1995, (make_member("first", ("x", "y", "z"), _HAD, **given),), protocol=strategy),
        make_record(1996, (make_member("a", ("y",), _HAD, **given),), protocol=strategy),
        make_observation(1998, *topics),
        make_record(2000, decided(assigned, **library), generation=2, protocol=strategy),
        make_observation(2010, *topics),
    )
    assert [row.decision for row in life.rows.drift] == [1995, 2000]
    return life.rows.drift[-1]


def test_librdkafka_leaves_a_member_what_it_owns_and_nobody_subscribes_to() -> None:
    row = judged_after_its_return(_KEPT, **LIBRDKAFKA)
    assert (row.verdict, row.matching_library, row.drifted_partitions) == ("identical", "librdkafka:2.2", ())


def test_what_a_member_keeps_beside_another_assignment_is_open_where_franz_go_may_have_led() -> None:
    row = judged_after_its_return({"x": (0, 1, 2), "y": (0,)}, **LIBRDKAFKA)
    assert (row.verdict, row.reason) == (
        "unverified",
        "franz-go's sticky strategies are not recomputed for different subscriptions",
    )


def test_range_gives_nothing_back_so_that_what_nobody_subscribes_to_is_drift_where_clients_are_declared() -> None:
    given = LIBRDKAFKA | {"strategy": "range"}
    assert judged_after_its_return(_KEPT, **given).verdict == "unverified"
    row = judged_after_its_return(_KEPT, configured=declared("librdkafka"), **given)
    assert (row.verdict, row.basis) == ("drifted", "declared")


def test_what_a_member_keeps_without_a_subscription_is_drift_only_where_the_declared_clients_drop_it() -> None:
    for configured, expected in ((None, "identical"), (declared("java"), "drifted")):
        assert judged_after_its_return(_KEPT, configured=configured).verdict == expected


@pytest.mark.parametrize(("library", "verdict"), [("librdkafka", "identical"), ("java", "drifted")])
def test_librdkafka_leaves_a_member_what_it_owns_and_does_not_exist(library: str, verdict: str) -> None:
    given = {"user_data": struct.pack(">i", 1)}
    member = make_member("a", ("x",), {"x": (0, 1, 2)}, owned=(("x", (0, 1, 2)),), generation=1, **given)
    row = judged_later(member, counts={"x": 2}, configured=declared(library), **COOPERATIVE)
    assert row.verdict == verdict


_RELEASES = ("2.4.1", "2.6.3", "2.8.2", "3.3.2", "3.4.0", "3.5.1", "3.6.2", "4.2.0")


@pytest.mark.parametrize("strategy", ["sticky", pytest.param("cooperative-sticky", marks=pytest.mark.nightly)])
def test_of_chains_of_decisions_of_every_release_none_with_one_owner_each_is_called_drifted(strategy: str) -> None:
    random, verdicts = Random(strategy), Counter[str]()

    def decide(case: Case) -> Assignment | None:
        """The leader's assignment, of which the core gives a verdict."""
        try:
            given = assign(strategy, case.group, release)
        except (CannotTell, LeaderWouldFail):
            return None
        members = [written(told, given) for told in case.group.members]
        row = judged_later(*members, counts=case.group.partitions_per_topic, protocol=strategy, generation=9)
        # With claims that contradict each other, Java's class gives a partition to two members: that is drift.
        owned = [(topic, number) for of in given.values() for topic, numbers in of.items() for number in set(numbers)]
        verdicts[row.verdict if len(owned) == len(set(owned)) else "two owners"] += 1
        return given

    while verdicts.total() < examples(2_000):
        release = random.choice(_RELEASES)
        for _ in chain(random, strategy, decide, steps=5, tidy=random.random() < 0.5):
            pass
    assert verdicts["drifted"] == 0
    assert verdicts["identical"] > 0.8 * verdicts.total()


def written(told: Subscription, given: Assignment) -> Member:
    """What the record of the decision has of a member."""
    return make_member(
        told.member_id,
        told.topics,
        {topic: tuple(of) for topic, of in given[told.member_id].items()},
        owned=told.owned,
        generation=told.generation,
        group_instance_id=told.group_instance_id,
        subscription_version=1 if told.generation is None else 3,
        user_data=told.user_data,
    )
