"""Causes of a classic group's rebalances: what the log proves, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups.causes import MEMBERS_SHOWN
from streaming.records import Compacted, GroupInput
from tests.groups.build import (
    START,
    Life,
    causes_of,
    decisions_of,
    even,
    make_commits,
    make_cooperative,
    make_member,
    make_observation,
    make_record,
)


def two(record: int, generation: int, **changes: Any) -> GroupInput:
    return make_record(record, even("x", 4, "a", "b"), generation=generation, **changes)


def three(record: int, generation: int = 1, **changes: Any) -> GroupInput:
    return make_record(record, even("x", 4, "a", "b", "c"), generation=generation, **changes)


def timed(record: int, generation: int, *names: str, rebalance_timeout: int = 300_000, **sessions: int) -> GroupInput:
    """Members with a partition each, and with these session timeouts where they are named."""
    members = [
        make_member(
            name,
            ("x",),
            {"x": (at,)},
            rebalance_timeout=rebalance_timeout,
            session_timeout=sessions.get(name, 45_000),
        )
        for at, name in enumerate(names)
    ]
    return make_record(record, members, generation=generation)


def static(record: int, generation: int, *members: tuple[str, str], topics: tuple[str, ...] = ("x",)) -> GroupInput:
    made = [
        make_member(name, topics, {"x": range(at, 2, len(members))}, group_instance_id=instance)
        for at, (instance, name) in enumerate(members)
    ]
    return make_record(record, made, generation=generation)


def subscribing(record: int, generation: int, **topics: tuple[str, ...]) -> GroupInput:
    return make_record(record, [make_member(name, of) for name, of in topics.items()], generation=generation)


def connect(record: int, generation: int, *workers: str) -> GroupInput:
    members = [make_member(worker, None, assigned=None) for worker in workers]
    return make_record(record, members, generation=generation, protocol_type="connect", protocol="sessioned")


def of_counts(*counts: int, protocol: str = "range") -> list[GroupInput]:
    """A decision about `x` with each of these partition counts, a quarter of an hour apart; 0 without metadata."""
    return [
        make_record(
            5 + 900 * at,
            even("x", count, "a") if count else (make_member("a", ("x",)),),
            generation=at + 1,
            protocol=protocol,
        )
        for at, count in enumerate(counts)
    ]


MANY = tuple(f"m{number:04}" for number in range(2_000))
TOPICS = tuple(f"t{number:03}" for number in range(100))
UNDECODED = make_member("a", None, assigned=None, undecodable="subscription: cut")
HELD = (
    make_cooperative(5, 1, a=(0, 1, 2)),
    make_cooperative(9, 2, a=(0, 1), b=()),
    make_cooperative(11, 3, a=(0, 1), b=(2,)),
)


@pytest.mark.parametrize(
    ("inputs", "causes"),
    [
        pytest.param([two(5, 1)], ["member_joined a b"], id="the first members of a new group joined"),
        pytest.param([make_record(3, generation=0, protocol_type="")], [], id="none for a group made without members"),
        pytest.param([two(5, 41)], ["unknown"], id="what came before the first record of an older group is unknown"),
        pytest.param([two(5, 1), three(900, 2)], ["member_joined c"], id="a member that joined is named"),
        pytest.param([make_record(5, even("x", 4_000, *MANY))], [" ".join(("member_joined", *MANY[:MEMBERS_SHOWN]))]),
        # How members went. From half of the timeout on the brokers' clocks are not trusted.
        pytest.param([three(5), two(25, 2)], ["member_left c"], id="before any timeout can have ended it left"),
        pytest.param([three(5), two(28, 2)], ["member_gone c"], id="from half of a timeout on it may have expired"),
        pytest.param([three(5), two(4_005, 2)], ["member_gone c"], id="long after it may have expired"),
        pytest.param(
            [timed(5, 1, "a", "b", rebalance_timeout=9_000), timed(9, 2, "a")],
            ["member_left b"],
            id="before a short rebalance timeout",
        ),
        pytest.param(
            [timed(5, 1, "a", "b", rebalance_timeout=9_000), timed(10, 2, "a")],
            ["member_gone b"],
            id="a short rebalance timeout is a timeout too",
        ),
        pytest.param(
            [timed(5, 1, "quick", "slow", "stays", quick=6_000), timed(15, 2, "stays")],
            ["member_left slow", "member_gone quick"],
            id="each member has its own timeouts",
        ),
        pytest.param([three(5, state_time=-1), two(6, 2)], ["member_gone c"], id="no time of the join phase before"),
        pytest.param([three(5), two(6, 2, state_time=-1)], ["member_gone c"], id="no time of the join phase now"),
        pytest.param([three(20, time=START + 25_001), two(25, 2)], ["member_gone c"], id="a clock went back"),
        pytest.param([two(5, 1), make_record(900, generation=2)], ["member_gone a b"], id="the last members are gone"),
        pytest.param(
            [two(5, 1), make_record(900, generation=2), make_record(950, generation=3)],
            ["unknown"],
            id="an empty group that becomes empty again",
        ),
        # Static members.
        pytest.param(
            [static(5, 1, ("i", "old")), static(9, 1, ("i", "new"))], ["static_replacement new"], id="a static return"
        ),
        pytest.param(
            [static(5, 1, ("i", "old"), ("j", "other")), static(25, 2, ("i", "old"))],
            ["member_left other"],
            id="without a return before",
        ),
        pytest.param(
            [
                static(5, 1, ("i", "old"), ("j", "other")),
                static(20, 1, ("i", "new"), ("j", "other")),
                static(25, 2, ("i", "new")),
            ],
            ["member_gone other"],
            id="after a static member's return the time of the join phase is not known",
        ),
        pytest.param(
            [static(5, 1, ("i", "old")), static(900, 2, ("i", "new"), ("j", "other"))],
            ["member_joined other", "static_replacement new"],
            id="a static member that returns in a rebalance neither joined nor left",
        ),
        pytest.param(
            [static(5, 1, ("i", "old")), static(900, 2, ("i", "new"), topics=("x", "y"))],
            ["static_replacement new", "subscription_changed new"],
            id="a replaced member's new subscription is a change",
        ),
        # Subscriptions, strategies, generations.
        pytest.param(
            [subscribing(5, 1, a=("x", "y"), b=("x",)), subscribing(900, 2, a=("x",), b=("x", "z"), c=("q",))],
            ["member_joined c", "subscription_changed a b"],
            id="members that add or remove topics are named",
        ),
        pytest.param(
            [subscribing(5, 1, a=("x", "y")), subscribing(900, 2, a=("y", "x"))],
            ["rejoined"],
            id="the order of a subscription is no change",
        ),
        pytest.param([two(5, 1), two(900, 2)], ["rejoined"], id="for a reason that is not recorded"),
        pytest.param(
            [two(5, 1), two(900, 2, protocol="roundrobin")], ["strategy_changed range roundrobin"], id="strategy"
        ),
        pytest.param(HELD, ["handover"], id="the second half of a cooperative rebalance is a handover"),
        pytest.param(HELD[:2], ["member_joined b"], id="what a cooperative leader holds back is no change"),
        # Partition counts: as the leaders assigned them.
        pytest.param(of_counts(2, 3), ["partitions_changed x 2 3"], id="partitions gained"),
        pytest.param(of_counts(0, 3), ["partitions_changed x 0 3"], id="a leader had not known the topic"),
        pytest.param(of_counts(3, 2), ["rejoined"], id="a leader that assigns less proves nothing"),
        pytest.param(
            [make_cooperative(5, 7, a=(0, 1)), make_cooperative(9, 8, {"a": (0, 1)}, a=(0, 1), b=(2,))],
            ["member_joined b"],
            id="a leader that may have held partitions back proves nothing",
        ),
        pytest.param(
            [
                make_record(5, (make_member("a", ("y",), {"y": (0,)}),)),
                make_record(900, (make_member("a", ("x", "y"), {"y": (0,), "x": (0, 1)}),), generation=2),
            ],
            ["subscription_changed a"],
            id="a topic that is new to the group did not change",
        ),
        pytest.param(of_counts(2, 3, protocol="house-blend"), ["rejoined"], id="other strategies may leave some out"),
        # The coordinator.
        pytest.param(
            [two(5, 1, leader_epoch=3), make_record(900, even("x", 4, "a"), generation=2, leader_epoch=5)],
            ["member_gone b", "coordinator_moved 3 5"],
            id="a newer leader epoch stands beside the cause",
        ),
        pytest.param(
            [two(5, 1, leader_epoch=3), two(900, 2, leader_epoch=4)],
            ["rejoined", "coordinator_moved 3 4"],
            id="it explains no rejoin by itself",
        ),
        *(
            pytest.param([two(5, 1, leader_epoch=was), two(900, 2, leader_epoch=now)], ["rejoined"])
            for was, now in [(3, 3), (-1, 4), (3, -1), (4, 3)]
        ),
        # Where less is known.
        pytest.param([two(5, 1), Compacted(6, 950), three(900, 9)], ["unknown"], id="in a compacted stretch"),
        pytest.param(
            [make_record(5, (UNDECODED,)), make_record(900, even("x", 2, "a"), generation=2)],
            ["rejoined"],
            id="members that cannot be decoded have no subscription to compare",
        ),
        pytest.param([connect(5, 1, "w"), connect(900, 2, "w", "v")], ["member_joined v"], id="a worker joined"),
        pytest.param([connect(5, 1, "w"), connect(900, 2, "w")], ["rejoined"], id="a Connect group has no topics"),
    ],
)
def test_the_causes_are_what_the_log_proves(inputs: list[GroupInput], causes: list[str]) -> None:
    assert causes_of(*inputs) == causes


def test_a_cause_says_what_shows_it_and_counts_what_it_does_not_name() -> None:
    (left,) = decisions_of(three(5), two(25, 2))[-1].causes or ()
    assert left.evidence == (
        "joined or committed within 20.0 s before the join phase completed, and no rebalance had begun 20.0 s before; "
        "the session timeout is 45.0 s, the rebalance timeout 300.0 s"
    )
    (joined,) = decisions_of(make_record(5, even("x", 4_000, *MANY)))[-1].causes or ()
    assert joined.count == 2_000
    (unknown,) = decisions_of(two(5, 41))[-1].causes or ()
    assert unknown.evidence == "the decision before it is not known"


def test_a_further_revision_repeats_the_causes() -> None:
    life = Life.after(
        *of_counts(2),
        *(make_commits(8, 1, topic="x", partition=p) for p in (0, 1)),
        make_record(20, even("x", 2, "a", "b"), generation=2),
        *(make_commits(30, 1, topic="x", partition=p) for p in (0, 1)),
        make_observation(40),
    )
    first, second = life.rows.rebalance_churn[1:]
    assert (second.revision, second.causes) == (2, first.causes)


SHARED = make_cooperative(5, 1, a=(0,), b=(1,))
ALONE = make_cooperative(5, 1, a=(0, 1))


@pytest.mark.parametrize(
    ("inputs", "protocol", "stopped"),
    [
        # A keeps 0 and 1; 2 and 3 move to b.
        pytest.param([make_record(5, even("x", 4, "a")), two(900, 2)], "eager", 2, id="eager: all stop"),
        pytest.param([two(5, 1)], "eager", 0, id="in a new group nothing stopped"),
        pytest.param(
            [static(5, 1, ("i", "old"), ("j", "stays")), static(900, 2, ("i", "new"), ("j", "stays"))],
            *("eager", 1),
            id="a restarted static member stopped by itself",
        ),
        pytest.param(
            [static(5, 1, ("i", "old")), static(9, 1, ("i", "new"))], None, None, id="a static return is no rebalance"
        ),
        pytest.param(
            [ALONE, make_cooperative(900, 2, {"a": (0, 1)}, a=(0,), b=())],
            "cooperative",
            0,
            id="none stops",
        ),
        pytest.param(
            [SHARED, make_cooperative(900, 2, {"a": (0,)}, a=(0,), b=(1,))],
            *("cooperative", None),
            id="a cooperative member that reports nothing may have lost its partitions",
        ),
        # Members that offer an eager strategy, too, join eagerly.
        pytest.param([ALONE, make_cooperative(900, 2, a=(0, 1))], None, None, id="the selected strategy is not enough"),
        pytest.param(
            [two(5, 1, protocol="house-blend"), two(900, 2, protocol="house-blend")], None, None, id="others: either"
        ),
    ],
)
def test_a_row_says_how_members_rebalanced_and_what_stopped_for_nothing(
    inputs: list[GroupInput], protocol: str | None, stopped: int | None
) -> None:
    row = decisions_of(*inputs)[-1]
    assert (row.rebalance_protocol, row.partitions_stopped_unmoved) == (protocol, stopped)


def test_every_topic_whose_partition_count_changed_is_named_up_to_a_limit_and_no_other() -> None:
    def record(at: int, generation: int, *grown: str) -> GroupInput:
        assigned = {name: range(3 if name in grown else 2) for name in TOPICS}
        return make_record(at, (make_member("a", TOPICS, assigned),), generation=generation)

    assert causes_of(record(5, 1), record(900, 2, "t007", "t020", "t033")) == [
        f"partitions_changed {topic} 2 3" for topic in ("t007", "t020", "t033")
    ]
    assert causes_of(record(5, 1), record(900, 2, *TOPICS)) == [
        *(f"partitions_changed {topic} 2 3" for topic in TOPICS[:8]),
        "partitions_changed",
    ]
    assert (decisions_of(record(5, 1), record(900, 2, *TOPICS))[-1].causes or ())[-1].count == 92
