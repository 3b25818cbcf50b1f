"""Verdicts for members with racks: the replicas' racks in the rounds, and changes between two rounds.

Brokers 1 and 2 are in the racks r1 and r2, like the members. Assignments are computed by hand.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from assignors import Assignment, CustomStrategies, CustomStrategy, Group, PartitionRacks
from streaming.groups import GroupConfig
from streaming.groups.classic.leader_metadata import newest_racks
from streaming.groups.rows import DriftRow
from streaming.records import Member
from tests.groups.build import Life, declared, make_member, make_observation, make_record, make_topic
from tests.groups.verdicts import JAVA, LIBRDKAFKA, verdict_of

Racks = tuple[tuple[str, ...], ...] | None

# The first of two partitions is only in r2, the second only in r1: a, in r1, takes the second.
CROSSED = (("r2",), ("r1",))
STRAIGHT = (("r1",), ("r2",))
EVERYWHERE = (("r1", "r2"), ("r2", "r1"))
FOREIGN = (("x",), ("y",))
HIDDEN = "it fits no racks that rounds have seen; a leader sees other racks while a broker is down"
UNTRIED = "it fits none of the racks that were tried, and the racks have changed too often to try all"
RACK_AWARE = declared("librdkafka:2.3", "java:4.2")
UNKNOWN = "members have racks, and the racks of the replicas are not known"


def two(of_a: Sequence[int], of_b: Sequence[int], **client: Any) -> tuple[Member, ...]:
    return (
        make_member("a", ("x",), {"x": of_a} if of_a else {}, rack="r1", **client),
        make_member("b", ("x",), {"x": of_b} if of_b else {}, rack="r2", **client),
    )


def shown(*rounds: tuple[int, Racks], life: Life | None = None) -> Life:
    """A group whose rounds show topic x with these racks at these seconds."""
    life = life or Life()
    for second, racks in rounds:
        life.take(make_observation(second, make_topic("x", len(racks or ()) or 2, racks=racks)))
    return life


def judged(*members: Member, before: Racks, after: Racks | str = "same", **changes: Any) -> DriftRow:
    """The verdict on a decision at 2000, with the given racks in all rounds before it, and in the one after it."""
    life = Life(changes.pop("config", Life().config), changes.pop("configured", None))
    shown((1, before), (1990, before), life=life)
    life.take(make_record(2000, members, **changes))
    return verdict_of(shown((2005, before if isinstance(after, str) else after), life=life))


RESTARTS: list[Racks] = [((f"x{n}",), (f"y{n}",)) for n in range(8)]
FITS: tuple[str, str | None] = ("identical", None)
WRONG: tuple[str, str | None] = ("drifted", "none of the declared clients gives this assignment")
OPEN: tuple[str, str | None] = ("unverified", HIDDEN)
BY_RACK, PLAIN = ((1,), (0,)), ((0,), (1,))


def restarts(changes: int, then: Racks) -> list[tuple[int, Racks]]:
    """Racks that have changed so often since 1700; the newest are still shown at 2005."""
    since = [(1710 + 10 * n, racks) for n, racks in enumerate(RESTARTS[:changes])]
    return [(1, then), (1700, then), *since, (1990, RESTARTS[changes - 1]), (2005, RESTARTS[changes - 1])]


# Rounds, what a and b are given between those at 1990 and 2005, their clients, and the verdict where librdkafka 2.3 and
# Java 4.2 are declared.
Given = tuple[Sequence[int], Sequence[int]]
LEADERS: dict[str, tuple[list[tuple[int, Racks]], Given, Mapping[str, Any], tuple[str, str | None]]] = {
    **{
        f"dealt by racks by {name}": ([(1, CROSSED), (1990, CROSSED), (2005, CROSSED)], BY_RACK, client, FITS)
        for name, client in (("java", JAVA), ("librdkafka", LIBRDKAFKA))
    },
    **{
        f"dealt plainly by {name} where racks change nothing: {racks}": (
            [(1, racks), (1990, racks), (2005, racks)],
            PLAIN,
            client,
            FITS,
        )
        for racks in (STRAIGHT, EVERYWHERE, FOREIGN, None)
        for name, client in (("java", JAVA), ("librdkafka", LIBRDKAFKA))
    },
    # Eight states are tried: the present one, and the one before each of the seven newest changes.
    "racks that changed seven times are all tried": (restarts(7, CROSSED), BY_RACK, LIBRDKAFKA, FITS),
    "racks that changed too often may be those that a leader knew": (
        restarts(8, CROSSED),
        BY_RACK,
        LIBRDKAFKA,
        ("unverified", UNTRIED),
    ),
    "unless no replica was in a member's rack in any state that is not tried": (
        restarts(8, FOREIGN),
        BY_RACK,
        LIBRDKAFKA,
        WRONG,
    ),
    **{
        f"racks that changed around the decision: {before} to {after}, {given}": (
            [(1, before), (1990, before), (2005, after)],
            given,
            LIBRDKAFKA,
            FITS,
        )
        for before, after in ((CROSSED, None), (None, CROSSED), (CROSSED, STRAIGHT), (STRAIGHT, CROSSED))
        for given in (BY_RACK, PLAIN)
    },
    **{
        f"racks last shown at {last} may be within the age of the leader's metadata": (
            [(1, CROSSED), (last, CROSSED), (last + 10, STRAIGHT), (1990, STRAIGHT), (2005, STRAIGHT)],
            BY_RACK,
            JAVA,
            expected,
        )
        for last, expected in ((1500, FITS), (1300, OPEN))
    },
    "racks from before any metadata of the leader explain nothing": (
        [(1, CROSSED), (900, CROSSED), (910, FOREIGN), (1990, FOREIGN), (2005, FOREIGN)],
        BY_RACK,
        LIBRDKAFKA,
        WRONG,
    ),
    "what fits no racks that were seen may fit those of a moment between two rounds": (
        [(1, EVERYWHERE), (1990, EVERYWHERE), (2005, EVERYWHERE)],
        BY_RACK,
        LIBRDKAFKA,
        OPEN,
    ),
    **{
        f"where no broker is in a member's rack: {racks}": (
            [(1, racks), (1990, racks), (2005, racks)],
            BY_RACK,
            LIBRDKAFKA,
            WRONG,
        )
        for racks in (FOREIGN, None)
    },
    # The leader decided after the round at 1990 s, and its metadata was at most ten minutes old: from 1390 s.
    **{
        f"a broker may have been down since before the first round at {first}": (
            [(first, FOREIGN), (1990, FOREIGN), (2005, FOREIGN)],
            BY_RACK,
            JAVA,
            expected,
        )
        for first, expected in ((1390, WRONG), (1391, OPEN))
    },
}


@pytest.mark.parametrize("case", LEADERS)
def test_a_leader_is_judged_by_the_racks_that_it_may_have_known(case: str) -> None:
    (*before, after), (of_a, of_b), client, expected = LEADERS[case]
    life = shown(*before, life=Life(configured=RACK_AWARE))
    life.take(make_record(2000, two(of_a, of_b, **client)))
    row = verdict_of(shown(after, life=life))
    assert (row.verdict, row.reason) == expected


def test_no_racks_make_a_range_uneven_so_that_is_drifted() -> None:
    row = judged(*two((0, 1), (), **LIBRDKAFKA), before=CROSSED)
    assert row.verdict == "drifted"
    assert [(d.partition, d.expected, d.actual) for d in row.drifted_partitions] == [(0, "b", ("a",))]


def test_franz_go_may_have_dealt_by_the_racks_of_leaders() -> None:
    row = judged(*two((1,), (0,)), before=STRAIGHT, configured=declared("franz-go"))
    assert row.verdict == "unverified"
    assert "rack of each partition's leader" in str(row.reason)


def test_before_a_round_has_told_racks_only_what_fits_is_said() -> None:
    """As after an upgrade: the state has the topic's count, but not its racks."""
    for of_a, of_b, expected in (((1,), (0,), "identical"), ((0,), (1,), "unverified")):
        life = Life(configured=RACK_AWARE)
        life.take(make_observation(1, make_topic("x", 2)), make_observation(1990, make_topic("x", 2)))
        life.state.topics["x"].racks.clear()
        life.take(
            make_record(2000, two(of_a, of_b, **LIBRDKAFKA)), make_observation(2005, make_topic("x", 2, racks=CROSSED))
        )
        assert verdict_of(life).verdict == expected


def test_members_with_racks_are_unverified_where_no_round_has_told_any() -> None:
    life = Life(configured=RACK_AWARE)
    life.take(make_observation(1, make_topic("x", 2)), make_record(5, two((0,), (1,), **LIBRDKAFKA)))
    life.state.topics["x"].racks.clear()
    # The topic is gone at the next round, so that round has no racks.
    life.take(make_observation(1000, make_topic("x", None)))
    row = verdict_of(life)
    assert (row.verdict, row.reason) == ("unverified", UNKNOWN)


def test_a_topic_that_grows_around_the_decision_is_dealt_by_the_racks_of_as_many_partitions_as_the_leader_knew() -> (
    None
):
    grown = (*CROSSED, *CROSSED)
    for first, of_a, of_b in ((CROSSED, (1,), (0,)), (CROSSED, (1, 3), (0, 2)), (grown, (1, 3), (0, 2))):
        life = shown((1, CROSSED), (1980, first), (1990, first))
        members = two(of_a, of_b, **LIBRDKAFKA)
        life.take(make_record(2000, members), make_observation(2005, make_topic("x", 4, racks=grown)))
        assert verdict_of(life).verdict == "identical"


def test_an_empty_rack_is_none_to_java_and_holds_nothing_to_librdkafka() -> None:
    """Both had 0 and 1 of x. By racks b, in r1, may keep neither; for librdkafka, nor may a with its empty rack."""

    def group(user_data: bytes, **client: Any) -> tuple[Member, ...]:
        of_client = {"user_data": user_data, "generation": 4, **client}
        return (
            make_member("a", ("x",), {"x": (0,)}, rack="", owned=(("x", (0,)),), **of_client),
            make_member("b", ("x",), {"x": (1,)}, rack="r2", owned=(("x", (1,)),), **of_client),
        )

    java = group(struct.pack(">i", 4))
    assert judged(*java, before=STRAIGHT, protocol="cooperative-sticky").verdict == "identical"
    # librdkafka takes 0 away from a, which gets it back if no member in its rack can have it.
    librdkafka = group(b"", client_id="rdkafka")
    assert judged(*librdkafka, before=STRAIGHT, protocol="cooperative-sticky").matching_library == "librdkafka:2.2"


def test_the_members_table_shows_an_empty_rack_as_none() -> None:
    life = Life.after(make_record(5, (make_member("a", ("x",), {"x": (0,)}, rack=""),)))
    assert [row.rack for row in life.rows.members] == [None]


@pytest.mark.parametrize("racks", [200, 300, 70_000])
def test_any_number_of_different_racks_comes_back(racks: int) -> None:
    told = tuple((f"r{n}",) for n in range(racks))
    life = Life.after(make_observation(1, make_topic("x", racks, racks=told)))
    assert newest_racks(life.state, {"x": racks}) == {"x": list(told)}


def by_rack(group: Group, racks: PartitionRacks | None) -> Assignment:
    """Each partition to the first member in its rack; without racks all to the last member."""
    result: dict[str, dict[str, tuple[int, ...]]] = {member.member_id: {} for member in group.members}
    for topic, count in group.partitions_per_topic.items():
        for partition in range(count):
            of_partition = racks[topic][partition] if racks is not None else ()
            found = [m.member_id for m in group.members if m.rack in of_partition] or [group.members[-1].member_id]
            result[found[0]][topic] = (*result[found[0]].get(topic, ()), partition)
    return {member_id: dict(topics) for member_id, topics in result.items()}


def first_takes_all(group: Group, _racks: PartitionRacks | None) -> Assignment:
    return {group.members[0].member_id: {topic: range(count) for topic, count in group.partitions_per_topic.items()}}


@pytest.mark.parametrize(
    ("strategy", "of_a", "of_b", "racks", "verdict"),
    [
        ("by_rack", (1,), (0,), CROSSED, "identical"),
        ("by_rack", (), (0, 1), None, "identical"),
        ("by_rack", (0,), (1,), CROSSED, "unverified"),
        ("by_rack", (0,), (1,), None, "drifted"),
        # This strategy ignores racks, so racks cannot explain a difference.
        ("first_takes_all", (0, 1), (), CROSSED, "identical"),
        ("first_takes_all", (0,), (1,), CROSSED, "drifted"),
    ],
)
def test_a_strategy_of_one_s_own_is_given_the_racks(
    strategy: str, of_a: Sequence[int], of_b: Sequence[int], racks: Racks, verdict: str
) -> None:
    config = GroupConfig("test", custom=CustomStrategies((CustomStrategy("mine", f"{__name__}:{strategy}"),)))
    assert judged(*two(of_a, of_b), before=racks, protocol="mine", config=config).verdict == verdict
