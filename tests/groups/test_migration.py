"""A group that moves from the classic protocol to the new one and back is one group with one history, in two rows.

The records and their order are those of a 4.3.1 broker (`ConsumerGroup.fromClassicGroup`, `createConsumerGroupRecords`,
`ClassicGroup.fromConsumerGroup`); tests/real_groups/test_real_modern_groups.py sees a broker write them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.groups.rows import ChurnRow
from streaming.records import GroupInput, Member
from tests.groups.build import (
    GROUP,
    Life,
    churn_of,
    even,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
    rows_in_batches,
)
from tests.groups.coordinator import Written
from tests.groups.modern_log import TOPIC_ID, epoch, gone, metadata, owns, read, stands, target
from tests.offsets_log.written import member_metadata, other_key


def classic(name: str, instance: str | None = None, topics: Sequence[str] = ("orders",)) -> Written:
    return other_key(5, GROUP, name), member_metadata(topics, instance_id=instance, protocols=["range"])


# The records of a classic group of generation 3 when a consumer of the new protocol joins it.
CARRIED = [classic("a"), classic("b"), epoch(3), target("a", 0, 1), target("b", 2, 3), stands(3)]
CARRIED += [owns("a", 3, 0, 1), owns("b", 3, 2, 3)]
JOINED = [metadata("n"), epoch(4), target("n", 3), target("b", 2), stands(4), owns("n", 4)]


def downgrade(first: int, *members: str) -> list[GroupInput]:
    """The last member of the new protocol has left: the group's tombstones."""
    tombstones = [(other_key(key_type, GROUP, name), None) for key_type in (8, 7) for name in members]
    tombstones += [(other_key(6, GROUP), None), *((other_key(5, GROUP, name), None) for name in members)]
    return read([*tombstones, (other_key(4, GROUP), None), (other_key(3, GROUP), None)], first)


def before() -> list[GroupInput]:
    """A classic group, and a round that has named its topic."""
    return [make_record(5, even("orders", 4, "a", "b"), generation=3), named(6), make_tombstone(9)]


def named(position: int) -> GroupInput:
    return make_observation(position, make_topic("orders", 4, topic_id=TOPIC_ID))


def churn(*inputs: GroupInput) -> list[ChurnRow]:
    return sorted(churn_of(*inputs), key=lambda row: row.decision)


def test_an_upgrade_is_a_row_at_the_target_that_the_classic_group_brought() -> None:
    start, migration, joined = churn(*before(), *read(CARRIED + JOINED))
    assert (migration.kind, migration.decision, migration.protocol_type) == ("migration", 15, "consumer")
    assert (migration.generation, migration.previous_generation, migration.generations_skipped) == (3, 3, 0)
    assert (migration.joined, migration.left, migration.members, migration.partitions) == ((), (), 2, 4)
    # There was no decision, so there is no optimum to compare with.
    assert (migration.partitions_moved, migration.partitions_moved_optimal) == (0, None)
    assert (joined.kind, joined.generation, joined.previous_generation) == ("rebalance", 4, 3)
    assert (joined.joined, joined.left, joined.partitions_moved, joined.partitions_moved_optimal) == (("n",), (), 1, 1)
    assert start.incarnation == migration.incarnation == joined.incarnation == 5


def back() -> list[GroupInput]:
    """Back from the upgraded group of a, b and n: n leaves, and a and b continue as a classic group."""
    members = (make_member("a", assigned={"orders": (0, 1)}), make_member("b", assigned={"orders": (2,)}))
    last = make_record(40, even("orders", 4, "a", "b"), generation=5)
    return [*downgrade(24, "a", "b", "n"), make_record(36, members, generation=4), last]


UNNAMED = [make_record(5, even("orders", 4, "a", "b"), generation=3), make_tombstone(9)]
# b had 2 and 3.
TAKEN = [{target("a", 0, 1): target("a", 0, 1, 2), target("b", 2, 3): target("b", 3)}.get(one, one) for one in CARRIED]
NEW = [metadata("n"), epoch(2), target("n", 0, 1, 2, 3), stands(2), owns("n", 2, 0, 1, 2, 3)]
BEGUN = [metadata("n"), epoch(1), target("n", 0), stands(1)]
ENDED = [metadata("n"), epoch(1), target("n", 0, 1, 2, 3), stands(1), *gone("n"), epoch(2)]
ENDED += [(other_key(6, GROUP), None), (other_key(3, GROUP), None)]
BEHIND = 10 + len(ENDED)

# Inputs, the kinds of the rows of churn, and columns of the newest row.
ROWS: dict[str, tuple[list[GroupInput], list[str], dict[str, object]]] = {
    "what the first target takes from an owner of the classic group has moved": (
        [*before(), *read(TAKEN)],
        ["rebalance", "migration"],
        {"partitions_moved": 1},
    ),
    "moves of an upgrade are null where no round has named the topic": (
        [*UNNAMED, *read(CARRIED)],
        ["rebalance", "migration"],
        {"partitions_moved": None, "joined": ()},
    ),
    "the upgrade of an empty group begins a new run of epochs": (
        [
            make_record(5, even("orders", 4, "a"), generation=3),
            *(make_record(6, generation=4), make_tombstone(9), *read(NEW)),
        ],
        ["rebalance", "became_empty", "migration"],
        {"incarnation": 13, "joined": ("n",), "generation": 2, "previous_generation": None},
    ),
    "a group of the new protocol made after a classic one was deleted is another": (
        [make_record(5, even("orders", 4, "a")), make_tombstone(9), *read(BEGUN, 12), make_observation(20)],
        ["rebalance", "rebalance"],
        {"incarnation": 15},
    ),
    "a group ends with its first tombstone and what follows a second is another": (
        [
            *(make_record(5, even("orders", 4, "a")), make_tombstone(9), make_tombstone(11)),
            *(*read(BEGUN, 12), make_observation(20)),
        ],
        ["rebalance", "rebalance"],
        {},
    ),
    # Only the tombstone of the classic group is left; epoch and one member look like a new group's.
    "a classic group whose past is compacted away has not joined when it is upgraded": (
        read([classic("a"), epoch(1), target("a", 0, 1), stands(1)]),
        ["rebalance"],
        {"joined": None, "partitions_moved": None},
    ),
    "a classic group that begins where an empty one of the new protocol ends is no migration": (
        [*read(ENDED), make_record(BEHIND, even("orders", 4, "a"), generation=1)],
        ["rebalance", "became_empty", "rebalance"],
        {"joined": ("a",), "incarnation": BEHIND},
    ),
    "a classic group made right after a consumer group was deleted is created": (
        [*read(ENDED), make_record(BEHIND, generation=0, protocol_type="")],
        ["rebalance", "became_empty", "created"],
        {},
    ),
    # The only record left from the time under the new protocol is not a target.
    "of a downgrade whose last decision was not read nothing is compared": (
        [
            *(*read([metadata("a"), epoch(40)], 22), *downgrade(24, "a")),
            make_record(30, even("orders", 4, "c"), generation=40),
        ],
        ["migration"],
        {
            "incarnation": 30,
            "generation": 40,
            "previous_generation": None,
            "generations_skipped": None,
            "joined": None,
            "left": (),
            "partitions_moved": None,
        },
    ),
    "a downgrade whose topics have no names has members, and NULL for moves": (
        [*UNNAMED, *read(CARRIED + JOINED), *back()[:-1]],
        ["rebalance", "migration", "rebalance", "migration"],
        {"partitions_moved": None, "partitions_pending_handover": 0, "left": ("n",), "previous_generation": 4},
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_move_between_protocols_is_one_row_that_tells_what_is_known_of_it(case: str) -> None:
    inputs, kinds, columns = ROWS[case]
    rows = churn(*inputs)
    assert [row.kind for row in rows] == kinds
    assert {name: getattr(rows[-1], name) for name in columns} == columns


STATIC = [
    make_member("a", assigned={"orders": (0, 1)}, group_instance_id="i"),
    make_member("b", assigned={"orders": (2, 3)}),
]
RETURNED = make_member("a2", ("bills",), {"orders": (0, 1)}, group_instance_id="i")
SINCE = [classic("a2", "i", ["bills"]), classic("b"), epoch(3), target("a2", 0, 1), target("b", 2, 3), stands(3)]

# Inputs before a round at 30, and the newest verdict: generation, verdict and reason.
VERDICTS: dict[str, tuple[list[GroupInput], tuple[int, str, str | None]]] = {
    "no assignor of the broker is held to what a classic group brought": (
        [*before(), *read(CARRIED)],
        (3, "unverified", "the group was upgraded from the classic protocol: this is the assignment it had"),
    ),
    # The record of its return has the new subscription beside the old assignment, and the upgrade takes over both.
    "a static member that came back with other topics is no drift when the group is upgraded": (
        [
            *(make_record(5, STATIC, generation=3), named(6), make_record(7, (RETURNED, STATIC[1]), generation=3)),
            *(make_tombstone(9), *read(SINCE)),
        ],
        (3, "unverified", "the group was upgraded from the classic protocol: this is the assignment it had"),
    ),
    # Uniform, by hand: four on three; a keeps its two, b one of its two, and n gets the other.
    "the first target after an upgrade is judged with what the group brought": (
        [*before(), *read(CARRIED + JOINED)],
        (4, "identical", None),
    ),
    # The last record of the classic group has no members; c came with the classic protocol after it, n did not.
    "a first target is not judged where a member may have brought partitions that no record shows": (
        [
            *(make_record(6, generation=4), named(7), make_tombstone(9)),
            *read([classic("c"), metadata("n"), epoch(5), target("c", 0, 1), target("n", 2, 3), stands(5)]),
        ],
        (5, "unverified", "the previous target is not known: earlier records of the group may be missing"),
    ),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_an_assignor_is_held_to_what_it_knew_of_an_upgraded_group(case: str) -> None:
    inputs, expected = VERDICTS[case]
    topics = make_topic("orders", 4, topic_id=TOPIC_ID), make_topic("bills", 2)
    life = Life.after(*inputs)
    row = life.take(make_observation(30, *topics, state=None, group_type="consumer")).drift[-1]
    assert (row.generation, row.verdict, row.reason, row.drifted_partitions) == (*expected, ())


def test_a_downgrade_is_a_row_that_tells_who_left_and_what_waits_for_its_next_owner() -> None:
    inputs = back()
    *_, migration, rebalance = churn(*before(), *read(CARRIED + JOINED), *inputs)
    assert (migration.kind, migration.decision, migration.incarnation) == ("migration", 36, 5)
    assert (migration.generation, migration.previous_generation, migration.generations_skipped) == (4, 4, 0)
    assert (migration.joined, migration.left, migration.partitions_moved, migration.partitions_pending_handover) == (
        (),
        ("n",),
        0,
        1,
    )
    assert (rebalance.kind, rebalance.follows, rebalance.previous_generation) == ("rebalance", 36, 4)
    # Partition 3 moves from n to b, counted once: from the first owner to the last.
    assert (rebalance.partitions_moved, rebalance.left, rebalance.incarnation) == (1, (), 5)


def test_a_handover_that_an_upgrade_cut_short_is_forgotten_by_the_time_of_a_downgrade() -> None:
    def members(*of_a: int) -> tuple[Member, ...]:
        return make_member("a", assigned={"orders": of_a}), make_member("b", assigned={"orders": (2,)})

    # Partition 3 waits for its next owner when the group is upgraded, and nobody owns it under the new protocol.
    classic_time = [
        make_record(4, even("orders", 4, "a", "b"), generation=2, protocol="cooperative-sticky"),
        make_record(5, members(0, 1), generation=3, protocol="cooperative-sticky"),
    ]
    carried = [classic("a"), classic("b"), epoch(3), target("a", 0, 1), target("b", 2), stands(3)]
    *before_it, migration = churn(
        *classic_time,
        named(6),
        make_tombstone(9),
        *read(carried),
        *downgrade(20, "a", "b"),
        make_record(29, members(0, 1, 3), generation=4),
    )
    assert [row.partitions_pending_handover for row in before_it] == [0, 1, 0]
    assert (migration.kind, migration.previous_generation, migration.partitions_moved) == ("migration", 3, 0)


def test_a_downgrade_is_not_verified_and_the_decision_after_it_is_again() -> None:
    life = Life.after(*before(), *read(CARRIED + JOINED), *back(), named(50))
    assert [(row.generation, row.verdict, row.reason) for row in life.rows.drift][-2:] == [
        (4, "unverified", "the group was downgraded from the KIP-848 protocol: the broker made this assignment"),
        (5, "identical", None),
    ]


def test_a_migrated_group_shows_nothing_of_its_classic_time() -> None:
    life = Life.after(
        *before(), *read([classic("a"), classic("b"), epoch(3)]), make_observation(20, group_type="consumer")
    )
    row = life.rows.group_health[-1]
    assert (row.verdict, row.state, row.strategy, row.generation) == ("pending", "Stable", None, None)


def test_lag_and_commits_go_on_under_the_same_group_through_both_migrations() -> None:
    life = Life()
    topic = make_topic("orders", 4, topic_id=TOPIC_ID, end=100)
    life.take(*before(), make_commit(7, 90), make_observation(8, topic))
    life.take(*read(CARRIED + JOINED), make_observation(24, topic, group_type="consumer"))
    life.take(*back(), make_commit(41, 95), make_observation(42, topic))
    partition = [row for row in life.rows.lag if row.partition == 0]
    assert [(row.committed_offset, row.member_id, row.ended) for row in partition][-1] == (95, "a", False)
    assert not any(row.ended for row in life.rows.lag)
    assert not any(row.ended for row in life.rows.group_health)


def test_a_migration_says_the_same_wherever_it_is_read_in_parts() -> None:
    inputs = [*before(), *read(CARRIED + JOINED), *back()]
    whole = rows_in_batches(inputs)
    for cut in range(1, len(inputs)):
        assert rows_in_batches(inputs, [cut]) == whole, cut
