"""Verdicts on sticky groups: members' earlier partitions, and their generation, are in their own subscriptions."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from assignors import CannotTell, Group, LeaderWouldFail, assign, to_pairs
from assignors.clients.sticky.claims import write_sticky
from streaming.groups.classic.membership import subscription_of
from streaming.groups.rows import DriftRow
from streaming.records import Member
from tests.examples import examples
from tests.groups.build import Life, declared, make_member, make_observation, make_record, make_topic
from tests.groups.verdicts import LIBRDKAFKA, judged, seen_for_long, verdict_of, with_assignment

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
    """The verdict on a decision whose topics the rounds have known for long."""
    life = Life(configured=changes.pop("configured", None))
    seen_for_long(life, *counts.items())
    life.take(
        make_record(2000, members, **changes),
        make_observation(2010, *(make_topic(topic, n) for topic, n in counts.items())),
    )
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
    life = Life(configured=declared(library))
    seen_for_long(life, ("x", 2))
    life.take(
        make_record(2000, (member,), protocol="cooperative-sticky"),
        make_observation(2010, make_topic("x", 2)),
        make_observation(3000, make_topic("x", 2)),
    )
    assert verdict_of(life).verdict == verdict


# Releases, the subscription version that they write, and whether it contains a generation.
_RELEASES = {"2.4.1": 1, "2.6.3": 1, "2.8.2": 1, "3.3.2": 1, "3.4.0": 3, "3.5.1": 3, "3.6.2": 3, "4.2.0": 3}


@pytest.mark.parametrize("strategy", ["sticky", pytest.param("cooperative-sticky", marks=pytest.mark.nightly)])
def test_chains_of_decisions_of_every_release_are_never_called_drifted(strategy: str) -> None:
    random = Random(strategy)
    verdicts: dict[str, int] = {}
    for _ in range(examples(600)):
        release = random.choice(list(_RELEASES))
        for row in _chain(random, strategy, release):
            verdicts[row] = verdicts.get(row, 0) + 1
    assert verdicts.get("drifted", 0) == 0
    assert verdicts["identical"] > 0.9 * sum(verdicts.values())


def _chain(random: Random, strategy: str, release: str) -> list[str]:
    version = _RELEASES[release]
    counts = {"x": random.randint(1, 6), "y": random.randint(0, 4), "z": random.randint(0, 3)}
    alike = random.random() < 0.5
    held: dict[str, tuple[tuple[tuple[str, tuple[int, ...]], ...], int]] = {}
    names = [f"consumer-{random.random()}" for _ in range(12)]
    present = [names.pop() for _ in range(random.randint(1, 4))]
    topics = {name: ("x", "y", "z") if alike else _some(random) for name in (*names, *present)}
    found = []
    for generation in range(1, 6):
        members = [
            _member(strategy, release, version, name, topics[name], *held.get(name, ((), -1))) for name in present
        ]
        known = {topic: count for topic, count in counts.items() if any(topic in m.topics for m in members)}  # type: ignore[operator]
        try:
            result = assign(strategy, Group(tuple(map(subscription_of, members)), known), release)
        except (CannotTell, LeaderWouldFail):
            return found
        life = Life()
        seen_for_long(life, *counts.items())
        life.take(
            make_record(2000, with_assignment(members, result), protocol=strategy, generation=generation),
            make_observation(2010, *(make_topic(topic, count) for topic, count in counts.items())),
        )
        found.append(verdict_of(life).verdict)
        for name in present:
            if random.random() < 0.9:  # otherwise the member stays behind with an old generation
                held[name] = _by_topic(to_pairs(result)[name]), generation
        if random.random() < 0.5 and names:
            present.insert(random.randrange(len(present) + 1), names.pop())
        elif len(present) > 1:
            present.pop(random.randrange(len(present)))
        if random.random() < 0.4:
            counts["x"] += random.randint(1, 2)
    return found


def _member(
    strategy: str,
    release: str,
    version: int,
    name: str,
    topics: tuple[str, ...],
    held: tuple[tuple[str, tuple[int, ...]], ...],
    generation: int,
) -> Member:
    data: bytes | None
    if strategy == "sticky":
        data = write_sticky(held, generation) if generation >= 0 else None
    else:
        data = None if release < "2.8.1" else struct.pack(">i", generation)
    return make_member(
        name,
        topics,
        owned=held if strategy == "cooperative-sticky" else (),
        generation=generation if version == 3 and generation >= 0 else None,
        subscription_version=version,
        user_data=data,
    )


def _by_topic(pairs: Sequence[tuple[str, int]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    topics: dict[str, list[int]] = {}
    for topic, partition in pairs:
        topics.setdefault(topic, []).append(partition)
    return tuple((topic, tuple(of)) for topic, of in topics.items())


def _some(random: Random) -> tuple[str, ...]:
    return tuple(random.sample(("x", "y", "z"), random.randint(1, 3)))
