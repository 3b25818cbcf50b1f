"""Rows of `what_if`: each strategy's balance and moves for one decision, including the strategy that runs."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from random import Random

import msgspec
import pytest

from assignors import CustomStrategies, CustomStrategy, Group, assign
from assignors.clients.sticky.claims import write_sticky
from streaming.groups import GroupConfig
from streaming.groups.classic.membership import subscription_of
from streaming.groups.rows import WhatIfRow
from streaming.records import Member
from tests.groups.build import CONFIG, Life, even, make_member, make_observation, make_record, make_topic
from tests.groups.verdicts import FIRST_TAKES_ALL, LIBRDKAFKA, the_row

ALL = ["range", "roundrobin", "sticky", "cooperative-sticky"]


def told(rows: Sequence[WhatIfRow]) -> dict[str, tuple[int | None, float | None]]:
    """Moves and imbalance by strategy."""
    return {row.strategy: (row.partitions_moved, row.imbalance) for row in rows}


def joined(config: GroupConfig = CONFIG, **changes: object) -> list[WhatIfRow]:
    """a and b had three of six partitions each, by range; c joins, and range reassigns."""
    life = Life(config)
    topic = make_topic("t", 6)
    life.take(make_record(5, even("t", 6, "a", "b")), make_observation(10, topic))
    life.rows.what_if.clear()
    members = [
        make_member(member.member_id, ("t",), dict(member.assigned or ()), **changes)
        for member in even("t", 6, "a", "b", "c")
    ]
    return life.take(make_record(12, members, generation=2), make_observation(20, topic)).what_if


def test_every_strategy_is_told_for_the_same_decision() -> None:
    rows = joined()

    assert [row.strategy for row in rows] == ALL
    # range gives 2 to b, 4 and 5 to c; roundrobin moves all but 0 and 4; one from each is the minimum.
    assert told(rows) == {"range": (3, 0.0), "roundrobin": (4, 0.0), "sticky": (2, 0.0), "cooperative-sticky": (2, 0.0)}
    assert {(row.partitions_moved_optimal, row.imbalance_optimal, row.reason) for row in rows} == {(2, 0.0, None)}
    assert {(row.decision, row.generation, row.incarnation, row.round) for row in rows} == {(12, 2, 5, 20)}


def test_the_strategy_that_runs_is_marked_and_stands_for_what_the_group_did() -> None:
    rows = joined()

    assert [row.strategy for row in rows if row.runs] == ["range"]
    assert the_row(rows, "range").library == "java:3.4"
    assert [row.library for row in rows if not row.runs] == ["java:2.4", "java:3.7.1", "java:3.7.1"]


def test_the_others_are_asked_as_the_same_client_where_it_has_them() -> None:
    rows = joined(**LIBRDKAFKA)

    assert the_row(rows, "range").library == "librdkafka:2.2"
    assert the_row(rows, "roundrobin").library == "librdkafka:1.5.3"
    assert the_row(rows, "cooperative-sticky").library == "librdkafka:2.6.1"
    assert the_row(rows, "sticky").library == "java:3.7.1"
    assert told(rows)["sticky"] == (2, 0.0)


def test_what_members_say_to_a_sticky_strategy_is_not_said_to_another() -> None:
    # A cooperative group: c joins a and b, who state their partitions in Java's bytes. The second generation is judged.
    life = Life()
    topic = make_topic("t", 6)

    def member(name: str, owned: Sequence[int], assigned: Sequence[int], generation: int) -> Member:
        of = {"t": tuple(assigned)} if assigned else {}
        had = (("t", tuple(owned)),) if owned else ()
        data = struct.pack(">i", generation)
        return make_member(name, ("t",), of, owned=had, generation=generation, user_data=data)

    def decided(record: int, generation: int, of: Mapping[str, tuple[Sequence[int], Sequence[int]]]) -> None:
        members = [member(name, owned, assigned, generation - 1) for name, (owned, assigned) in of.items()]
        life.take(make_record(record, members, generation=generation, protocol="cooperative-sticky"))

    decided(5, 1, {"a": ((), (0, 2, 4)), "b": ((), (1, 3, 5))})
    life.take(make_observation(10, topic))
    life.rows.what_if.clear()
    decided(12, 2, {"a": ((0, 2, 4), (0, 2)), "b": ((1, 3, 5), (1, 3)), "c": ((), ())})
    assert life.take(make_observation(20, topic)).what_if == []
    decided(22, 3, {"a": ((0, 2), (0, 2)), "b": ((1, 3), (1, 3)), "c": ((), (4, 5))})
    rows = life.take(make_observation(30, topic)).what_if

    assert life.rows.drift[-1].verdict == "identical"
    assert [row.strategy for row in rows if row.runs] == ["cooperative-sticky"]
    # From 0 2 4 | 1 3 5: range gives 0 1 | 2 3 | 4 5, roundrobin 0 3 | 1 4 | 2 5.
    assert told(rows) == {"range": (4, 0.0), "roundrobin": (4, 0.0), "sticky": (2, 0.0), "cooperative-sticky": (2, 0.0)}
    assert life.rows.rebalance_churn[-1].partitions_moved == 2


def test_what_members_say_in_an_eager_group_does_not_change_what_they_had() -> None:
    # range ignores the partitions in subscriptions, so the previous decision's are used.
    rows = joined(owned=(("t", (5,)),), generation=1)
    assert told(rows)["cooperative-sticky"] == (2, 0.0)


def test_a_drifted_decision_shows_what_its_strategy_would_have_given() -> None:
    life = Life()
    wrong = [make_member("a", ("t",), {"t": (0, 1, 2, 3)}), make_member("b", ("t",), {})]
    rows = life.take(make_record(5, wrong), make_observation(10, make_topic("t", 4))).what_if

    assert life.rows.drift[-1].verdict == "drifted"
    assert (the_row(rows, "range").imbalance, the_row(rows, "range").library) == (0.0, "java:3.5")
    assert the_row(rows, "range").runs is True


def test_a_strategy_nobody_knows_is_named_and_the_known_ones_are_told() -> None:
    life = Life()
    rows = life.take(
        make_record(5, even("t", 4, "a", "b"), protocol="pinned"), make_observation(10, make_topic("t", 4))
    ).what_if

    assert [row.strategy for row in rows] == [*ALL, "pinned"]
    pinned = the_row(rows, "pinned")
    assert (pinned.runs, pinned.partitions_moved, pinned.imbalance, pinned.library) == (True, None, None, None)
    assert pinned.reason == "strategy 'pinned' is not known"
    assert the_row(rows, "sticky").imbalance == 0.0


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_strategy_of_one_s_own_is_told_where_its_result_can_be(deterministic: bool) -> None:
    custom = CustomStrategy("mine", FIRST_TAKES_ALL, deterministic)
    life = Life(GroupConfig("test", custom=CustomStrategies((custom,))))
    rows = life.take(
        make_record(5, even("t", 4, "a", "b"), protocol="mine"), make_observation(10, make_topic("t", 4))
    ).what_if

    mine = the_row(rows, "mine")
    assert (mine.runs, mine.imbalance_optimal) == (True, 0.0)
    if deterministic:
        assert (mine.library, mine.imbalance, mine.reason) == ("custom", 1.0, None)
    else:
        assert (mine.library, mine.imbalance, mine.reason) == (
            None,
            None,
            "the strategy is not deterministic: its result is not known",
        )


def test_without_the_decision_before_no_moves_are_told_and_no_sticky_result() -> None:
    life = Life()
    rows = life.take(
        make_record(5, even("t", 4, "a", "b"), generation=7), make_observation(10, make_topic("t", 4))
    ).what_if

    assert {row.partitions_moved for row in rows} == {None}
    assert {row.partitions_moved_optimal for row in rows} == {None}
    assert {row.reason for row in rows} == {"the members' previous partitions are not known"}
    assert {row.strategy: row.imbalance for row in rows} == {
        "range": 0.0, "roundrobin": 0.0, "sticky": None, "cooperative-sticky": None
    }  # fmt: skip


def test_a_decision_above_the_size_has_one_row_with_the_reason() -> None:
    assert len(joined(GroupConfig("test", what_if_max_size=18))) == 4
    (row,) = joined(GroupConfig("test", what_if_max_size=17))

    assert (row.strategy, row.runs, row.partitions_moved, row.imbalance) == ("range", True, None, None)
    assert row.reason == (
        "6 partitions times 3 members are more than what_if_max_size (17): only smaller decisions are computed"
    )
    assert joined(GroupConfig("test", what_if_max_size=0)) == []


def test_a_group_that_assigns_no_partitions_or_is_empty_has_no_rows() -> None:
    life = Life.after(
        make_record(5, ()),
        make_observation(10),
        make_record(12, [make_member("a")], generation=2, protocol_type="connect", protocol="sessioned"),
        make_observation(20, make_topic()),
    )
    assert life.rows.what_if == []
    assert [row.verdict for row in life.rows.drift] == ["not_applicable", "unverified"]


def test_a_member_that_cannot_be_read_is_the_reason() -> None:
    life = Life()
    members = [make_member("a", None, {"t": (0,)}, undecodable="subscription: 3 bytes left")]
    (row,) = life.take(make_record(5, members), make_observation(10, make_topic("t", 1))).what_if
    assert (row.strategy, row.reason) == ("range", "member 'a': subscription: 3 bytes left")


def test_a_topic_that_no_round_shows_is_the_reason() -> None:
    life = Life.after(make_record(5, even("t", 2, "a", "b")), make_observation(10))
    (row,) = life.take(make_observation(1000)).what_if
    assert (row.strategy, row.reason) == ("range", "the partition count of topic 't' is not known")


def test_racks_that_the_verdict_went_by_are_what_others_go_by() -> None:
    # Replicas of 0 and 1 are in rack y, of 2 and 3 in x: Java's range since 3.5 gives each member those in its rack.
    life = Life()
    topic = make_topic("t", 4, racks=(("y",), ("y",), ("x",), ("x",)))
    members = [
        make_member("a", ("t",), {"t": (2, 3)}, rack="x"),
        make_member("b", ("t",), {"t": (0, 1)}, rack="y"),
    ]
    rows = life.take(make_record(5, members), make_observation(10, topic)).what_if

    assert life.rows.drift[-1].verdict == "identical"
    assert {row.strategy: (row.partitions_moved, row.imbalance, row.reason) for row in rows} == dict.fromkeys(
        ALL, (0, 0.0, None)
    )


def test_where_no_verdict_went_by_racks_the_others_go_by_those_of_the_newest_round() -> None:
    life = Life()
    topic = make_topic("t", 4, racks=(("y",), ("y",), ("x",), ("x",)))

    def members(of_a: Sequence[int], of_b: Sequence[int]) -> list[Member]:
        return [
            make_member("a", ("t",), {"t": tuple(of_a)}, rack="x"),
            make_member("b", ("t",), {"t": tuple(of_b)}, rack="y"),
        ]

    life.take(make_record(5, members((2, 3), (0, 1))), make_observation(10, topic))
    record = make_record(12, members((0, 2), (1, 3)), generation=2, protocol="house-blend")
    rows = life.take(record, make_observation(20, topic)).what_if

    in_racks = dict.fromkeys(ALL, (0, 0.0)) | {"roundrobin": (2, 0.0)}
    assert told(rows) == in_racks | {"house-blend": (None, None)}
    assert [row.reason for row in rows if not row.runs] == [None] * 4


def test_racks_count_where_only_some_members_tell_one() -> None:
    # Range would give a what is in its rack, 2 and 3, as it has.
    topic = make_topic("t", 4, racks=(("y",), ("y",), ("x",), ("x",)))
    members = [make_member("a", ("t",), {"t": (2, 3)}, rack="x"), make_member("b", ("t",), {"t": (0, 1)})]
    rows = Life().take(make_record(5, members, protocol="house-blend"), make_observation(10, topic)).what_if
    assert told(rows)["range"] == (0, 0.0)


@pytest.mark.parametrize("strategy", ALL)
def test_what_runs_has_the_moves_of_its_churn_row_and_the_balance_of_its_health(strategy: str) -> None:
    random, life, generation, had = Random(strategy), Life(), 0, dict[str, tuple[int, ...]]()
    topic = make_topic("t", 7)
    for _ in range(12):
        names = random.sample(["a", "b", "c", "d", "e"], random.randint(1, 4))
        while True:
            generation += 1
            members = [_said(strategy, name, had.get(name, ()), generation - 1) for name in names]
            given = assign(strategy, Group(tuple(map(subscription_of, members)), {"t": 7}))
            now = {name: tuple(given[name].get("t", ())) for name in names}
            members = [msgspec.structs.replace(member, assigned=(("t", now[member.member_id]),)) for member in members]
            record = make_record(10 * generation, members, generation=generation, protocol=strategy)
            rows = life.take(record, make_observation(10 * generation + 5, topic))
            had = now
            if sum(map(len, now.values())) == 7:
                break
            assert rows.what_if == []
        assert rows.drift[0].verdict == "identical"
        (runs,) = (row for row in rows.what_if if row.runs)
        churn = next(row for row in rows.rebalance_churn if row.decision == record.record)
        health = life.rows.group_health[-1]
        assert (runs.partitions_moved, runs.partitions_moved_optimal) == (
            churn.partitions_moved,
            churn.partitions_moved_optimal,
        )
        assert (runs.imbalance, runs.imbalance_optimal) == (health.imbalance, health.imbalance_optimal)
        assert runs.partitions_moved is not None
        assert runs.partitions_moved >= the_row(rows.what_if, "sticky").partitions_moved  # type: ignore[operator]
    assert generation > 12 or strategy != "cooperative-sticky"


def _said(strategy: str, name: str, had: tuple[int, ...], generation: int) -> Member:
    """A Java member that states its partitions in its strategy's format."""
    owned = (("t", had),) if had else ()
    if strategy == "sticky":
        return make_member(
            name, ("t",), generation=generation, user_data=write_sticky(owned, generation) if had else None
        )
    if strategy == "cooperative-sticky":
        return make_member(name, ("t",), owned=owned, generation=generation, user_data=struct.pack(">i", generation))
    return make_member(name, ("t",), generation=generation)
