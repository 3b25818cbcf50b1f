"""Findings about the topics of a group that the broker assigns: what nobody sees, and what its target lacks."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import GroupConfig
from streaming.records import CONSUMER, Compacted, GroupInput, GroupObservation, KnownTopics, ModernMember
from tests.groups.build import GROUP, LOG_PARTITION, SECOND, START, Life, make_observation, make_topic
from tests.groups.coordinator import Written
from tests.groups.health.findings import detail, found
from tests.groups.modern_log import FIRST, TOPIC_ID, asking, epoch, metadata, owns, read, stands, target
from tests.offsets_log.written import member_metadata, other_key, regular_expression

GRACE_S = 600

# The rebalance timeout of `member_metadata`.
TIMEOUT_S = 300

NAMES: dict[str, str] = {"orders": TOPIC_ID}


def shows(at: int, **topics: int | None) -> GroupObservation:
    """A round that shows these topics with these partition counts."""
    seen = [make_topic(name, count, topic_id=NAMES.get(name, f"id-of-{name}")) for name, count in topics.items()]
    return make_observation(at, *seen, state=None, group_type="consumer")


def assigned(*rounds: GroupObservation, log: list[Written] = FIRST) -> Life:
    """A group with this log, then rounds."""
    life = Life.after(*read(log))
    for one in rounds:
        life.take(one)
    return life


def member_of(topics: list[str], regex: str | None = None) -> Written:
    return other_key(5, GROUP, "a"), member_metadata(topics, regex=regex, assignor="uniform")


def matches(regex: str, *topics: str) -> Written:
    return other_key(16, GROUP, regex), regular_expression(list(topics), 7, 8)


def blocked(*seconds: int) -> list[GroupInput]:
    """Rounds while the offsets log has been blocked since 15."""
    topic = make_topic("orders", 6, topic_id=TOPIC_ID)
    held = {"state": None, "group_type": "consumer", "held_since": START + 15 * SECOND}
    return [make_observation(at, topic, **held) for at in seconds]


GONE_B = [(other_key(key, GROUP, "b"), None) for key in (8, 7, 5)]
LEAVES_HOLES = [
    *(*FIRST, asking("b", "uniform"), epoch(2), target("a", 0, 1), target("b", 2, 3), stands(2)),
    *(owns("a", 2, 0, 1), owns("b", 2, 2, 3), *GONE_B, epoch(3)),
]
THREE = {"a-orders": 1, "orders": 4, "z-orders": 1}
NEW = "new partitions that the coordinator's target does not have"
NO_OWNER = "partitions without an owner"

LACKS: dict[str, list[tuple[list[GroupInput], dict[str, tuple[int, str | None]]]]] = {
    "partitions that one round shows may be in a target that it has not read": [
        ([*read(FIRST), shows(20, orders=6)], {}),
        ([*read([epoch(2), target("a", *range(6)), stands(2), owns("a", 2, *range(6))], 21), shows(30, orders=6)], {}),
    ],
    "new partitions are stale metadata from the second round that shows them on, until the grace is over": [
        (
            [*read(FIRST), shows(15, orders=4), shows(20, orders=6), shows(30, orders=6)],
            {"stale_metadata": (20, f"{NEW}: orders (4 to 6 partitions)")},
        ),
        ([shows(20 + GRACE_S - 1, orders=6)], {"stale_metadata": (20, f"{NEW}: orders (4 to 6 partitions)")}),
        ([shows(20 + GRACE_S, orders=6)], {"unassigned": (20, f"{NO_OWNER}: orders (4 to 6 partitions)")}),
    ],
    "a new target begins the grace anew": [
        ([*read(FIRST), shows(20, orders=6), shows(30, orders=6)], {"stale_metadata": (20, None)}),
        ([*read([epoch(2), stands(2), owns("a", 2, *range(4))], 500), shows(510, orders=6)], {}),
        ([shows(20 + GRACE_S, orders=6)], {"stale_metadata": (510, None)}),
    ],
    "a topic that a member has just subscribed to is not called stale while the target is made": [
        (
            [
                *read([*FIRST, member_of(["orders", "old"]), epoch(2)]),
                *(shows(30, orders=4, old=3), shows(40, orders=4, old=3)),
            ],
            {},
        ),
        ([shows(30 + GRACE_S, orders=4, old=3)], {"unassigned": (30, None)}),
    ],
    "a target with holes is a lack of owners after the members' timeout": [
        (
            [
                *read([metadata("a", "i"), epoch(1), target("a", 0, 3), stands(1), owns("a", 1, 0, 3)]),
                *(shows(20, orders=4), shows(13 + TIMEOUT_S, orders=4)),
            ],
            {},
        ),
        ([shows(14 + TIMEOUT_S, orders=4)], {"unassigned": (13, f"{NO_OWNER}: orders (2 partitions)")}),
    ],
    "a member that is gone leaves holes until the next target, which has its time": [
        (
            [*read(LEAVES_HOLES), shows(40, orders=4), shows(40 + GRACE_S, orders=4)],
            {"unassigned": (40, f"{NO_OWNER}: orders (2 partitions)")},
        ),
    ],
    "a topic whose partitions all have owners hides no other one": [
        (
            [
                *read([member_of(["a-orders", "orders", "z-orders"]), *FIRST[1:]]),
                *(shows(30, **THREE), shows(30 + GRACE_S, **THREE)),
            ],
            {"unassigned": (30, f"{NO_OWNER}: a-orders (0 to 1 partitions), z-orders (0 to 1 partitions)")},
        ),
    ],
    "the record of an older broker tells how many partitions it knew": [
        (
            [
                KnownTopics(9, START, CONSUMER, LOG_PARTITION, ((TOPIC_ID, "orders", 6),)),
                *(*read(FIRST), shows(20, orders=8), shows(30, orders=8)),
            ],
            {"stale_metadata": (20, f"{NEW}: orders (6 to 8 partitions)")},
        ),
    ],
    **{
        f"a topic subscribed by name is not visible from the second round on: {shown}": [
            ([*read([member_of(["lost", "orders"]), *FIRST[1:]]), shows(20, **shown)], {}),
            ([shows(30, **shown)], {"topic_not_visible": (20, "subscribed, but not visible: lost")}),
            ([shows(40, orders=4, lost=1), shows(50, orders=4, lost=1)], {"stale_metadata": (40, None)}),
        ]
        for shown in ({"orders": 4}, {"orders": 4, "lost": None})
    },
    "a deleted topic may stay among those of a regular expression for ever": [
        (
            [
                *read([member_of([], "o.*"), matches("o.*", "orders", "old"), *FIRST[1:]]),
                *(shows(20, orders=4, old=2), shows(30, orders=4), shows(9_000, orders=4)),
            ],
            {},
        ),
    ],
    "nothing is said of a regular expression that is not resolved": [
        ([*read([member_of([], "o.*"), *FIRST[1:]]), shows(20, orders=4), shows(2_000, orders=4)], {}),
    ],
    "while the log is blocked nobody knows whether there is a new target": [
        ([*read(FIRST), *blocked(20, 30, 2_000)], {"offsets_blocked": (15, None)}),
    ],
    "what a target lacked before the log was blocked it lacks still": [
        (
            [*read(FIRST), shows(20, orders=6), shows(30, orders=6), *blocked(40, 2_000)],
            {"offsets_blocked": (15, None), "stale_metadata": (20, None)},
        ),
        ([shows(2_010, orders=6)], {"unassigned": (20, None)}),
    ],
    "after compaction has removed records a target shows first who is still there": [
        (
            [
                *(*read(FIRST), shows(15, orders=4), Compacted(16, 20)),
                *(shows(30, orders=6), shows(40, orders=6), shows(2_000, orders=6)),
            ],
            {},
        ),
        (
            [
                *read([epoch(2), stands(2), owns("a", 2, *range(4))], 2_001),
                *(shows(2_010, orders=6), shows(2_020, orders=6)),
            ],
            {"stale_metadata": (2_010, None)},
        ),
    ],
    "a group without members lacks nothing": [
        (
            [
                *read([*FIRST, *((other_key(key, GROUP, "a"), None) for key in (8, 7, 5)), epoch(2)]),
                *(shows(30, orders=9), shows(2_000, orders=9)),
            ],
            {},
        ),
    ],
    "members without partitions are not idle while a topic of theirs is missing": [
        (
            [
                *read([*FIRST, (other_key(5, GROUP, "b"), member_metadata(["lost"])), epoch(2), target("b")]),
                *read([stands(2), owns("a", 2, *range(4)), owns("b", 2)], 20),
                *(shows(30, orders=4), shows(40, orders=4)),
            ],
            {"topic_not_visible": (30, None)},
        ),
    ],
}


@pytest.mark.parametrize("case", LACKS)
def test_what_a_target_lacks_is_found_since_a_round_showed_it(case: str) -> None:
    life = Life()
    for inputs, expected in LACKS[case]:
        life.take(*inputs)
        told = {f.finding: ((f.since - START) // SECOND, f.detail) for f in life.rows.group_health[-1].findings}
        known = {name: since for name, (since, _) in told.items() if name != "unexplained_assignment"}
        assert known == {name: since for name, (since, _) in expected.items()}
        assert all(told[name][1] == text for name, (_, text) in expected.items() if text is not None)


def test_a_topic_that_is_not_watched_hides_no_other() -> None:
    log = [member_of(["aside", "orders"]), *FIRST[1:]]
    life = Life(GroupConfig("test", watches_topic=lambda topic: topic != "aside"))
    life.take(*read(log))
    for at in (15, 20, 30):
        life.take(shows(at, orders=4 if at == 15 else 6))
    assert found(life) == [("stale_metadata", 20)]


def test_a_topic_that_was_created_again_is_new_to_the_coordinator_however_long_its_name_is_known() -> None:
    life = assigned(*(shows(at, orders=4) for at in range(20, 2_000, 300)))
    for at in (2_010, 2_020):
        life.take(make_observation(at, make_topic("orders", 4, topic_id="another"), state=None, group_type="consumer"))
    assert ("stale_metadata", 2_010) in found(life)
    assert "unassigned" not in {name for name, _ in found(life)}


def test_the_longest_timeout_of_the_members_counts() -> None:
    two = [*FIRST[:1], asking("b", "uniform"), epoch(1), target("a", 0), target("b", 3), stands(1)]
    inputs = [*read([*two, owns("a", 1, 0), owns("b", 1, 3)])]
    for at, timeout in ((0, 10), (1, 400)):
        member = inputs[at]
        assert isinstance(member, ModernMember)
        inputs[at] = msgspec.structs.replace(member, rebalance_timeout=timeout * SECOND)
    # A target that nobody is sure to be the first one is not judged: another follows.
    life = Life.after(
        *inputs,
        *read([epoch(2), stands(2), owns("a", 2, 0), owns("b", 2, 3)], 20),
        shows(30, orders=4),
        shows(421, orders=4),
    )
    assert "unassigned" not in {name for name, _ in found(life)}
    life.take(shows(422, orders=4))
    assert ("unassigned", 21) in found(life)


def test_a_topic_of_a_regular_expression_that_the_target_has_and_no_round_shows_is_found_after_the_grace() -> None:
    log = [member_of([], "o.*"), matches("o.*", "old", "orders"), *FIRST[1:]]
    for first in ([shows(20, orders=4)], []):
        life = assigned(*first, shows(30), shows(40), shows(30 + GRACE_S - 1), log=log)
        assert found(life) == []
        life.take(shows(30 + GRACE_S))
        assert [name for name, _ in found(life)] == ["topic_not_visible"]
        # Nobody knows whether a topic whose id no round has shown is old, or the orders that the target has.
        names = "orders" if first else "old, orders"
        assert detail(life) == f"subscribed, but not visible: {names}"


def test_thousands_of_topics_that_do_not_exist_do_not_make_the_state_larger_without_end() -> None:
    topics = [f"t{number}" for number in range(5_000)]
    life = assigned(shows(20, orders=4), shows(30, orders=4), log=[member_of(topics), *FIRST[1:]])
    assert detail(life) == "subscribed, but not visible: t0, t1, t10 and 97 more"
    assert len(life.state.findings) <= 101
